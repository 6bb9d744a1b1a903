/** Tables of the papers and of what was found. */
import { ask, h, replace } from "../dom";
import type { Printed, Verdict } from "./shelf";

interface Rows {
  total: number;
  columns: string[];
  rows: (string | number | null)[][];
}

const shown = (cell: string | number | null) => (cell === null ? "–" : typeof cell === "number" && !Number.isInteger(cell) ? String(+cell.toPrecision(4)) : String(cell));

const LONG = /^(?=.{24})\D*[a-z]{3}|^\S+ [a-z]+ .{14}/; // words that may wrap, unlike numbers

/** A table that scrolls within itself where it is too wide. */
const scrolling = (label: string, table: HTMLElement) => h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, table);

export function plain(columns: string[], rows: string[][], kind = ""): HTMLElement {
  return h(
    "table",
    { class: kind || false },
    h("thead", {}, h("tr", {}, ...columns.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((cell) => h("td", { class: LONG.test(cell) && "words" }, cell))))),
  );
}

/** Claim by claim: what is printed beside what was found here. */
export function verdictTable(verdicts: Verdict[]): HTMLElement {
  const row = ({ claim, printed, ours, verdict }: Verdict) =>
    h("tr", {}, h("td", {}, h("span", { class: `badge ${verdict}` }, verdict)), ...Object.entries({ claim, printed, found: ours }).map(([name, words]) => h("td", { class: "words", "data-name": name }, words)));
  const head = ["", "claim", "printed", "found"].map((name) => h("th", { scope: "col", class: "words" }, name));
  return scrolling("Verdicts", h("table", { class: "verdicts" }, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...verdicts.map(row))));
}

/** Printed numbers: a row for each kind of data, a column for each method. */
export function printedTable(cells: Printed[]): HTMLElement {
  const columns = [...new Set(cells.map((cell) => cell.column))];
  const rows = [...new Set(cells.map((cell) => cell.data))];
  const value = (data: string, column: string) => cells.find((cell) => cell.data === data && cell.column === column)?.value ?? null;
  return scrolling("Printed numbers", plain(["printed", ...columns], rows.map((data) => [data, ...columns.map((column) => shown(value(data, column)))])));
}

/** The head of a table that the server holds, and a link to the whole. */
export async function fileTable(path: string): Promise<HTMLElement> {
  const place = h("div", { class: "stack", style: "gap: 6px" });
  try {
    const { total, columns, rows } = await ask<Rows>(`/api/papers/${path}`);
    const brackets = rows.some((row) => row.some((cell) => typeof cell === "string" && /^[^(]*\(-?[\d.]+\)$/.test(cell)));
    replace(
      place,
      scrolling(path, plain(columns, rows.map((row) => row.map(shown)))),
      h(
        "p",
        { class: "note" },
        brackets && "In brackets what is printed. ",
        total > rows.length && `The first ${rows.length} of ${total.toLocaleString("en")} rows. `,
        h("a", { href: `/api/papers/${path}?download=1`, download: "" }, `Download ${path.split("/").at(-1)}`),
      ),
    );
  } catch (error) {
    replace(place, h("p", { class: "notice bad" }, `This table could not be read: ${(error as Error).message}`));
  }
  return place;
}
