/** Tables the reader brings: text of a CSV into columns, and back with labels. */
import { points, type Points } from "./numbers";

export interface Table {
  name: string;
  header: string[];
  rows: string[][];
  /** Columns of which most cells are numbers. */
  numeric: { name: string; column: number; values: Float64Array }[];
}

export const LARGEST = 64 * 2 ** 20;

/** Read a file, or say in plain words why it cannot be read. */
export async function readFile(file: File): Promise<Table> {
  if (file.size > LARGEST) throw new Error(`${file.name} has ${(file.size / 2 ** 20).toFixed(0)} MB; the page takes up to 64 MB.`);
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Error(`${file.name} is not text. The page reads tables of numbers: CSV, one row per line.`);
  }
  return parse(text, file.name);
}

export function parse(text: string, name: string): Table {
  if (text.includes("\0")) throw new Error(`${name} is not text. The page reads tables of numbers: CSV, one row per line.`);
  const rows = split(text);
  if (rows.length < 3) throw new Error(`${name} holds fewer than three lines; there is nothing to cluster.`);
  const named = rows[0].some((cell) => cell.trim() !== "" && !isNumber(cell));
  const header = named ? rows.shift()!.map((cell) => cell.trim()) : rows[0].map((_, j) => `column ${j + 1}`);
  const numeric = [];
  for (let j = 0; j < header.length; j++) {
    const values = Float64Array.from(rows, (row) => (row[j] === undefined || row[j].trim() === "" ? NaN : Number(row[j])));
    let good = 0;
    for (const v of values) good += +Number.isFinite(v);
    if (good >= 3 && good > rows.length / 2) numeric.push({ name: header[j] || `column ${j + 1}`, column: j, values });
  }
  if (!numeric.length) throw new Error(`No column of ${name} holds numbers. The page reads tables of numbers: CSV, one row per line.`);
  return { name, header, rows, numeric };
}

const isNumber = (cell: string) => cell.trim() !== "" && Number.isFinite(Number(cell));

/** Rows of cells, with the separator that the first line uses most; quotes protect separators. */
function split(text: string): string[][] {
  text = text.replace(/^\uFEFF/, "");
  const first = text.slice(0, text.indexOf("\n") < 0 ? undefined : text.indexOf("\n"));
  const by = [",", ";", "\t"].reduce((a, b) => (first.split(b).length > first.split(a).length ? b : a));
  if (!text.includes('"')) {
    const lines = text.split(/\r?\n|\r/);
    return lines.filter((line) => line.trim()).map((line) => line.split(by));
  }
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = "";
  let quoted = false;
  const end = () => {
    row.push(cell);
    if (row.some((c) => c.trim())) rows.push(row);
    [row, cell] = [[], ""];
  };
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c !== '"') cell += c;
      else if (text[i + 1] === '"') cell += text[i++];
      else quoted = false;
    } else if (c === '"') quoted = true;
    else if (c === by) [row, cell] = [[...row, cell], ""];
    else if (c === "\n") end();
    else if (c !== "\r") cell += c;
  }
  if (cell || row.length) end();
  return rows;
}

/** The chosen columns over the rows in which all of them are numbers; `rows` tells which those are. */
export function complete(table: Table, columns: number[]): { points: Points; rows: Uint32Array } {
  const chosen = columns.map((c) => table.numeric[c].values);
  const rows = Uint32Array.from(table.rows.keys()).filter((i) => chosen.every((values) => Number.isFinite(values[i])));
  const out = points(rows.length, chosen.length);
  rows.forEach((i, at) => chosen.forEach((values, j) => (out.x[at * out.d + j] = values[i])));
  return { points: out, rows };
}

/** The table with one more column; rows without a label have an empty cell. */
export function withLabels(table: Table, rows: Uint32Array, labels: Int32Array): string {
  const label = new Map(Array.from(rows, (row, at) => [row, labels[at]]));
  const lines = [[...table.header, "cluster"].map(cell).join(",")];
  table.rows.forEach((row, i) => {
    const padded = table.header.map((_, j) => row[j] ?? "");
    lines.push([...padded.map(cell), label.has(i) ? String(label.get(i)! + 1) : ""].join(","));
  });
  return lines.join("\n") + "\n";
}

/** A cell that a spreadsheet will take for text or a number, never for a formula. */
function cell(text: string): string {
  const safe = /^[=+\-@\t]/.test(text) && !isNumber(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
