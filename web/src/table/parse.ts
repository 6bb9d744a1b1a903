/** Bytes of a file into columns, as measureflow/tables reads them; both are held to tests/files/cases.json. */
import Papa from "papaparse";

export interface Column {
  name: string;
  /** The numbers, NaN where one is missing; null for a column of words. */
  values: Float64Array | null;
  /** Why it says nothing about clusters, if so. */
  reason: string | null;
  /** The first cell that is no number, and its row, where most others are. */
  stray?: string;
}

export interface Parsed {
  columns: Column[];
  rows: string[][];
}

const SEPARATORS = [",", ";", "\t", "|"];
const MISSING = new Set(
  ["", "?", "-", "--", ".", "na", "missing", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "<NA>", "#N/A", "#NA", "-nan", "-NaN"],
);
const NUMBER = /^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$/;
const DECIMAL_COMMA = /^[-+]?\d+,\d+$/;
const THOUSANDS = /^[-+]?\d{1,3}(,\d{3})+(\.\d*)?$/;
const UNIT = /^([-+]?)\s*([$€£¥])\s*(?=[\d.])|\s*([$€£¥%])$/; // before a number, or behind it
const INFINITE = /^[-+]?inf(inity)?$/i;
const MARKUP = /^\s*<(!doctype|html|\?xml)/i;
const CONTROL = /[\x00-\x08\x0e-\x19\x1b-\x1f]/;
const IDENTIFIER = /^((.*[_\s.-])?(id|ids|index|idx|row|uuid)|unnamed: 0)$/i;
const CAMEL_ID = /^.*[a-z]I[dD]$/;
const CODE = /^(.*[_\s.-])?(zip|zip ?code|zip_code|post ?code|postal_?code|plz|phone)([_\s.-].*)?$/i;
const DATE = /^(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})([ T].*)?$/;
const ASK_FROM = 30;

/** Excel and Parquet begin so; the server reads those. */
export function needsServer(bytes: Uint8Array): boolean {
  const begins = (...start: number[]) => start.every((b, i) => bytes[i] === b);
  return begins(0x50, 0x41, 0x52, 0x31) || begins(0x50, 0x4b, 3, 4) || begins(0xd0, 0xcf, 0x11, 0xe0);
}

export const isGzip = (bytes: Uint8Array) => bytes[0] === 0x1f && bytes[1] === 0x8b;

export function decode(bytes: Uint8Array): string {
  const [even, odd] = [0, 1].map((from) => bytes.subarray(0, 200).filter((b, i) => i % 2 === from && b === 0).length);
  const marked = (a: number, b: number) => bytes[0] === a && bytes[1] === b;
  let encodings = ["utf-8", "windows-1252"];
  if (marked(0xff, 0xfe)) encodings = ["utf-16le"];
  else if (marked(0xfe, 0xff)) encodings = ["utf-16be"];
  else if (even + odd) encodings = [odd > even ? "utf-16le" : "utf-16be"];
  for (const encoding of encodings) {
    let text: string;
    try {
      text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
    } catch {
      continue;
    }
    if (!text.trim()) throw new Error("the file is empty");
    if (CONTROL.test(text)) break;
    return text;
  }
  throw new Error(bytes.length ? "the file is neither a table of text nor an Excel or Parquet file" : "the file is empty");
}

export function parse(text: string): Parsed {
  if (MARKUP.test(text)) throw new Error("the file is a web page or XML, not a table");
  const first = text.trimStart()[0];
  const { header, rows, comma } = first === "{" || first === "[" ? fromJson(text) : fromCsv(withoutRemarks(text));
  const columns = header.map((name, j) => column(name, rows, j, comma));
  if (columns.every((one) => one.reason)) {
    const listed = columns.slice(0, 8).map((one) => `${one.name}: ${one.reason}${one.stray ? `, as ${one.stray}` : ""}`);
    throw new Error(`no column holds numbers to cluster (${listed.join(", ")}${columns.length > 8 ? ", ..." : ""})`);
  }
  return { columns, rows };
}

/** The text with blank lines for those at its start that begin with "#"; names of columns in the last of them stay. */
function withoutRemarks(text: string): string {
  const at = /^(?:[^\S\r\n]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))+/.exec(text)?.[0] ?? "";
  const remarks = at.split(/\r\n|\r|\n/).slice(0, -1).map((line) => line.trim().replace(/^#+/, "").trim());
  const last = remarks.findLastIndex((remark) => remark);
  const rest = text.slice(at.length);
  if (!rest.trim()) return text;
  if (last < 0) return "\n".repeat(remarks.length) + rest;
  const head = rest.slice(0, 200_000).split(/\r\n|\r|\n/).slice(0, 20).filter((line) => line.trim());
  const sep = separator(head);
  const cells = parted(head[0], sep);
  const numbers = cells.every((cell) => !cell.trim() || NUMBER.test(sep === "," ? cell.trim() : cell.trim().replace(",", ".")));
  const named = numbers && cells.length > 1 && parted(remarks[last], sep).length === cells.length;
  return remarks.map((remark, i) => (named && i === last ? `${remark}\n` : "\n")).join("") + rest;
}

function fromCsv(text: string): { header: string[]; rows: string[][]; comma: boolean } {
  const head = text.slice(0, 200_000).split(/\r\n|\r|\n/).filter((line) => line.trim()).slice(0, 20);
  const delimiter = separator(head);
  if (delimiter === " ") return fromCsv(tabbed(text));
  const comma = delimiter !== "," && head.some((line) => line.split(delimiter).some((cell) => DECIMAL_COMMA.test(cell.trim().replace(UNIT, "$1"))));
  const { data, errors } = Papa.parse<string[]>(text, { delimiter });
  if (errors.some((error) => error.code === "MissingQuotes"))
    throw new Error("the file cannot be read as a table: a quotation mark is opened and never closed");
  const lines = data.filter((row) => row.length > 1 || row[0].trim());
  const isNumber = (cell: string) => NUMBER.test(comma ? cell.replace(",", ".") : cell);
  const start = lines[0].map((cell) => cell.trim());
  const named = !(start.every((cell) => !cell || isNumber(cell)) && start.some((cell) => cell));
  const rows = named ? lines.slice(1) : lines;
  if (!rows.length) throw new Error("the file has a line of names and no rows");
  const long = rows.find((row) => row.length > start.length && filled(row) > start.length);
  if (long) {
    const above = data.slice(0, data.indexOf(long)).map((row) => row.join("").split(/\r\n|\r|\n/).length);
    const line = above.reduce((sum, n) => sum + n, 1);
    const first = named ? "line of names" : "first line";
    throw new Error(`the file cannot be read as a table: line ${line} has ${filled(long)} cells, the ${first} has ${start.length}`);
  }
  return { header: distinctNames(named ? start : start.map((_, j) => `x${j}`)), rows, comma };
}

/** The number of cells up to the last that holds anything. */
const filled = (row: string[]) => row.findLastIndex((cell) => cell.trim()) + 1;

function fromJson(text: string) {
  let found: unknown;
  try {
    try {
      found = JSON.parse(text);
    } catch {
      found = text.split("\n").filter((line) => line.trim()).map((line) => JSON.parse(line) as unknown);
    }
  } catch (error) {
    throw new Error(`the file begins as JSON and cannot be read as such: ${(error as Error).message}`);
  }
  const list = Array.isArray(found) ? (found as unknown[]) : [found];
  const cell = (value: unknown) => {
    if (value !== null && typeof value === "object")
      throw new Error("the file is JSON whose rows hold lists or objects; a table has one value in each cell");
    return value === null || value === undefined ? "" : String(value);
  };
  const arrays = list.every((row) => Array.isArray(row) && row.length === (list[0] as unknown[]).length && row.length > 0);
  if (list.length && arrays) {
    const rows = (list as unknown[][]).map((row) => row.map(cell));
    return { header: rows[0].map((_, j) => `x${j}`), rows, comma: false };
  }
  if (!list.length || list.some((row) => row === null || typeof row !== "object" || Array.isArray(row)))
    throw new Error("the file is JSON, but neither a list of objects nor of rows of one length");
  const objects = list as Record<string, unknown>[];
  const names = [...new Set(objects.flatMap((row) => Object.keys(row)))];
  return { header: distinctNames(names.map((name) => name.trim())), rows: objects.map((row) => names.map((name) => cell(row[name]))), comma: false };
}

/**
 * The separator that parts all lines alike, into the most cells; a comma, which numbers may hold too, comes last. Spaces
 * separate where nothing else does, and all lines alike.
 */
function separator(head: string[]): string {
  const bare = head.map((line) => line.replace(/"[^"]*"/g, ""));
  const counts = SEPARATORS.map((sep) => ({ sep, n: bare.map((line) => line.split(sep).length - 1) }));
  let fit = counts.filter(({ n }) => n[0] && n.every((c) => c === n[0])).map(({ sep, n }) => ({ sep, n: n[0] }));
  if (!fit.length) fit = counts.map(({ sep, n }) => ({ sep, n: Math.min(...n) })).filter(({ n }) => n > 0);
  fit.sort((a, b) => +(a.sep === ",") - +(b.sep === ",") || b.n - a.n);
  const bySpaces = new Set(head.map((line) => parted(line.replace(/"[^"]*"/g, "quoted"), " ").length));
  return fit[0]?.sep ?? (bySpaces.size === 1 && !bySpaces.has(1) ? " " : ",");
}

/** The cells of a line; several spaces part no more than one. */
const parted = (line: string, sep: string) => line.trim().split(sep === " " ? /\s+/ : sep);

/** Lines whose cells are parted by spaces, with tabs in their place; spaces inside quotes stay. */
const tabbed = (text: string) =>
  text.split(/\r\n|\r|\n/).map((line) => line.trim().replace(/("[^"]*")|\s+/g, (_, quoted: string | undefined) => quoted ?? "\t")).join("\n");

function distinctNames(names: string[]): string[] {
  const seen = new Map<string, number>();
  return names.map((name, j) => {
    name ||= `Unnamed: ${j}`;
    while (seen.has(name)) {
      seen.set(name, seen.get(name)! + 1);
      name = `${name}.${seen.get(name)}`;
    }
    seen.set(name, 0);
    return name;
  });
}

function column(name: string, rows: string[][], j: number, comma: boolean): Column {
  const values = new Float64Array(rows.length).fill(NaN);
  const words: string[] = [];
  let stray: string | undefined;
  const units = new Set<string>();
  let present = 0;
  for (let i = 0; i < rows.length; i++) {
    const cell = (rows[i][j] ?? "").trim();
    if (MISSING.has(cell)) continue;
    present++;
    const unit = UNIT.exec(cell);
    if (unit) units.add(unit[2] ?? unit[3]);
    const bare = unit ? cell.replace(UNIT, "$1") : cell;
    const plain = comma && DECIMAL_COMMA.test(bare) ? bare.replace(",", ".") : bare;
    if (NUMBER.test(plain)) values[i] = Number(plain);
    else if (THOUSANDS.test(plain)) values[i] = Number(plain.replaceAll(",", ""));
    else if (!INFINITE.test(plain)) {
      words.push(cell);
      stray ??= `'${cell.slice(0, 40)}' in row ${(i + 1).toLocaleString("en")}`;
    }
  }
  if (!present) return { name, values: null, reason: "empty" };
  if (2 * words.length >= present) stray = undefined;
  if (words.length || units.size > 1) return { name, values: null, reason: words.length === present ? kind(words) : "text", stray };
  return { name, values, reason: unfit(name, values, present) };
}

function kind(words: string[]): string {
  if (words.every((word) => DATE.test(word))) return "dates";
  return words.every((word) => /^(true|false)$/i.test(word)) ? "true or false" : "text";
}

function unfit(name: string, values: Float64Array, present: number): string | null {
  const n = values.length;
  const there = values.filter((v) => !Number.isNaN(v));
  if (present <= n / 2) return "mostly empty";
  if (n > 1 && there.every((v) => v === there[0])) return "constant";
  if (CODE.test(name)) return "a code";
  if ((IDENTIFIER.test(name) || CAMEL_ID.test(name)) && n > 2 && new Set(there).size === there.length) return "an identifier";
  if (there.every(Number.isInteger)) {
    const order = there.length >= ASK_FROM ? there.slice().sort() : there;
    if (present === n && n > 2 && order.every((v, i) => !i || v - order[i - 1] === 1)) return "a running number";
    if (name.toLowerCase() === "year" && there.every((v) => v >= 1500 && v <= 2200)) return "dates";
  }
  return null;
}

/** A cell that a spreadsheet will take for text or a number, never for a formula. */
export function safe(text: string): string {
  const tame = /^[=+\-@\t]/.test(text) && !NUMBER.test(text.trim()) ? `'${text}` : text;
  return /[",\n\r]/.test(tame) ? `"${tame.replaceAll('"', '""')}"` : tame;
}
