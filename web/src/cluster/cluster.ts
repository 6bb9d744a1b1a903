/** Cluster: drop a table, turn the dial, and watch tokens find the clusters layer by layer. */
import { axes as drawAxes, boxOf, dots, mark, picture, type Box, type Picture } from "../canvas";
import { ask, button, choice, download, fill, h, percent, replace, slider, tick } from "../dom";
import { nearest, variance, type Points } from "../numbers";
import { parse, readFile, withLabels, type Table } from "../table";
import { clusterColour, colours } from "../theme";
import { axisChoices, prepare, SAMPLE, type Prepared } from "./data";
import { atoms, matched } from "./merge";
import { Runner, type Model, type Path } from "./model";
import { kmeans, mixtureByBic, shares, type Clustering } from "./peers";

interface Fitted {
  labels: number[];
  weights: number[];
  cluster_centers: number[][];
  n_clusters: number;
  snr_db: number;
  notes: string[];
}

/** What is remembered while another view is open. */
const memory: { table: Table | null } = { table: null };

export default async function cluster(place: HTMLElement): Promise<() => void> {
  const [models, examples] = await Promise.all([
    ask<Model[]>("/api/models"),
    ask<{ name: string; title: string }[]>("/api/examples"),
  ]);
  if (!models.length) {
    replace(place, h("p", { class: "notice bad" }, "This installation ships no exported model; `make web` exports them."));
    return () => {};
  }
  return new Cluster(place, models, examples).start();
}

class Cluster {
  model: Model;
  table: Table | null = null;
  columns: number[] = [];
  scaled = true;
  axes: [string, string] = ["", ""];
  data: Prepared | null = null;
  path: Path | null = null;
  layer = 0;
  found: Clustering | null = null;
  peers: { kmeans: Clustering | null; mixture: Clustering | null; server: (Clustering & { note: string }) | null } = {
    kmeans: null,
    mixture: null,
    server: null,
  };
  timer = 0;
  box: Box = { x0: 0, x1: 1, y0: 0, y1: 1 };
  pictures: Picture[] = [];
  runner = new Runner(
    (path) => this.flowed(path),
    (reason) => this.complain(`The model could not run: ${reason}`),
  );

  status = h("p", { class: "note", role: "status" });
  trouble = h("div", { role: "alert" });
  setup = h("div", { class: "stack" });
  count = h("div", { class: "count" });
  bars = h("ul", { class: "bars", "aria-label": "Weights of the clusters" });
  play = button("Play", () => this.toggle(), { class: "main" });
  dial: ReturnType<typeof slider>;
  radius: ReturnType<typeof slider>;
  layers: ReturnType<typeof slider>;
  main: Picture;
  fitButton = button("Fit on this machine", () => this.fit(), { title: "FlowMixture on every row, by the local server" });

  constructor(
    private place: HTMLElement,
    private models: Model[],
    private examples: { name: string; title: string }[],
  ) {
    this.model = models.find((m) => m.name === "any-dimension") ?? models[0];
    this.dial = slider("Signal to noise", this.range(), (v) => `${v.toFixed(1)} dB`, () => this.flow());
    this.radius = slider(
      "Tokens merge within",
      { min: 0.2, max: 4, step: 0.1, value: 2 },
      (v) => `${v.toFixed(1)} × noise`,
      () => this.look(),
    );
    this.layers = slider(
      "Layer",
      { min: 0, max: this.model.layers, step: 1, value: this.model.layers },
      (v) => `${v} of ${this.path?.layers ?? this.model.layers}`,
      (v) => (this.stop(), this.seek(v)),
    );
    this.main = this.scatter("Tokens at this layer", (w) => Math.min(520, Math.max(300, w * 0.66)), () => this.drawFlow);
  }

  range() {
    const { snr_low: min, snr_high: max } = this.model;
    return { min, max, step: 0.1, value: (min + max) / 2 };
  }

  async start(): Promise<() => void> {
    const intro = h(
      "div",
      { class: "intro" },
      h("h1", {}, "Watch a transformer find the clusters"),
      h(
        "p",
        {},
        "Every row of the table becomes a token. Layer after layer, attention moves the tokens until those of one cluster ",
        "stand on one spot: the number of clusters comes out, nobody puts it in. Your data stay in this browser.",
      ),
    );
    const small = (title: string, note: string, which: "kmeans" | "mixture" | "server", extra?: HTMLElement) => {
      const scatter = this.scatter(title, () => 210, () => (c, w, t) => this.drawPeer(c, w, t, which));
      return h("section", { class: "panel" }, h("header", {}, h("h2", {}, title), h("small", { "data-note": which }, note)), scatter.element, extra);
    };
    const result = h(
      "section",
      { class: "panel" },
      h("header", {}, h("h2", {}, "Clusters found")),
      this.count,
      this.bars,
      h("hr"),
      this.radius,
      h("p", { class: "note" }, "Two groups nearer than twice the noise make a single hump; nobody could tell them apart."),
      h(
        "div",
        { class: "row" },
        button("Save labels", () => this.saveLabels()),
        button("Save picture", () => this.savePicture()),
      ),
    );
    const flow = h(
      "section",
      { class: "panel" },
      h("header", {}, h("h2", {}, "Attention flow"), this.status),
      this.main.element,
      h("div", { class: "player" }, this.play, this.layers),
    );
    fill(
      this.place,
      intro,
      this.trouble,
      h(
        "div",
        { class: "split" },
        h("section", { class: "panel", "aria-label": "Data and dial" }, this.setup),
        h(
          "div",
          { class: "stack" },
          h("div", { class: "two" }, flow, result),
          h(
            "div",
            { class: "three" },
            small("k-means", "", "kmeans"),
            small("Gaussian mixture", "", "mixture"),
            small("FlowMixture", "every row, by the library itself", "server", h("div", { class: "row" }, this.fitButton)),
          ),
        ),
      ),
    );
    this.listen();
    if (memory.table) this.open(memory.table);
    else await this.example(this.examples[0].name);
    return () => this.close();
  }

  listen() {
    const on = (event: DragEvent) => {
      event.preventDefault();
      this.place.classList.toggle("dragging", event.type === "dragover");
      const file = event.type === "drop" ? event.dataTransfer?.files[0] : null;
      if (file) void this.read(file);
    };
    for (const kind of ["dragover", "dragleave", "drop"] as const) this.place.addEventListener(kind, on);
  }

  // data ---------------------------------------------------------------------------------------------------------

  async example(name: string) {
    try {
      const answer = await fetch(`/api/examples/${name}`);
      if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
      this.open(parse(await answer.text(), this.examples.find((e) => e.name === name)?.title ?? name));
    } catch (error) {
      this.complain((error as Error).message);
      this.showSetup();
    }
  }

  async read(file: File) {
    try {
      this.open(await readFile(file));
    } catch (error) {
      this.complain((error as Error).message);
    }
  }

  open(table: Table) {
    memory.table = this.table = table;
    this.complain("");
    this.columns = table.numeric.map((_, j) => j).filter((j) => !/^(year|id|index|row|)$/i.test(table.numeric[j].name)).slice(0, 8);
    if (!this.columns.length) this.columns = [0];
    this.defaultAxes();
    this.refresh();
  }

  defaultAxes() {
    const options = axisChoices(this.table!, this.columns);
    this.axes = [options[0][0], options[1]?.[0] ?? ""];
  }

  /** After a change of the data: what the model sees, the peers, the dial, and the flow. */
  refresh() {
    this.showSetup();
    this.stop();
    this.path = this.found = this.peers.server = null;
    replace(this.count, h("span", { class: "note" }, "flowing…"));
    replace(this.bars);
    try {
      this.data = prepare(this.table!, { columns: this.columns, scaled: this.scaled, axes: this.axes, dimension: this.model.d });
    } catch (error) {
      this.data = null;
      this.complain((error as Error).message);
      this.redraw();
      return;
    }
    const { input, all } = this.data;
    this.complain("");
    this.box = boxOf(this.data.shown(all.x, all.n));
    this.peers.kmeans = null;
    const mixture = mixtureByBic(input);
    this.peers.mixture = mixture;
    this.say("mixture", `K = ${mixture.centres.n}, by BIC`);
    this.say("server", "every row, by the library itself");
    const snr = 10 * Math.log10(Math.max(1e-3, variance(input) / mixture.noise - 1));
    this.dial.set(Math.min(this.model.snr_high, Math.max(this.model.snr_low, snr)));
    this.flow();
  }

  showSetup() {
    const input = h("input", { type: "file", accept: ".csv,.tsv,.txt,text/csv", "aria-label": "Choose a CSV file" });
    input.addEventListener("change", () => {
      if (input.files?.[0]) void this.read(input.files[0]);
      input.value = "";
    });
    const table = this.table;
    replace(
      this.setup,
      h(
        "div",
        { class: "drop" },
        h("strong", {}, table ? table.name : "No table yet"),
        h("span", { class: "note" }, table ? this.tableWords(table) : "Drop a CSV here, or take an example."),
        h(
          "div",
          { class: "row" },
          h("label", { class: "file" }, "Choose a CSV", input),
        ),
        h(
          "div",
          { class: "row examples" },
          h("span", { class: "note" }, "or"),
          ...this.examples.map((e) => button(e.title, () => void this.example(e.name), { class: "chip", "data-example": e.name })),
        ),
      ),
      table && this.tableControls(table),
    );
  }

  tableWords(table: Table): string {
    const rows = table.rows.length.toLocaleString("en");
    const numeric = table.numeric.length;
    return `${rows} rows, ${numeric} ${numeric === 1 ? "column" : "columns"} of numbers`;
  }

  tableControls(table: Table): HTMLElement {
    const columns = h("fieldset", {}, h("legend", {}, "Columns"));
    table.numeric.slice(0, 24).forEach((column, j) =>
      columns.append(
        tick(column.name, this.columns.includes(j), (on) => {
          const next = on ? [...this.columns, j].sort((a, b) => a - b) : this.columns.filter((c) => c !== j);
          if (next.length) this.columns = next;
          this.defaultAxes();
          this.refresh();
        }),
      ),
    );
    if (table.numeric.length > 24) columns.append(h("span", { class: "note" }, `and ${table.numeric.length - 24} more`));
    const options = axisChoices(table, this.columns);
    const axis = (words: string, which: 0 | 1) =>
      choice(words, options, this.axes[which], (value) => {
        this.axes[which] = value;
        if (this.model.d === 2) this.refresh();
        else this.reframe();
      });
    const model = choice("Model", this.models.map((m) => [m.name, m.name]), this.model.name, (name) => {
      this.model = this.models.find((m) => m.name === name)!;
      Object.assign(this.dial.input, { min: this.model.snr_low, max: this.model.snr_high });
      this.layers.input.max = String(this.model.layers);
      this.refresh();
    });
    const seen = this.model.d === 2 ? "This model sees the two axes shown." : "This model sees all the chosen columns.";
    return h(
      "div",
      { class: "stack", style: "gap: 14px" },
      this.dial,
      h("p", { class: "note" }, "The less noise you say there is, the shorter the flow and the finer the clusters."),
      h("div", { class: "pairs" }, axis("Across", 0), this.axes[1] ? axis("Up", 1) : null),
      model,
      h("p", { class: "note" }, seen),
      columns,
      tick("Scale columns alike", this.scaled, (on) => {
        this.scaled = on;
        this.refresh();
      }),
    );
  }

  /** Other axes for the same flow. */
  reframe() {
    this.data = prepare(this.table!, { columns: this.columns, scaled: this.scaled, axes: this.axes, dimension: this.model.d });
    this.box = boxOf(this.data.shown(this.data.all.x, this.data.all.n));
    this.redraw();
  }

  // flow ---------------------------------------------------------------------------------------------------------

  flow() {
    if (!this.data) return;
    const { input } = this.data;
    this.status.textContent = "flowing…";
    const model = `/models/${this.model.name}.onnx`;
    this.runner.ask({ model, points: Float32Array.from(input.x), n: input.n, d: input.d, snr: +this.dial.input.value });
  }

  flowed(path: Path) {
    if (!this.data || path.n !== this.data.input.n || path.d !== this.data.input.d) return;
    const atEnd = !this.path || this.layer >= this.path.layers;
    this.path = path;
    this.layers.input.max = String(path.layers);
    const sampled = this.data.all.n > path.n ? `a sample of ${SAMPLE.toLocaleString("en")} rows, ` : "";
    this.status.textContent = `${sampled}${path.layers} layers, flow time ${path.times[path.layers].toFixed(2)}`;
    if (this.timer) return;
    this.seek(atEnd ? path.layers : Math.min(this.layer, path.layers));
  }

  seek(layer: number) {
    this.layer = layer;
    this.layers.set(layer);
    this.look();
  }

  toggle() {
    if (this.timer) return this.stop();
    if (!this.path) return;
    if (this.layer >= this.path.layers) this.seek(0);
    this.play.textContent = "Pause";
    const pace = Math.max(90, 2600 / this.path.layers);
    this.timer = window.setInterval(() => {
      if (!this.path || this.layer >= this.path.layers) return this.stop();
      this.seek(this.layer + 1);
      if (this.layer >= this.path.layers) this.stop();
    }, pace);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
    this.play.textContent = "Play";
  }

  noise(): number {
    return Math.sqrt(variance(this.data!.input) / (1 + 10 ** (+this.dial.input.value / 10)));
  }

  /** Read the clusters off the tokens of this layer. */
  look() {
    const { path, data } = this;
    if (!path || !data) return;
    const size = path.n * path.d;
    const tokens = path.x.subarray(this.layer * size, (this.layer + 1) * size);
    const radius = +this.radius.input.value * this.noise() * Math.sqrt(path.d / 2);
    this.found = atoms(tokens, path.n, path.d, radius);
    const k = this.found.centres.n;
    replace(this.count, h("span", { class: "big", "data-k": k }, k), h("span", { class: "note" }, k === 1 ? "cluster at this layer" : "clusters at this layer"));
    replace(
      this.bars,
      ...this.found.weights.slice(0, 12).map((w, i) =>
        h("li", {}, h("span", {}, i + 1), h("span", { class: "bar" }, h("i", { style: `width:${100 * w}%;background:${clusterColour(i)}` })), h("b", {}, percent(w))),
      ),
      k > 12 && h("li", {}, "", h("span", { class: "note" }, `and ${k - 12} more`), ""),
    );
    if (this.layer === path.layers && this.peers.kmeans?.centres.n !== k) {
      this.peers.kmeans = kmeans(data.input, Math.min(k, 30));
      this.say("kmeans", `K = ${this.peers.kmeans.centres.n}, told by the flow`);
    }
    this.redraw();
  }

  // the local server ---------------------------------------------------------------------------------------------

  async fit() {
    const { data } = this;
    if (!data) return;
    this.fitButton.disabled = true;
    this.say("server", "fitting…");
    try {
      const all = data.all;
      const rows = Array.from({ length: all.n }, (_, i) => Array.from(all.x.subarray(i * all.d, (i + 1) * all.d)));
      const options = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ points: rows }) };
      const fitted = await ask<Fitted>("/api/fit", options);
      if (this.data !== data) return;
      const labels = Int32Array.from(data.chosen, (row) => fitted.labels[row]);
      const x = Float64Array.from(fitted.cluster_centers.flat());
      const centres: Points = { n: fitted.n_clusters, d: all.d, x };
      this.peers.server = { centres, labels, weights: fitted.weights, note: "" };
      this.say("server", `K = ${fitted.n_clusters}, SNR ${fitted.snr_db.toFixed(1)} dB, all ${all.n} rows. ${fitted.notes.join(" ")}`);
      this.redraw();
    } catch (error) {
      this.say("server", (error as Error).message);
    } finally {
      this.fitButton.disabled = false;
    }
  }

  // pictures -----------------------------------------------------------------------------------------------------

  scatter(label: string, height: (w: number) => number, draw: () => (c: CanvasRenderingContext2D, w: number, t: number) => void) {
    const made = picture(label, height, (c, w, t) => draw().call(this, c, w, t));
    this.pictures.push(made);
    return made;
  }

  drawFlow(c: CanvasRenderingContext2D, width: number, height: number) {
    const { data, path, found } = this;
    if (!data) return;
    const f = drawAxes(c, this.box, { left: 44, top: 6, right: width - 6, bottom: height - 26 }, data.names);
    const start = data.shown(data.input.x, data.input.n);
    const small = data.input.n > 800 ? 1.8 : 2.6;
    if (!path || !found) return dots(c, f, start, () => -1, small, 0.5);
    const size = path.n * path.d;
    const final = this.found!.labels;
    dots(c, f, start, (i) => final[i], small, 0.3);
    this.trails(c, f, path, final);
    dots(c, f, data.shown(path.x, path.n, this.layer * size), (i) => final[i], small + 0.9, 0.9);
    const centres = data.shown(found.centres.x, found.centres.n);
    if (found.centres.n <= 40) for (let k = 0; k < found.centres.n; k++) mark(c, f.X(centres[2 * k]), f.Y(centres[2 * k + 1]), k);
  }

  /** Where the tokens came from, over the last few layers. */
  trails(c: CanvasRenderingContext2D, f: { X: (v: number) => number; Y: (v: number) => number }, path: Path, labels: Int32Array) {
    const from = Math.max(0, this.layer - 5);
    const size = path.n * path.d;
    const seen = Array.from({ length: this.layer - from + 1 }, (_, l) => this.data!.shown(path.x, path.n, (from + l) * size));
    c.lineWidth = 1;
    c.globalAlpha = 0.22;
    const stride = Math.max(1, Math.ceil(path.n / 500));
    for (let i = 0; i < path.n; i += stride) {
      c.strokeStyle = clusterColour(labels[i]);
      c.beginPath();
      for (const layer of seen) c.lineTo(f.X(layer[2 * i]), f.Y(layer[2 * i + 1]));
      c.stroke();
    }
    c.globalAlpha = 1;
  }

  drawPeer(c: CanvasRenderingContext2D, width: number, height: number, which: "kmeans" | "mixture" | "server") {
    const { data } = this;
    const found = this.peers[which];
    if (!data) return;
    const f = drawAxes(c, this.box, { left: 34, top: 4, right: width - 4, bottom: height - 22 }, ["", ""]);
    const colour = found ? matched(found, this.found) : [];
    dots(c, f, data.shown(data.input.x, data.input.n), (i) => (found ? colour[found.labels[i]] : -1), 1.9, found ? 0.75 : 0.3);
    if (!found) return;
    const centres = data.shown(found.centres.x, found.centres.n);
    for (let k = 0; k < found.centres.n; k++) mark(c, f.X(centres[2 * k]), f.Y(centres[2 * k + 1]), colour[k], 5);
  }

  redraw() {
    for (const one of this.pictures) one.redraw();
  }

  // words and files ----------------------------------------------------------------------------------------------

  say(which: string, words: string) {
    const note = this.place.querySelector(`[data-note=${which}]`);
    if (note) note.textContent = words;
  }

  complain(words: string) {
    replace(this.trouble, words && h("p", { class: "notice bad" }, words));
    if (words) this.status.textContent = "";
  }

  saveLabels() {
    if (!this.data || !this.found || !this.table) return this.complain("There are no labels to save yet.");
    const { all, chosen, rows } = this.data;
    const own = new Map(Array.from(chosen, (row, at) => [row, this.found!.labels[at]]));
    const labels = Int32Array.from({ length: all.n }, (_, i) => own.get(i) ?? nearest(all, i, this.found!.centres));
    download("labels.csv", new Blob([withLabels(this.table, rows, labels)], { type: "text/csv" }));
    this.status.textContent = `saved ${labels.length} labels, ${shares(labels, this.found.centres.n).length} clusters`;
  }

  savePicture() {
    const from = this.main.element;
    const copy = h("canvas", { width: from.width, height: from.height });
    const c = copy.getContext("2d")!;
    c.fillStyle = colours.paper;
    c.fillRect(0, 0, copy.width, copy.height);
    c.drawImage(from, 0, 0);
    copy.toBlob((blob) => blob && download("flow.png", blob), "image/png");
  }

  close() {
    this.stop();
    this.runner.close();
    for (const one of this.pictures) one.close();
  }
}
