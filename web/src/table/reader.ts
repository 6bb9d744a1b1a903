/** Reads files off the page's own thread and keeps their cells, which the page asks for a row at a time. */
import { decode, isGzip, needsServer, parse, safe, type Parsed } from "./parse";

export type Asked =
  | { id: number; kind: "read"; file: Blob }
  | { id: number; kind: "row"; row: number }
  | { id: number; kind: "labels"; labels: Int32Array; probabilities: Float64Array };

let table: Parsed | null = null;

async function read(file: Blob) {
  let bytes = new Uint8Array(await file.arrayBuffer());
  if (isGzip(bytes)) {
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    bytes = new Uint8Array(await new Response(unpacked).arrayBuffer());
  }
  if (needsServer(bytes)) return { server: true as const };
  table = parse(decode(bytes));
  return { server: false as const, rows: table.rows.length, columns: table.columns };
}

/** The table as `measureflow cluster` saves it: every row with its cluster and the probability of it. */
function labelled(labels: Int32Array, probabilities: Float64Array): Blob {
  const names = table!.columns.map((column) => column.name);
  const fresh = (name: string): string => (names.includes(name) ? fresh(`${name}_`) : name);
  const lines = [[...names, fresh("cluster"), fresh("probability")].map(safe).join(",")];
  table!.rows.forEach((row, i) => {
    const p = probabilities[i];
    lines.push([...names.map((_, j) => safe(row[j] ?? "")), labels[i], Number.isNaN(p) ? "" : p].join(","));
  });
  return new Blob([lines.join("\n"), "\n"], { type: "text/csv" });
}

async function answer(asked: Asked): Promise<unknown> {
  if (asked.kind === "read") return read(asked.file);
  if (asked.kind === "row") return table!.rows[asked.row];
  return labelled(asked.labels, asked.probabilities);
}

onmessage = async (event: MessageEvent<Asked>) => {
  const { id } = event.data;
  try {
    postMessage({ id, answer: await answer(event.data) });
  } catch (error) {
    postMessage({ id, error: (error as Error).message });
  }
};
