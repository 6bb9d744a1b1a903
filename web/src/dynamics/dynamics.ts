/** Dynamics: choose an attention, and see where it carries a cloud of tokens. */
import { axes, curves, dots, picture, type Picture } from "../canvas";
import { ask, button, choice, fill, h, replace, slider, tick } from "../dom";
import { colours } from "../theme";
import { ATTENTIONS, cloud, covariance, covariancePath, energy, entropy, hasClosedForm, I, step, type Matrix, type Setting } from "./attention";
import { cone, fateColour, type Strand } from "./cone";

const VALUES: Record<string, [words: string, V: Matrix]> = {
  contract: ["V = −I", [-1, 0, 0, -1]],
  expand: ["V = I", [1, 0, 0, 1]],
  turn: ["V = quarter turn", [0, -1, 1, 0]],
  saddle: ["V = diag(1, −1)", [1, 0, 0, -1]],
  project: ["V = diag(−1, 0)", [-1, 0, 0, 0]],
};
const SCORES: Record<string, [words: string, Q: Matrix, K: Matrix]> = {
  identity: ["Q = K = I", I, I],
  sharp: ["Q = K = 1.5 I", [1.5, 0, 0, 1.5], [1.5, 0, 0, 1.5]],
  uneven: ["Q = K = diag(1.4, 0.4)", [1.4, 0, 0, 0.4], [1.4, 0, 0, 0.4]],
  opposed: ["Q = −I, K = I", [-1, 0, 0, -1], I],
  turned: ["Q = quarter turn, K = I", [0, -1, 1, 0], I],
};
const CLOUDS: [string, string][] = [["gauss", "one Gaussian"], ["blobs", "three groups"], ["ring", "a ring"]];
const H = 0.04; // time of one frame
const PACE = 30; // milliseconds between frames, at least
const FAR = 1e3; // a token beyond this has left

interface Job {
  id: string;
  state: string;
  progress: number;
  reason?: string;
  result?: { times: number[]; points: number[][][]; entropy?: (number | null)[]; divergence: string; blow_up_time: number | null };
}

export default function dynamics(place: HTMLElement): () => void {
  return new Dynamics(place).start();
}

class Dynamics {
  set: Setting = { attention: "l2", Q: I, K: I, V: VALUES.expand[1], epsilon: 1, relative: true };
  kind = "blobs";
  n = 240;
  seed = 1;
  x: Float64Array = new Float64Array();
  t = 0;
  history = { t: [] as number[], entropy: [] as number[], energy: [] as number[], covariances: [] as Matrix[] };
  strands: Strand[] = [];
  frame = 0;
  over = "";
  job: { id: string; stopped: boolean } | null = null;
  reel: NonNullable<Job["result"]> | null = null;
  pictures: Picture[] = [];

  play = button("Play", () => this.toggle(), { class: "main" });
  clock = h("small", { role: "status" });
  ending = h("p", { class: "note" });
  about = h("p", { class: "note" });
  served = h("div", { class: "stack", style: "gap: 10px" });

  constructor(private place: HTMLElement) {}

  start(): () => void {
    const particles = picture("Tokens now", (w) => Math.min(460, Math.max(280, w * 0.8)), (c, w, t) => this.drawTokens(c, w, t));
    const one = (name: "entropy" | "energy", colour: () => string) =>
      curves(name, () => [{ name, colour, x: this.history.t, y: this.history[name] }], () => null);
    const entropyCurve = one("entropy", () => colours.clusters[0]);
    const energyCurve = one("energy", () => colours.clusters[1]);
    const cones = cone(() => this.strands.concat({ path: this.history.covariances, fate: "particles" }));
    this.pictures = [particles, entropyCurve, energyCurve, cones];
    const figure = (made: Picture, words: string) => h("figure", {}, made.element, h("figcaption", {}, words));
    fill(
      this.place,
      h(
        "div",
        { class: "intro" },
        h("h1", {}, "Attention is a velocity field"),
        h("p", {}, "Each token moves along what it attends to. Choose score, normaliser and value, and see the cloud gather, spread or leave."),
      ),
      h(
        "div",
        { class: "split" },
        this.controls(),
        h(
          "div",
          { class: "stack" },
          h(
            "div",
            { class: "two", style: "grid-template-columns: repeat(auto-fit, minmax(min(100%, 330px), 1fr))" },
            h(
              "section",
              { class: "panel" },
              h("header", {}, h("h2", {}, "Tokens"), this.clock),
              particles.element,
              h("div", { class: "row" }, this.play, button("Step", () => this.advance()), button("Start again", () => this.reset()), button("Other cloud", () => (this.seed++, this.reset()))),
              this.ending,
            ),
            h(
              "section",
              { class: "panel" },
              h("header", {}, h("h2", {}, "Covariances in their cone"), h("small", {}, "drag or use ← →")),
              cones.element,
              this.legend(),
              this.about,
            ),
          ),
          h(
            "div",
            { class: "three" },
            h("section", { class: "panel" }, h("header", {}, h("h2", {}, "Entropy")), figure(entropyCurve, "How spread out the tokens are, over time.")),
            h("section", { class: "panel" }, h("header", {}, h("h2", {}, "Energy, logarithm")), figure(energyCurve, "Half the mean of exp(score) over all pairs.")),
            h("section", { class: "panel" }, h("header", {}, h("h2", {}, "A larger run"), h("small", {}, "on this machine")), this.served),
          ),
        ),
      ),
    );
    this.showServer();
    this.reset();
    this.toggle();
    return () => this.close();
  }

  legend(): HTMLElement {
    const entry = (fate: Strand["fate"], words: string) => h("span", {}, h("i", { style: `background:${fateColour(fate)}` }), words);
    return h("div", { class: "legend" }, entry("settles", "settles"), entry("blows up", "blows up"), entry("moving", "still moving"), entry("particles", "these tokens"));
  }

  controls(): HTMLElement {
    const change = (edit: () => void) => {
      edit();
      this.reset();
    };
    const named = (table: Record<string, [string, ...unknown[]]>): [string, string][] => Object.entries(table).map(([key, [words]]) => [key, words]);
    const epsilon = slider("epsilon", { min: 0.2, max: 3, step: 0.1, value: 1 }, (v) => v.toFixed(1), (v) => change(() => (this.set.epsilon = v)));
    const showEpsilon = () => epsilon.toggleAttribute("hidden", !["sinkhorn", "linear-epsilon"].includes(this.set.attention));
    epsilon.style.display = "";
    const attention = choice("Attention", ATTENTIONS, this.set.attention, (v) =>
      change(() => {
        this.set.attention = v;
        showEpsilon();
      }),
    );
    showEpsilon();
    return h(
      "section",
      { class: "panel", "aria-label": "Which attention" },
      attention,
      epsilon,
      choice("Scores", named(SCORES), "identity", (v) => change(() => ([, this.set.Q, this.set.K] = SCORES[v]))),
      choice("Values", named(VALUES), "expand", (v) => change(() => ([, this.set.V] = VALUES[v]))),
      tick("Minus the token itself", this.set.relative, (v) => change(() => (this.set.relative = v))),
      h("p", { class: "note" }, "With L2 scores and V = I this is mean shift: tokens climb to where the cloud is densest."),
      h("hr"),
      choice("First cloud", CLOUDS, this.kind, (v) => change(() => (this.kind = v))),
      slider("Tokens", { min: 40, max: 500, step: 20, value: this.n }, (v) => String(v), (v) => change(() => (this.n = v))),
    );
  }

  // in the browser -----------------------------------------------------------------------------------------------

  reset() {
    this.reel = null;
    this.x = cloud(this.kind, this.n, this.seed);
    this.t = 0;
    this.over = "";
    this.history = { t: [], entropy: [], energy: [], covariances: [] };
    this.note();
    this.fates();
    this.redraw();
  }

  fates() {
    this.strands = [];
    if (hasClosedForm(this.set.attention)) {
      for (const z of [0.5, 1.1, 1.7])
        for (let k = 0; k < 8; k++) {
          const [a, b] = [0.75 * z * Math.cos((k * Math.PI) / 4), 0.75 * z * Math.sin((k * Math.PI) / 4)];
          this.strands.push(covariancePath(this.set, [z + a, b, b, z - a]));
        }
      const gone = this.strands.filter((s) => s.fate === "blows up").length;
      this.about.textContent = `Of ${this.strands.length} Gaussians, flowed exactly, ${gone ? `${gone} leave for infinity` : "none leaves for infinity"}.`;
    } else this.about.textContent = "This attention does not keep a Gaussian Gaussian, so only the tokens' own covariance is drawn.";
  }

  note() {
    const { t, entropy: e, energy: g, covariances } = this.history;
    t.push(this.t);
    e.push(entropy(this.x));
    g.push(energy(this.set, this.x));
    covariances.push(covariance(this.x));
  }

  advance() {
    if (this.over) return;
    if (this.reel) return this.unreel();
    const next = step(this.set, this.x, H);
    this.t += H;
    if (next.some((v) => !(Math.abs(v) < FAR))) {
      this.over = `The tokens left for infinity at about t = ${this.t.toFixed(2)}.`;
      this.pause();
    } else {
      this.x = next;
      if (Math.round(this.t / H) % 2 === 0) this.note();
      if (this.t > 12) {
        this.over = "It has flowed long enough to see where it goes.";
        this.pause();
      }
    }
    this.redraw();
  }

  toggle() {
    if (this.frame) return this.pause();
    if (this.over) this.reset();
    this.play.textContent = "Pause";
    let last = 0;
    const tickle = (now: number) => {
      this.frame = requestAnimationFrame(tickle);
      if (now - last < PACE) return;
      last = now;
      this.advance();
    };
    this.frame = requestAnimationFrame(tickle);
  }

  pause() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.play.textContent = "Play";
  }

  redraw() {
    this.clock.textContent = `t = ${this.t.toFixed(2)}`;
    this.ending.textContent = this.over;
    for (const one of this.pictures) one.redraw();
  }

  drawTokens(c: CanvasRenderingContext2D, width: number, height: number) {
    const reach = Math.max(2.6, quantile(this.x, 0.98)) * 1.15;
    const aspect = (height - 32) / (width - 50);
    const box = { x0: -reach, x1: reach, y0: -reach * aspect, y1: reach * aspect };
    const f = axes(c, box, { left: 42, top: 6, right: width - 6, bottom: height - 26 }, ["", ""]);
    c.save();
    c.beginPath();
    c.rect(42, 6, width - 48, height - 32);
    c.clip();
    const groups = this.kind === "blobs" && !this.reel ? 3 : 1;
    dots(c, f, this.x, (i) => i % groups, 3, 0.75);
    c.restore();
  }

  // on the server ------------------------------------------------------------------------------------------------

  showServer(job?: Job) {
    const running = job && !["done", "failed", "cancelled"].includes(job.state);
    const words = !job
      ? "Flow 1,000 tokens with the library itself: adaptive steps, and the time of a blow-up."
      : job.state === "failed"
        ? `It could not run: ${job.reason}`
        : job.state === "cancelled"
          ? "Cancelled."
          : job.state === "done"
            ? job.result!.divergence === "finite time"
              ? `Blow-up in finite time, at t = ${job.result!.blow_up_time!.toFixed(4)}.`
              : `Done: ${job.result!.points.length} states, shown above.`
            : `${job.state}: ${(100 * job.progress).toFixed(0)} %`;
    replace(
      this.served,
      h("p", { class: "note", "data-job": job?.state ?? "none" }, words),
      running && h("progress", { max: 1, value: job.progress, "aria-label": "Progress" }),
      running ? button("Cancel", () => void ask(`/api/simulate/${job.id}`, { method: "DELETE" }).catch(() => {})) : button("Run it", () => void this.simulate()),
    );
  }

  async simulate() {
    if (this.job) this.job.stopped = true;
    this.pause(); // the machine has better things to do
    const rows = (M: Matrix) => [M.slice(0, 2), M.slice(2)];
    const { attention, Q, K, V, epsilon, relative } = this.set;
    const asked = { attention, Q: rows(Q), K: rows(K), V: rows(V), epsilon, relative, n: 1000, time: 4, layers: 40, seed: this.seed };
    const options = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(asked) };
    try {
      let job = await ask<Job>("/api/simulate", options);
      const mine = (this.job = { id: job.id, stopped: false });
      while (!mine.stopped && ["waiting", "running"].includes(job.state)) {
        this.showServer(job);
        await new Promise((resolve) => setTimeout(resolve, 250));
        job = await ask<Job>(`/api/simulate/${job.id}`);
      }
      if (mine.stopped) return;
      this.showServer(job);
      if (job.result) this.load(job.result);
    } catch (error) {
      this.showServer({ id: "", state: "failed", progress: 0, reason: (error as Error).message });
    }
  }

  load(result: NonNullable<Job["result"]>) {
    this.pause();
    this.reel = result;
    this.over = "";
    this.history = { t: [], entropy: [], energy: [], covariances: [] };
    this.toggle();
  }

  /** The next state of a run that the server made. */
  unreel() {
    const { times, points, entropy: e } = this.reel!;
    const at = this.history.t.length;
    if (at >= points.length) {
      this.over = "This is the end of the run.";
      this.pause();
    } else {
      this.x = Float64Array.from(points[at].flat());
      this.t = times[at];
      this.history.t.push(this.t);
      this.history.entropy.push(e?.[at] ?? NaN);
      this.history.energy.push(energy(this.set, this.x.subarray(0, 800)));
      this.history.covariances.push(covariance(this.x));
    }
    this.redraw();
  }

  close() {
    this.pause();
    if (this.job) {
      this.job.stopped = true;
      void fetch(`/api/simulate/${this.job.id}`, { method: "DELETE" }).catch(() => {});
    }
    for (const one of this.pictures) one.close();
  }
}

function quantile(x: Float64Array, q: number): number {
  const sorted = x.map(Math.abs).sort();
  return sorted[Math.floor(q * (sorted.length - 1))];
}
