/** Circuits: a transformer with weights set by hand that is k-means, one head after another. */
import { readAddress, writeAddress } from "../address";
import { ask, button, choice, fill, h, replace, slider } from "../dom";
import { picture, type Picture } from "../draw/canvas";
import { matrix } from "./matrix";
import { drawCircuit, frameOf, type Circuit } from "./picture";

/** What each head does in a word, and what the paper calls it. */
const NAMES: Record<string, [plain: string, paper: string]> = {
  enc_sa: ["Erase", "Enc-SA: the encoder's self-attention"],
  enc_ca: ["Assign", "Enc-CA: the encoder's cross-attention"],
  enc_ca2: ["Score", "Enc-CA: the encoder's second cross-attention"],
  dec_sa: ["Clear", "Dec-SA: the decoder's self-attention"],
  dec_ca: ["Update", "Dec-CA: the decoder's cross-attention"],
};
const ALGORITHMS: [string, string][] = [
  ["lloyd", "k-means (Lloyd)"],
  ["soft", "soft k-means"],
  ["spherical", "spherical k-means"],
  ["trimmed", "trimmed k-means"],
  ["robust", "robust k-means"],
  ["medoids", "k-medoids"],
];
/** The columns of the paper's table, in plain words. */
const PARTS: Record<string, string> = { "Enc-SA": "Erase", "Enc-CA": "Assign", "Dec-SA": "Clear", "Dec-CA": "Update", Norm: "Normalise", NLT: "Transform" };
const WORDS = { Q: "what a token looks for", K: "what a token shows", V: "what a token passes on" };
const PACE = 1100; // milliseconds for each head

const START = { algorithm: "lloyd", k: 3, seed: 0, layer: 0, head: "" };
let memory = { ...START };

export default async function circuits(place: HTMLElement): Promise<() => void> {
  return new Circuits(place).start();
}

class Circuits {
  asked = { ...memory };
  points: [number, number][] | null = null; // moved by hand
  circuit: Circuit | null = null;
  linked: { points: number; centres: number } = { points: -1, centres: -1 };
  held = -1;
  timer = 0;
  loading = false;
  late = false; // points have moved since the circuit was asked for
  pictures: Picture[] = [];
  body = h("div", { class: "stack" }, h("p", { class: "empty" }, "Building the circuit…"));
  trouble = h("div", { role: "alert" });
  parts = h("dl", { class: "parts" });

  constructor(private place: HTMLElement) {
    const { state } = readAddress();
    for (const [name, value] of state) if (name in START) Object.assign(this.asked, { [name]: typeof START[name as keyof typeof START] === "number" ? +value : value });
  }

  async start(): Promise<() => void> {
    fill(
      this.place,
      h(
        "div",
        { class: "intro" },
        h("h1", {}, "A transformer that is k‑means"),
        h("p", {}, "No training: every weight is set by hand. Points and centres are tokens with named slots; heads read and write those slots, and one layer is one iteration. Press Play, or drag a point."),
      ),
      this.trouble,
      h("div", { class: "split" }, this.controls(), this.body),
    );
    await this.load();
    return () => {
      this.stop();
      this.clear();
    };
  }

  controls(): HTMLElement {
    const change = <K extends "algorithm" | "k" | "seed">(name: K) => (value: string | number) => {
      Object.assign(this.asked, { [name]: value });
      this.points = null;
      void this.load();
    };
    return h(
      "section",
      { class: "panel", "aria-label": "Which circuit" },
      choice("Algorithm", ALGORITHMS, this.asked.algorithm, change("algorithm")),
      slider("Clusters", { min: 1, max: 6, step: 1, value: this.asked.k }, (v) => String(v), change("k")),
      button("New random points", () => change("seed")(this.asked.seed + 1)),
      h("hr"),
      h("h3", {}, "What it is made of"),
      this.parts,
      h("p", { class: "note" }, "A row of Table 1 in Clarkson 2025. SMA is softmax attention; LSMA its limit, which looks at the best match alone. ℓ2 matches by distance, ⟨·⟩ by dot product."),
    );
  }

  async load() {
    const { algorithm, k, seed } = this.asked;
    this.loading = true;
    this.late = false;
    try {
      const body = JSON.stringify({ algorithm, k, seed, points: this.points });
      this.circuit = await ask<Circuit>("/api/circuit", { method: "POST", headers: { "content-type": "application/json" }, body });
    } catch (error) {
      replace(this.trouble, h("p", { class: "notice bad" }, `The circuit could not be made: ${(error as Error).message}`));
      if (!this.circuit) replace(this.body);
      return;
    } finally {
      this.loading = false;
    }
    replace(this.trouble);
    this.asked.layer = Math.min(this.asked.layer, this.circuit.steps.length - 1);
    if (!(this.asked.head in this.circuit.heads)) this.asked.head = this.order[0];
    replace(this.parts, ...Object.entries(this.circuit.parts).flatMap(([name, part]) => [h("dt", {}, PARTS[name] ?? name), h("dd", {}, part === "-" ? "none" : part)]));
    this.show();
    if (this.late) void this.load();
  }

  get order(): string[] {
    return Object.keys(this.circuit!.heads);
  }

  show() {
    this.clear();
    const { circuit } = this;
    if (!circuit) return;
    const made = (one: Picture) => (this.pictures.push(one), one.element);
    const { layer, head: name } = this.asked;
    const head = circuit.heads[name];
    const now = circuit.steps[layer];
    const groups = Object.entries(circuit.slots).map(([slot, [at]]) => ({ at, name: slot }));
    const [plain, paper] = NAMES[name];
    const link = (who: "points" | "centres", i: number) => this.link({ points: -1, centres: -1, [who]: i });
    const heat = (values: number[][], label: string, cell: number, most: number) => made(matrix(label, () => values, { groups, cell, most }));
    const stream = (who: "points" | "centres", when: "before" | "after") =>
      made(matrix(`${who} ${when}`, () => now[when][who], { groups, cell: 30, most: who === "points" ? 300 : 120, marked: () => [this.linked[who], -1], over: (row) => link(who, row) }));
    const attention = matrix("Attention", () => now.attention[name], {
      cell: head.keys === "centres" ? 64 : 34,
      most: head.queries === "points" ? 364 : 130,
      marked: () => [this.linked[head.queries], head.keys === head.queries ? -1 : this.linked[head.keys]],
      over: (row, column) => this.link(head.queries === head.keys ? { points: -1, centres: -1, [head.queries]: row } : ({ [head.queries]: row, [head.keys]: column } as typeof this.linked)),
    });
    const layers = slider("Layer", { min: 1, max: circuit.steps.length, step: 1, value: layer + 1 }, (v) => `${v} of ${circuit.steps.length}`, (v) => this.go(v - 1, this.asked.head));
    const picturePart = picture("Points and centres", (w) => Math.min(460, Math.max(280, w * 0.72)), (c, w, t) => drawCircuit(c, w, t, this.circuit!, this.asked, this.linked));
    this.hold(picturePart);
    replace(
      this.body,
      this.pipeline(),
      h(
        "div",
        { class: "two" },
        h(
          "section",
          { class: "panel" },
          h("header", {}, h("h2", {}, circuit.algorithm), h("small", {}, "rings: centres before; numbers: after")),
          made(picturePart),
          h(
            "div",
            { class: "player" },
            button(this.timer ? "Pause" : "Play", () => this.toggle(), { class: "main" }),
            button("◀", () => (this.stop(), this.move(-1)), { "aria-label": "Previous head", class: "step", disabled: this.at === 0 }),
            button("▶", () => (this.stop(), this.move(1)), { "aria-label": "Next head", class: "step", disabled: this.at === this.last }),
            layers,
          ),
        ),
        h(
          "section",
          { class: "panel" },
          h("header", {}, h("h2", {}, plain), h("small", {}, paper)),
          h("p", {}, `${head.does}.`),
          h("figure", {}, made(attention), h("figcaption", {}, `Attention: a row for each of the ${head.queries}, a column for each of the ${head.keys}.`)),
        ),
      ),
      h(
        "section",
        { class: "panel" },
        h("header", {}, h("h2", {}, `Weights of “${plain}”`), h("small", {}, "blue above zero, orange below")),
        h("div", { class: "matrices" }, ...(["Q", "K", "V"] as const).map((symbol) => h("figure", {}, heat(head[symbol], symbol, 34, 380), h("figcaption", {}, `${symbol}: ${WORDS[symbol]}`)))),
      ),
      h(
        "section",
        { class: "panel" },
        h("header", {}, h("h2", {}, "Residual stream"), h("small", {}, "a row for each token, a column for each coordinate of its slots")),
        h(
          "div",
          { class: "streams" },
          ...(["points", "centres"] as const).flatMap((who) => (["before", "after"] as const).map((when) => h("figure", {}, stream(who, when), h("figcaption", {}, `${who}, ${when} layer ${layer + 1}`)))),
        ),
      ),
    );
    memory = { ...this.asked };
    if (readAddress().view === "circuits") writeAddress("circuits", Object.fromEntries(Object.entries(this.asked).map(([key, value]) => [key, value === START[key as keyof typeof START] ? null : value])));
  }

  /** The heads in their order, the one that acts lit. */
  pipeline(): HTMLElement {
    return h(
      "div",
      { class: "pipeline", role: "group", "aria-label": "Heads" },
      ...this.order.map((name) => {
        const [plain, paper] = NAMES[name];
        const { queries, keys } = this.circuit!.heads[name];
        return h(
          "button",
          { type: "button", title: paper, "aria-pressed": String(name === this.asked.head), "data-head": name, onclick: () => (this.stop(), this.go(this.asked.layer, name)) },
          h("strong", {}, plain),
          h("small", {}, queries === keys ? `${queries} → themselves` : `${queries} → ${keys}`),
        );
      }),
    );
  }

  // steps ----------------------------------------------------------------------------------------------------------

  get at(): number {
    return this.asked.layer * this.order.length + this.order.indexOf(this.asked.head);
  }

  get last(): number {
    return this.circuit!.steps.length * this.order.length - 1;
  }

  move(by: number) {
    const at = Math.max(0, Math.min(this.last, this.at + by));
    this.go(Math.floor(at / this.order.length), this.order[at % this.order.length]);
  }

  go(layer: number, head: string) {
    const focused = document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.getAttribute("data-head");
    Object.assign(this.asked, { layer, head });
    this.show();
    if (focused) this.body.querySelector<HTMLElement>(`[aria-label="${focused}"], [data-head="${focused}"]`)?.focus();
  }

  toggle() {
    if (this.timer) this.stop();
    else {
      if (this.at === this.last) this.go(0, this.order[0]);
      this.timer = window.setInterval(() => {
        this.move(1);
        if (this.at === this.last) this.stop();
      }, PACE);
    }
    this.show();
  }

  stop() {
    if (!this.timer) return;
    clearInterval(this.timer);
    this.timer = 0;
    const play = this.body.querySelector(".player .main");
    if (play) play.textContent = "Play";
  }

  // the picture ----------------------------------------------------------------------------------------------------

  link(next: typeof this.linked) {
    if (next.points === this.linked.points && next.centres === this.linked.centres) return;
    this.linked = next;
    for (const one of this.pictures) one.redraw();
  }

  /** Points can be taken hold of; the circuit is made anew as they move. */
  hold(made: Picture) {
    const { element } = made;
    const spot = (event: PointerEvent) => {
      const { left, top, width, height } = element.getBoundingClientRect();
      const { f, box, place } = frameOf(this.circuit!, width, height);
      const [x, y] = [event.clientX - left, event.clientY - top];
      const near = this.circuit!.points.map(([a, b], i) => ({ i, r: (f.X(a) - x) ** 2 + (f.Y(b) - y) ** 2 })).sort((a, b) => a.r - b.r)[0];
      const data: [number, number] = [box.x0 + ((x - place.left) / (place.right - place.left)) * (box.x1 - box.x0), box.y1 - ((y - place.top) / (place.bottom - place.top)) * (box.y1 - box.y0)];
      return { point: near.r < 220 ? near.i : -1, data };
    };
    element.style.touchAction = "none";
    element.style.cursor = "grab";
    element.addEventListener("pointerdown", (event) => {
      this.held = spot(event).point;
      if (this.held >= 0) document.addEventListener("pointerup", () => (this.held = -1), { once: true });
    });
    element.addEventListener("pointermove", (event) => {
      const { point, data } = spot(event);
      if (this.held < 0 || !event.buttons) return this.link({ points: point, centres: -1 });
      const points = this.points ?? this.circuit!.points.map((p): [number, number] => [...p]);
      points[this.held] = data;
      this.points = points;
      this.late = true;
      if (!this.loading) void this.load();
    });
  }

  clear() {
    for (const one of this.pictures) one.close();
    this.pictures = [];
  }
}
