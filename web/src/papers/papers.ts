/** Papers: what was found, beside what was printed; made on this machine at the press of a button. */
import { ask, button, fill, h, replace } from "../dom";

interface Printed {
  data: string;
  column: string;
  value: number;
}

/** A claim of the paper: what is printed of it, what a run found, and "holds", "fails", "corrected" or "open". */
interface Verdict {
  claim: string;
  printed: string;
  ours: string;
  verdict: string;
}

interface Artefact {
  name: string;
  title: string;
  said: string;
  found: string;
  verdicts: Verdict[];
  made: boolean;
  thumbnail: string;
  size: string;
  pictures: string[];
  tables: string[];
  printed: Printed[];
  command: string;
}

interface Paper {
  paper: string;
  title: string;
  artefacts: Artefact[];
}

interface Rows {
  total: number;
  columns: string[];
  rows: (string | number | null)[][];
}

export default async function papers(place: HTMLElement): Promise<() => void> {
  const shelf = await ask<Paper[]>("/api/papers");
  fill(
    place,
    h(
      "div",
      { class: "intro" },
      h("h1", {}, "Four papers, computed anew"),
      h("p", {}, "Their tables and figures, by the code of this package. Open one to see what is printed beside what was found; Run computes it on this machine, at its smallest size."),
    ),
    ...shelf.map((paper) => panel(paper)),
  );
  return () => {};
}

function panel({ paper, title, artefacts }: Paper): HTMLElement {
  const [who, what] = title.split(": ");
  const count = h("small", {}, made(artefacts));
  return h(
    "section",
    { class: "panel" },
    h("header", {}, h("h2", {}, `${who}: ${what}`), count),
    artefacts.length ? shelf(paper, artefacts, has) : h("p", { class: "empty" }, "This server was not told what this paper has to show."),
    artefacts.some((one) => !has(one)) && h("h3", {}, "No result ships for these; Run computes them"),
    artefacts.some((one) => !has(one)) && shelf(paper, artefacts, (one) => !has(one)),
  );
}

const has = (one: Artefact) => one.made || !!one.found;
const shelf = (paper: string, artefacts: Artefact[], wanted: (one: Artefact) => boolean) =>
  h("div", { class: "shelf" }, ...artefacts.filter(wanted).map((one) => card(paper, one)));

const made = (artefacts: Artefact[]) => `${artefacts.length} tables and figures, ${artefacts.filter((one) => one.made).length} made here`;
const spaced = (name: string) =>
  name
    .replace(/^(table|fig|theorem|section)(?=\d)/, (word) => ({ table: "Table ", fig: "Figure ", theorem: "Theorem ", section: "Section " })[word]!)
    .replaceAll("_", " ")
    .replace(/^./, (first) => first.toUpperCase());
/** The first sentence of what was found. */
const brief = (found: string) => capital(/^.*?[^\d\s]\.(?=\s|$)/.exec(found)?.[0] ?? found);
const capital = (words: string) => words.replace(/^./, (first) => first.toUpperCase());

/** A thumbnail with its number; opening it shows everything. */
function card(paper: string, one: Artefact): HTMLElement {
  const body = h("div", { class: "artefact-body" });
  const summary = h("summary", {}, ...face(one));
  const details = h("details", { class: "artefact", "data-artefact": `${paper}-${one.name}` }, summary, body);
  const refresh = (next: Artefact) => {
    replace(summary, ...face(next));
    replace(body);
    void show(paper, next, body, refresh);
  };
  details.addEventListener("toggle", () => details.open && !body.childElementCount && void show(paper, one, body, refresh));
  return details;
}

function face(one: Artefact): HTMLElement[] {
  const image = one.made && one.pictures[0] ? `/api/papers/${one.pictures[0]}` : one.thumbnail ? `/papers/${one.thumbnail}` : "";
  return [
    ...(image ? [h("img", { src: image, alt: "", loading: "lazy" })] : []),
    h("span", { class: "card-name" }, h("strong", {}, spaced(one.name)), h("span", {}, ...judged(one), one.made && h("span", { class: "badge made" }, "made here"))),
    ...(one.title ? [h("span", { class: "card-title" }, one.title)] : []),
    ...(one.found ? [h("span", { class: "card-found" }, brief(one.found))] : []),
  ];
}

/** The verdicts in brief: one word if they agree, else how many claims hold. */
function judged({ verdicts }: Artefact): HTMLElement[] {
  if (!verdicts.length) return [];
  const words = new Set(verdicts.map(({ verdict }) => verdict));
  const held = verdicts.filter(({ verdict }) => verdict === "holds").length;
  const [word, kind] = words.size === 1 ? [verdicts[0].verdict, verdicts[0].verdict] : [`${held} of ${verdicts.length} hold`, words.has("fails") ? "fails" : "mixed"];
  return [h("span", { class: `badge ${kind}` }, word)];
}

/** Claim by claim: what is printed beside what was found here. */
function verdictTable(verdicts: Verdict[]): HTMLElement {
  const row = ({ claim, printed, ours, verdict }: Verdict) =>
    h("tr", {}, h("td", {}, h("span", { class: `badge ${verdict}` }, verdict)), ...[claim, printed, ours].map((words) => h("td", { class: "words" }, words)));
  const head = ["", "claim", "printed", "found"].map((name) => h("th", { scope: "col", class: "words" }, name));
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": "Verdicts" },
    h("table", { class: "verdicts" }, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...verdicts.map(row))),
  );
}

async function show(paper: string, one: Artefact, body: HTMLElement, refresh: (next: Artefact) => void) {
  const status = h("span", { class: "note", role: "status" });
  const run = button("Run", () => void start(), { class: "main", "aria-label": `Run ${one.name}` });
  const copy = button("Copy", () => void navigator.clipboard.writeText(one.command).then(() => (status.textContent = "copied")), { "aria-label": "Copy the command" });
  const start = async () => {
    run.disabled = true;
    status.textContent = "running… (some take a minute or two)";
    try {
      refresh(await ask<Artefact>(`/api/papers/${paper}/${one.name}`, { method: "POST" }));
    } catch (error) {
      status.textContent = `It could not be made: ${(error as Error).message}`;
      run.disabled = false;
    }
  };
  const whose = one.made ? "As made on this machine." : one.size ? `As shipped, from a run of size ${one.size}.` : "";
  fill(
    body,
    one.found && h("p", { class: "verdict-line" }, h("strong", {}, "Found. "), capital(one.found)),
    one.verdicts.length > 0 && verdictTable(one.verdicts),
    one.said && h("p", { class: "note" }, one.said),
    whose && h("p", { class: "note" }, whose),
    h("div", { class: "row" }, run, h("code", {}, one.command), copy, status),
    ...(one.pictures.length ? one.pictures.map((path) => `/api/papers/${path}`) : one.thumbnail ? [`/papers/${one.thumbnail}`] : []).map((src) => h("img", { src, alt: one.title, loading: "lazy" })),
    one.printed.length > 0 && printed(one.printed),
  );
  for (const path of one.tables) {
    const place = h("div", { class: "stack", style: "gap: 6px" });
    body.append(place);
    try {
      const { total, columns, rows } = await ask<Rows>(`/api/papers/${path}`);
      const more = total > rows.length ? `The first ${rows.length} of ${total.toLocaleString("en")} rows. ` : "";
      replace(
        place,
        h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": path }, table(columns, rows.map((row) => row.map(shown)))),
        h("p", { class: "note" }, more, h("a", { href: `/api/papers/${path}?download=1`, download: "" }, `Download ${path.split("/").at(-1)}`)),
      );
    } catch (error) {
      replace(place, h("p", { class: "notice bad" }, `This table could not be read: ${(error as Error).message}`));
    }
  }
}

/** Printed numbers: a row for each kind of data, a column for each method. */
function printed(cells: Printed[]): HTMLElement {
  const columns = [...new Set(cells.map((cell) => cell.column))];
  const rows = [...new Set(cells.map((cell) => cell.data))];
  const value = (data: string, column: string) => cells.find((cell) => cell.data === data && cell.column === column)?.value ?? null;
  const body = rows.map((data) => [data, ...columns.map((column) => shown(value(data, column)))]);
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Printed numbers" }, table(["printed", ...columns], body));
}

const shown = (cell: string | number | null) => (cell === null ? "–" : typeof cell === "number" && !Number.isInteger(cell) ? String(+cell.toPrecision(4)) : String(cell));

function table(columns: string[], rows: string[][]): HTMLElement {
  return h(
    "table",
    {},
    h("thead", {}, h("tr", {}, ...columns.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((cell) => h("td", {}, cell))))),
  );
}
