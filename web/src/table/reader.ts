/** Reads files off the page's own thread and keeps their cells, which the page asks for a row at a time. */
import { decode, isGzip, needsServer, parse, safe } from "./parse";

export type Asked =
  | { id: number; kind: "read"; file: Blob }
  | { id: number; kind: "row"; row: number }
  | { id: number; kind: "labels"; labels: Int32Array; probabilities: Float64Array };

let table: { id: number; names: string[]; rows: string[][] } | null = null;

async function read(id: number, file: Blob) {
  let bytes = new Uint8Array(await file.arrayBuffer());
  if (isGzip(bytes)) {
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    bytes = new Uint8Array(await new Response(unpacked).arrayBuffer());
  }
  if (needsServer(bytes)) return { answer: { server: true } };
  const { columns, rows } = parse(decode(bytes));
  if (!table || table.id < id) table = { id, names: columns.map((column) => column.name), rows }; // a large file takes longer than a small one asked for later
  const handed = columns.flatMap(({ values }) => (values ? [values.buffer] : []));
  return { answer: { server: false, rows: rows.length, columns }, handed };
}

/** The table as `measureflow cluster` saves it: every row with its cluster and the probability of it. */
function labelled(labels: Int32Array, probabilities: Float64Array): Blob {
  const { names, rows } = table!;
  const fresh = (name: string): string => (names.includes(name) ? fresh(`${name}_`) : name);
  const lines = [[...names, fresh("cluster"), fresh("probability")].map(safe).join(",")];
  rows.forEach((row, i) => {
    const p = probabilities[i];
    lines.push([...names.map((_, j) => safe(row[j] ?? "")), labels[i], Number.isNaN(p) ? "" : p].join(","));
  });
  return new Blob([lines.join("\n"), "\n"], { type: "text/csv" });
}

/** What was asked for, and buffers that are handed over with it: copying those of a large table would hold up the page. */
async function answered(asked: Asked): Promise<{ answer: unknown; handed?: ArrayBufferLike[] }> {
  if (asked.kind === "read") return read(asked.id, asked.file);
  if (asked.kind === "row") return { answer: table!.rows[asked.row] };
  return { answer: labelled(asked.labels, asked.probabilities) };
}

onmessage = async (event: MessageEvent<Asked>) => {
  const { id } = event.data;
  try {
    const { answer, handed } = await answered(event.data);
    postMessage({ id, answer }, { transfer: (handed ?? []) as ArrayBuffer[] });
  } catch (error) {
    postMessage({ id, error: (error as Error).message });
  }
};
