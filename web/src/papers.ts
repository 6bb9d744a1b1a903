/** Papers: what has been reproduced on this machine, beside what was printed. */
import { ask, fill, h, replace } from "./dom";

interface Printed {
  data: string;
  column: string;
  value: number;
}

interface Artefact {
  name: string;
  title: string;
  findings: string;
  made: boolean;
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
  columns: string[];
  rows: (string | number | null)[][];
}

export default async function papers(place: HTMLElement): Promise<() => void> {
  const shelf = await ask<Paper[]>("/api/papers");
  const made = shelf.reduce((sum, paper) => sum + count(paper), 0);
  fill(
    place,
    h(
      "div",
      { class: "intro" },
      h("h1", {}, "Four papers, made again"),
      h("p", {}, "Every table and figure has a command that makes it. What has been made on this machine is shown beside what was printed."),
    ),
    made === 0 &&
      h("p", { class: "notice" }, "Nothing has been made here yet, so only printed numbers are shown. Start with ", h("code", {}, "measureflow reproduce castin2025 fig1 --size tiny"), " and come back."),
    ...shelf.toSorted((a, b) => count(b) - count(a)).map(panel),
  );
  const first = place.querySelector<HTMLDetailsElement>("details:has(.made)") ?? place.querySelector<HTMLDetailsElement>("details:has(.known)");
  if (first) first.open = true;
  return () => {};
}

const count = (paper: Paper) => paper.artefacts.filter((one) => one.made).length;

function panel(paper: Paper): HTMLElement {
  const made = count(paper);
  const telling = paper.artefacts.filter((one) => one.made || one.printed.length).sort((a, b) => +b.made - +a.made);
  return h(
    "section",
    { class: "panel" },
    h("header", {}, h("h2", {}, paper.title), h("small", {}, `${made} of ${paper.artefacts.length} made here`)),
    ...telling.map(artefact),
    h("div", { class: "rest" }, ...paper.artefacts.filter((one) => !telling.includes(one)).map(artefact)),
    !paper.artefacts.length && h("p", { class: "empty" }, "This server was not told what this paper has to show."),
  );
}

function artefact(one: Artefact): HTMLElement {
  const body = h("div");
  const words = one.made ? "made here" : one.printed.length ? "printed numbers" : "not made yet";
  const details = h(
    "details",
    { class: "artefact" },
    h("summary", {}, one.title || spaced(one.name), h("span", { class: `badge ${one.made ? "made" : one.printed.length ? "known" : ""}` }, words)),
    body,
  );
  details.addEventListener("toggle", () => details.open && !body.childElementCount && void show(one, body));
  return details;
}

const spaced = (name: string) => name.replace(/^(table|fig|theorem)/, (word) => ({ table: "Table ", fig: "Figure ", theorem: "Theorem " })[word]!).trim();

async function show(one: Artefact, body: HTMLElement) {
  fill(
    body,
    one.findings && h("p", {}, one.findings),
    !one.made && h("p", { class: "note" }, "To make it: ", h("code", {}, one.command)),
    ...one.pictures.map((path) => h("img", { src: `/api/papers/${path}`, alt: `${one.title}, as made here`, loading: "lazy" })),
    !one.made && one.printed.length > 0 && printed(one.printed),
  );
  for (const path of one.tables) {
    const place = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": path });
    body.append(place);
    try {
      const { columns, rows } = await ask<Rows>(`/api/papers/${path}`);
      replace(place, table(columns, rows.map((row) => row.map(shown))));
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
