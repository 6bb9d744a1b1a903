/** Where the rows come from: a file, an example, a shape made here, or points drawn by hand. */
import { button, choice, h, replace, slider } from "../../dom";
import { readTable, type Table } from "../../table/table";
import { Drawing, shape, SHAPES } from "./shapes";

export interface Example {
  name: string;
  title: string;
}

export class Source {
  name = ""; // in the address: "penguins", "shape-moons", "drawn-...", or "file" for one that only its owner has
  noise = 0.2;
  private asked = 0; // for tables so far ...
  private shown = 0; // ... and the number of the one on the screen: what was asked for before it comes too late
  drawing = new Drawing();
  element = h("section", { class: "panel source", "aria-label": "Data" });

  constructor(
    private examples: Example[],
    private opened: (table: Table) => void,
    private failed: (reason: string) => void,
  ) {}

  get drawn(): boolean {
    return this.name === "drawn";
  }

  /** The source as the address has it. */
  get code(): string {
    return this.drawn ? `drawn-${this.drawing.code}` : this.name === "file" ? "" : this.name;
  }

  async open(code: string) {
    if (code.startsWith("drawn-")) {
      this.drawing = Drawing.read(code.slice(6));
      return this.draw();
    }
    const made = /^shape-(.+)$/.exec(code)?.[1];
    if (made && made in SHAPES) return this.take(shape(made, this.noise), SHAPES[made].words, code);
    const example = this.examples.find((one) => one.name === code) ?? this.examples[0];
    const turn = ++this.asked;
    const answer = await fetch(`/api/examples/${example.name}`).catch(() => null);
    if (!answer?.ok) return this.fail(turn, `The example could not be fetched: the server ${answer ? `answered ${answer.status}` : "does not answer"}.`);
    return this.take(await answer.blob(), example.title, example.name, turn);
  }

  async take(file: Blob, title: string, name = "file", turn = ++this.asked) {
    try {
      const table = await readTable(file, title);
      if (turn < this.shown) return;
      this.shown = turn;
      this.name = name;
      this.opened(table);
    } catch (error) {
      this.fail(turn, (error as Error).message);
    }
  }

  private fail(turn: number, reason: string) {
    if (turn > this.shown) this.failed(reason);
  }

  /** The points drawn so far as a table; one alone is no clustering yet. */
  async draw() {
    this.name = "drawn";
    if (this.drawing.points.length > 1) await this.take(this.drawing.body, "Drawn by hand", "drawn");
  }

  show(table: Table | null) {
    const input = h("input", { type: "file", accept: ".csv,.tsv,.txt,.json,.jsonl,.ndjson,.gz,.xlsx,.xls,.ods,.parquet,.pq", "aria-label": "Choose a file" });
    input.addEventListener("change", () => {
      if (input.files?.[0]) void this.take(input.files[0], input.files[0].name);
      input.value = "";
    });
    const made = this.name.startsWith("shape-") ? this.name.slice(6) : "";
    const shapes = choice("A shape", [["", "a shape…"], ...Object.entries(SHAPES).map(([name, { words }]): [string, string] => [name, words])], made, (name) => {
      if (name) void this.open(`shape-${name}`);
    });
    const noise = slider("Noise", { min: 0, max: 1, step: 0.05, value: this.noise }, (v) => v.toFixed(2), (v) => {
      this.noise = v;
      void this.take(shape(made, v), SHAPES[made].words, `shape-${made}`);
    });
    noise.input.addEventListener("change", () => this.element.querySelector<HTMLElement>('[aria-label="Noise"]')?.focus());
    replace(
      this.element,
      h(
        "div",
        { class: "drop" },
        h("strong", {}, table ? table.name : "No table yet"),
        h("span", { class: "note", "data-table": "" }, table ? words(table) : "Drop a file anywhere on the page."),
      ),
      h(
        "div",
        { class: "row sources" },
        h("label", { class: "file" }, "Choose a file", input),
        ...this.examples.map((one) => button(one.title, () => void this.open(one.name), { class: "chip", "data-example": one.name, "aria-pressed": String(this.name === one.name) })),
        shapes,
        button("Draw points", () => this.begin(), { class: "chip", "aria-pressed": String(this.drawn) }),
        made && noise,
        this.drawn && button("Clear", () => this.begin(), { class: "chip" }),
      ),
      made && h("p", { class: "note truth" }, `In truth: ${SHAPES[made].truth}.`),
      this.drawn && h("p", { class: "note truth" }, "Press and drag to add points; drag a point to move it."),
    );
  }

  /** A few points to begin with, which the reader adds to. */
  private begin() {
    this.drawing = Drawing.read("5r8n6a8s5w9e6e9b6k8j66aenwkun5l4nnkdo8ktnhlfo5jsnvl9");
    void this.draw();
  }
}

function words(table: Table): string {
  const [rows, numeric] = [table.rows, table.columns.filter((column) => column.values).length];
  return `${rows.toLocaleString("en")} ${rows === 1 ? "row" : "rows"}, ${numeric} ${numeric === 1 ? "column" : "columns"} of numbers`;
}
