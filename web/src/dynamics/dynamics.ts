/** Dynamics: choose an attention, and see where it carries a cloud of tokens. */
import { readAddress, writeAddress } from "../address";
import { button, choice, h, replace, slider, tick } from "../dom";
import { curves, picture, type Picture } from "../draw/canvas";
import { colours } from "../draw/theme";
import { ATTENTIONS, covariancePath, hasClosedForm, type Setting } from "./attention";
import { cone, type Strand } from "./cone";
import { Larger } from "./larger";
import { lay } from "./layout";
import { drawTokens, nearestToken } from "./plot";
import { CLOUDS, PRESETS, SCORES, sentence, VALUES, type Preset } from "./words";
import { clock, Frames, LONGEST, World } from "./world";

const PACE = 30; // milliseconds between frames, at least

/** Everything that can be chosen; all of it stands in the address. */
const START = { attention: "l2", versus: "", scores: "identity", value: "expand", relative: 1, epsilon: 1, cloud: "blobs", n: 240, seed: 1, arrows: 1 };
type Chosen = typeof START;
let memory: Chosen = { ...START };

export default function dynamics(place: HTMLElement): () => void {
  return new Dynamics(place).start();
}

const chosenBy = ({ attention, scores, value, relative, cloud }: Preset) => ({ attention, scores, value, relative: +relative, cloud, versus: "" });

class Dynamics {
  chosen: Chosen = { ...memory };
  worlds: World[] = [];
  frames: Frames[] = []; // a worker for each world
  owed = 0; // steps that wait for their frames
  strands: Strand[] = [];
  t = 0;
  hover = -1;
  frame = 0;
  pictures: Picture[] = [];

  panels = h("div", { class: "worlds" });
  panel = h("section", { class: "panel", "aria-label": "Which attention" });
  play = button("Play", () => this.toggle(), { class: "main", title: "space" });
  scrub = slider("Time", { min: 0, max: LONGEST, step: "any", value: 0 }, (v) => `t = ${clock(v)}`, (v) => (this.pause(), this.seek(v)));
  ending = h("p", { class: "note", role: "status" });
  about = h("p", { class: "says" });
  presets = Object.entries(PRESETS).map(([name, preset]) => button(preset.words, () => this.preset(name), { class: "chip", title: preset.why, "data-preset": name }));
  larger = new Larger(
    () => ({ set: this.worlds[0].set, kind: this.chosen.cloud, seed: this.chosen.seed }),
    (result) => {
      this.worlds[0].load(result);
      this.t = 0;
      this.go();
    },
  );
  private key = (event: KeyboardEvent) => {
    if (event.key !== " " || (event.target as HTMLElement).closest?.("input, button, select, a, summary")) return;
    event.preventDefault();
    this.toggle();
  };

  constructor(private place: HTMLElement) {
    const { state } = readAddress();
    for (const [name, value] of state) if (name in this.chosen) Object.assign(this.chosen, { [name]: typeof START[name as keyof Chosen] === "number" ? +value : value });
  }

  start(): () => void {
    const one = (name: "entropy" | "energy") =>
      curves(
        name,
        () => this.worlds.map((world, i) => ({ name, colour: () => colours.clusters[i], x: world.past.map((p) => p.t), y: world.past.map((p) => p[name]) })),
        () => this.t,
      );
    const [entropy, energy] = [one("entropy"), one("energy")];
    const cones = cone(() => [...this.strands, ...this.worlds.map((world): Strand => ({ path: world.past.filter((p) => p.t <= this.t + 1e-9).map((p) => p.covariance), fate: "particles" }))]);
    this.pictures = [entropy, energy, cones];
    const steps = [button("▶", () => this.single(), { "aria-label": "Step", class: "step" }), button("↺", () => this.reset(), { "aria-label": "Start again", class: "step" })];
    lay(this.place, { ...this, player: [this.play, ...steps, this.scrub], cones, entropy, energy });
    addEventListener("keydown", this.key);
    this.build();
    this.go();
    return () => this.close();
  }

  // choices --------------------------------------------------------------------------------------------------------

  preset(name: string) {
    this.change(chosenBy(PRESETS[name]));
  }

  /** Light the preset that is shown, if it is one. */
  light() {
    for (const one of this.presets) {
      const wanted = Object.entries(chosenBy(PRESETS[one.dataset.preset!]));
      one.setAttribute("aria-pressed", String(wanted.every(([name, value]) => this.chosen[name as keyof Chosen] === value)));
    }
  }

  /** Another choice starts again, and plays whatever has ended. */
  change(next: Partial<Chosen>) {
    const ended = this.worlds.some((world) => world.over(this.t) !== "");
    const playing = this.frame !== 0;
    Object.assign(this.chosen, next);
    this.build();
    if (playing || ended) this.go();
  }

  controls() {
    const { chosen } = this;
    const named = (table: Record<string, [string, ...unknown[]]>): [string, string][] => Object.entries(table).map(([key, [words]]) => [key, words]);
    const pick = (words: string, name: "attention" | "versus" | "scores" | "value" | "cloud", options: [string, string][]) => choice(words, options, chosen[name], (v) => this.change({ [name]: v }));
    const epsilon = [chosen.attention, chosen.versus].some((name) => ["sinkhorn", "linear-epsilon"].includes(name));
    const focused = this.panel.querySelector(":focus")?.getAttribute("aria-label");
    replace(
      this.panel,
      pick("Attention", "attention", ATTENTIONS),
      pick("Compare with", "versus", [["", "nothing"], ...ATTENTIONS]),
      epsilon && slider("epsilon", { min: 0.2, max: 3, step: 0.1, value: chosen.epsilon }, (v) => v.toFixed(1), (v) => this.change({ epsilon: v })),
      pick("Scores", "scores", named(SCORES)),
      pick("Values", "value", named(VALUES)),
      tick("Subtract the token's position", !!chosen.relative, (v) => this.change({ relative: +v })),
      h("hr"),
      pick("Starting cloud", "cloud", CLOUDS),
      slider("Tokens", { min: 40, max: 500, step: 20, value: chosen.n }, (v) => String(v), (v) => this.change({ n: v })),
      button("New random cloud", () => this.change({ seed: chosen.seed + 1 })),
      tick("Show the field as arrows", !!chosen.arrows, (v) => {
        chosen.arrows = +v;
        this.redraw();
        this.write();
      }),
      h("p", { class: "note" }, "Point at a token to see what it attends to."),
    );
    if (focused) this.panel.querySelector<HTMLElement>(`[aria-label="${focused}"]`)?.focus();
  }

  setting(attention: string): Setting {
    const { scores, value, epsilon, relative } = this.chosen;
    const [, Q, K] = SCORES[scores] ?? SCORES.identity;
    return { attention, Q, K, V: (VALUES[value] ?? VALUES.expand)[1], epsilon, relative: !!relative };
  }

  build() {
    const { chosen } = this;
    const known = (name: string) => ATTENTIONS.some(([key]) => key === name);
    const shown = [known(chosen.attention) ? chosen.attention : "l2", ...(known(chosen.versus) ? [chosen.versus] : [])];
    this.pause();
    for (const world of this.worlds) world.close();
    while (this.frames.length < shown.length) this.frames.push(new Frames());
    this.worlds = shown.map((name, i) => World.of(this.setting(name), chosen.cloud, chosen.n, chosen.seed, this.frames[i], () => this.arrived()));
    for (const one of this.pictures.splice(3)) one.close();
    replace(this.panels, ...this.worlds.map((world) => this.worldPanel(world)));
    this.panels.classList.toggle("two-worlds", this.worlds.length > 1);
    this.fates();
    this.light();
    this.controls();
    this.t = 0;
    this.seek(0);
    this.write();
  }

  worldPanel(world: World): HTMLElement {
    const groups = () => (this.chosen.cloud === "blobs" ? 3 : 1);
    const words = ATTENTIONS.find(([name]) => name === world.set.attention)![1];
    const tall = (w: number) => Math.min(460, Math.max(300, w * (this.worlds.length > 1 ? 0.9 : 0.52)));
    const made = picture(`Tokens under ${words}`, tall, (c, w, t) => drawTokens(c, w, t, world, { arrows: !!this.chosen.arrows, groups: groups(), t: this.t, hover: this.hover }));
    this.pictures.push(made);
    made.element.addEventListener("pointermove", (event) => {
      const { left, top, width, height } = made.element.getBoundingClientRect();
      const best = nearestToken(world, this.t, width, height, event.clientX - left, event.clientY - top);
      if (best === this.hover) return;
      this.hover = best;
      this.redraw();
    });
    made.element.addEventListener("pointerleave", () => {
      this.hover = -1;
      this.redraw();
    });
    return h("figure", {}, this.worlds.length > 1 && h("h3", {}, words), made.element);
  }

  fates() {
    this.strands = [];
    const { set } = this.worlds[0];
    if (hasClosedForm(set.attention))
      for (const z of [0.5, 1.1, 1.7])
        for (let k = 0; k < 8; k++) {
          const [a, b] = [0.75 * z * Math.cos((k * Math.PI) / 4), 0.75 * z * Math.sin((k * Math.PI) / 4)];
          this.strands.push(covariancePath(set, [z + a, b, b, z - a]));
        }
    this.about.textContent = sentence(set, this.chosen.value, this.strands.filter((s) => s.fate === "blows up").length, this.strands.length);
  }

  // time -----------------------------------------------------------------------------------------------------------

  reset() {
    for (const world of this.worlds) world.reset();
    this.seek(0);
  }

  /** One frame on, or a promise of it: frames are computed beside the page. */
  single() {
    for (const world of this.worlds) world.more(this.t);
    const next = this.worlds.flatMap((world) => world.after(this.t));
    if (this.worlds.every((world) => world.over(this.t) || world.after(this.t).length) && next.length) this.seek(Math.min(...next));
    else if (!next.length && this.worlds.every((world) => world.over(this.t))) {
      this.pause();
      this.seek(this.t);
    } else if (!this.frame) this.owed++;
  }

  /** A frame has come: curves that begin, and steps that waited for it. */
  arrived() {
    if (this.frame) return;
    const owed = this.owed;
    this.owed = 0;
    for (let i = 0; i < owed; i++) this.single();
    if (!owed) this.seek(this.t);
  }

  toggle() {
    if (this.frame) return this.pause();
    if (this.worlds.every((world) => world.over(this.t))) this.reset();
    this.go();
  }

  go() {
    this.pause();
    this.play.textContent = "Pause";
    let last = 0;
    const next = (now: number) => {
      this.frame = requestAnimationFrame(next);
      if (now - last < PACE) return;
      last = now;
      this.single();
    };
    this.frame = requestAnimationFrame(next);
  }

  pause() {
    cancelAnimationFrame(this.frame);
    this.frame = this.owed = 0;
    this.play.textContent = "Play";
  }

  seek(t: number) {
    this.t = Math.min(t, Math.max(...this.worlds.map((world) => world.now.t)));
    this.scrub.set(this.t);
    const [first, second] = this.worlds.map((world) => world.over(this.t));
    this.ending.textContent = this.worlds.length > 1 ? [first && `Left: ${first}`, second && `Right: ${second}`].filter(Boolean).join(" ") : first;
    this.redraw();
  }

  /** The tokens first: where a frame is short, what is measured of them follows in the next. */
  redraw() {
    for (const one of [...this.pictures].reverse()) one.redraw();
  }

  write() {
    memory = { ...this.chosen };
    if (readAddress().view !== "dynamics") return;
    const changed = Object.entries(this.chosen).filter(([name, value]) => value !== START[name as keyof Chosen]);
    writeAddress("dynamics", Object.fromEntries(changed.map(([name, value]) => [name, value === "" ? null : value])));
  }

  close() {
    this.pause();
    removeEventListener("keydown", this.key);
    this.larger.close();
    for (const one of this.worlds) one.close();
    for (const one of this.frames) one.close();
    for (const one of this.pictures) one.close();
  }
}
