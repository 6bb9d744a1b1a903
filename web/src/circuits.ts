/** Circuits: a transformer with weights set by hand that is k-means, one head after another. */
import { axes, boxOf, dots, line, mark, matrix, picture, type Picture } from "./canvas";
import { ask, button, choice, fill, h, replace, slider } from "./dom";
import { clusterColour, colours } from "./theme";

interface Head {
  Q: number[][];
  K: number[][];
  V: number[][];
  queries: string;
  keys: string;
  does: string;
}

interface Stream {
  points: number[][];
  centres: number[][];
}

interface Circuit {
  algorithm: string;
  parts: Record<string, string>;
  slots: Record<string, [number, number]>;
  heads: Record<string, Head>;
  points: number[][];
  steps: { before: Stream; after: Stream; attention: Record<string, number[][]> }[];
}

const NAMES: Record<string, string> = { enc_sa: "Enc-SA", enc_ca: "Enc-CA", enc_ca2: "Enc-CA, second", dec_sa: "Dec-SA", dec_ca: "Dec-CA" };
const ALGORITHMS: [string, string][] = [
  ["lloyd", "k-means (Lloyd)"],
  ["soft", "soft k-means"],
  ["spherical", "spherical k-means"],
  ["trimmed", "trimmed k-means"],
  ["robust", "robust k-means"],
  ["medoids", "k-medoids"],
];

export default async function circuits(place: HTMLElement): Promise<() => void> {
  return new Circuits(place).start();
}

class Circuits {
  asked = { algorithm: "lloyd", k: 3, seed: 0 };
  circuit: Circuit | null = null;
  layer = 0;
  head = "enc_ca";
  pictures: Picture[] = [];
  body = h("div", { class: "stack" }, h("p", { class: "empty" }, "Building the circuit…"));
  trouble = h("div", { role: "alert" });

  constructor(private place: HTMLElement) {}

  async start(): Promise<() => void> {
    fill(
      this.place,
      h(
        "div",
        { class: "intro" },
        h("h1", {}, "A transformer that is k-means"),
        h(
          "p",
          {},
          "No training: every weight is set by hand. Points and centres are tokens with named slots; four attention heads read and ",
          "write those slots, and one layer is one iteration. Step through it.",
        ),
      ),
      this.trouble,
      h("div", { class: "split" }, this.controls(), this.body),
    );
    await this.load();
    return () => this.clear();
  }

  controls(): HTMLElement {
    const change = <K extends keyof Circuits["asked"]>(name: K) => (value: string | number) => {
      this.asked = { ...this.asked, [name]: value };
      void this.load();
    };
    return h(
      "section",
      { class: "panel", "aria-label": "Which circuit" },
      choice("Algorithm", ALGORITHMS, this.asked.algorithm, change("algorithm")),
      slider("Clusters", { min: 1, max: 6, step: 1, value: this.asked.k }, (v) => String(v), change("k")),
      button("Other points", () => change("seed")(this.asked.seed + 1)),
      h("hr"),
      h("dl", { class: "parts", id: "parts" }),
    );
  }

  async load() {
    try {
      const query = new URLSearchParams(Object.entries(this.asked).map(([key, value]) => [key, String(value)]));
      this.circuit = await ask<Circuit>(`/api/circuit?${query}`);
    } catch (error) {
      replace(this.trouble, h("p", { class: "notice bad" }, `The circuit could not be made: ${(error as Error).message}`));
      return;
    }
    replace(this.trouble);
    this.layer = Math.min(this.layer, this.circuit.steps.length - 1);
    if (!(this.head in this.circuit.heads)) this.head = "enc_ca";
    replace(
      this.place.querySelector("#parts")!,
      ...Object.entries(this.circuit.parts).flatMap(([name, part]) => [h("dt", {}, name), h("dd", {}, part)]),
    );
    this.show();
  }

  show() {
    this.clear();
    const { circuit } = this;
    if (!circuit) return;
    const made = (one: Picture) => (this.pictures.push(one), one.element);
    const head = circuit.heads[this.head];
    const now = circuit.steps[this.layer];
    const groups = Object.entries(circuit.slots).map(([name, [at]]) => ({ at, name }));
    const heat = (values: number[][], label: string, cell = 17, most = 380) => made(matrix(label, () => values, { groups, cell, most }));
    const attention = now.attention[this.head];
    const layers = slider(
      "Layer",
      { min: 1, max: circuit.steps.length, step: 1, value: this.layer + 1 },
      (v) => `${v} of ${circuit.steps.length}`,
      (v) => this.go(v - 1, this.head),
    );
    replace(
      this.body,
      h(
        "div",
        { class: "two" },
        h(
          "section",
          { class: "panel" },
          h("header", {}, h("h2", {}, circuit.algorithm), h("small", {}, "rings: centres before, crosses: after")),
          made(picture("Points and centres", (w) => Math.min(430, Math.max(260, w * 0.7)), (c, w, t) => this.drawPoints(c, w, t))),
          h(
            "div",
            { class: "player", style: "grid-template-columns: auto auto minmax(0, 1fr)" },
            button("Back", () => this.move(-1), { "aria-label": "Previous head", disabled: this.first }),
            button("Next", () => this.move(1), { class: "main", "aria-label": "Next head", disabled: this.last }),
            layers,
          ),
        ),
        h(
          "section",
          { class: "panel" },
          h("header", {}, h("h2", {}, "The head that acts")),
          h(
            "div",
            { class: "heads", role: "group", "aria-label": "Heads" },
            ...Object.keys(circuit.heads).map((name) =>
              button(NAMES[name], () => this.go(this.layer, name), { "aria-pressed": String(name === this.head) }),
            ),
          ),
          h("p", {}, `${NAMES[this.head]}: ${head.does}.`),
          h(
            "figure",
            {},
            made(matrix("Attention", () => attention, { cell: 26, most: 260 })),
            h("figcaption", {}, `Attention: a row for each of the ${head.queries}, a column for each of the ${head.keys}.`),
          ),
        ),
      ),
      h(
        "section",
        { class: "panel" },
        h("header", {}, h("h2", {}, `Weights of ${NAMES[this.head]}`), h("small", {}, "blue above zero, orange below")),
        h(
          "div",
          { class: "matrices" },
          ...(["Q", "K", "V"] as const).map((name) => h("figure", {}, heat(head[name], name, 26), h("figcaption", {}, `${name}: ${WORDS[name]}`))),
        ),
      ),
      h(
        "section",
        { class: "panel" },
        h("header", {}, h("h2", {}, "Residual stream"), h("small", {}, "a row for each token, a column for each coordinate of its slots")),
        h(
          "div",
          { class: "streams" },
          ...(["points", "centres"] as const).flatMap((who) =>
            (["before", "after"] as const).map((when) =>
              h("figure", {}, heat(now[when][who], `${who} ${when}`, 30, who === "points" ? 300 : 120), h("figcaption", {}, `${who}, ${when} layer ${this.layer + 1}`)),
            ),
          ),
        ),
      ),
    );
  }

  get order(): string[] {
    return Object.keys(this.circuit!.heads);
  }

  get first(): boolean {
    return this.layer === 0 && this.head === this.order[0];
  }

  get last(): boolean {
    return this.layer === this.circuit!.steps.length - 1 && this.head === this.order.at(-1);
  }

  move(by: number) {
    const at = this.layer * this.order.length + this.order.indexOf(this.head) + by;
    this.go(Math.floor(at / this.order.length), this.order[at % this.order.length]);
    this.place.querySelector<HTMLElement>(by > 0 ? "button.main" : '[aria-label="Previous head"]')?.focus();
  }

  go(layer: number, head: string) {
    const focused = document.activeElement instanceof HTMLInputElement;
    [this.layer, this.head] = [layer, head];
    this.show();
    if (focused) this.body.querySelector<HTMLElement>("input[type=range]")?.focus();
  }

  drawPoints(c: CanvasRenderingContext2D, width: number, height: number) {
    const { points, steps, slots } = this.circuit!;
    const now = steps[this.layer];
    const place = (token: number[]) => token.slice(...slots.point);
    const [before, after] = [now.before, now.after].map((stream) => stream.centres.map(place));
    const f = axes(c, boxOf([...points, ...before, ...after].flat(), 0.12), { left: 34, top: 6, right: width - 6, bottom: height - 24 }, ["", ""]);
    const label = now.after.points.map((token) => {
      const share = token.slice(...slots.assignment);
      return share.indexOf(Math.max(...share));
    });
    const A = now.attention[this.head];
    const { queries, keys } = this.circuit!.heads[this.head];
    if (queries !== keys) {
      const largest = Math.max(...A.flat());
      A.forEach((row, i) =>
        row.forEach((a, j) => {
          if (a < 0.02 * largest) return;
          const [x, y] = queries === "points" ? [points[i], before[j]] : [points[j], before[i]];
          c.strokeStyle = clusterColour(queries === "points" ? j : i);
          c.globalAlpha = 0.5 * (a / largest);
          c.lineWidth = 1.2;
          line(c, f.X(x[0]), f.Y(x[1]), f.X(y[0]), f.Y(y[1]));
        }),
      );
      c.globalAlpha = 1;
    }
    dots(c, f, points.flat(), (i) => label[i], 4);
    before.forEach(([x, y], k) => {
      c.strokeStyle = clusterColour(k);
      c.fillStyle = colours.paper;
      c.lineWidth = 2;
      c.beginPath();
      c.arc(f.X(x), f.Y(y), 6, 0, 2 * Math.PI);
      c.fill();
      c.stroke();
      if (this.head !== "dec_ca") return;
      line(c, f.X(x), f.Y(y), f.X(after[k][0]), f.Y(after[k][1]));
    });
    if (this.head === "dec_ca") after.forEach(([x, y], k) => mark(c, f.X(x), f.Y(y), k, 8));
  }

  clear() {
    for (const one of this.pictures) one.close();
    this.pictures = [];
  }
}

const WORDS = { Q: "what a token looks for", K: "what a token shows", V: "what a token passes on" };
