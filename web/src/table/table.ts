/** A table that the reader brought: its columns here, its cells in a worker, its bytes for the server. */
import { ask } from "../dom";
import type { Column } from "./parse";
import type { Asked } from "./reader";

export interface Table {
  name: string;
  rows: number;
  columns: Column[];
  /** Columns that hold quantities, by number. */
  used: number[];
  /** The file itself, which is what the server is asked about. */
  body: Blob;
}

export const LARGEST = 64 * 2 ** 20;

type Unnumbered<T> = T extends unknown ? Omit<T, "id"> : never;

class Reader {
  private worker = new Worker(new URL("./reader.ts", import.meta.url), { type: "module" });
  private waiting = new Map<number, { done: (answer: never) => void; failed: (reason: Error) => void }>();
  private count = 0;

  constructor() {
    this.worker.onmessage = ({ data }: MessageEvent<{ id: number; answer?: never; error?: string }>) => {
      const { done, failed } = this.waiting.get(data.id)!;
      this.waiting.delete(data.id);
      if (data.error === undefined) done(data.answer as never);
      else failed(new Error(data.error));
    };
  }

  ask<T>(question: Unnumbered<Asked>): Promise<T> {
    const id = ++this.count;
    this.worker.postMessage({ id, ...question });
    return new Promise((done, failed) => this.waiting.set(id, { done: done as never, failed }));
  }
}

const reader = new Reader();

/** Read a file, or say in plain words why it cannot be read. */
export async function readTable(file: Blob, name: string): Promise<Table> {
  if (file.size > LARGEST) throw new Error(`${name} has ${(file.size / 2 ** 20).toFixed(0)} MB; the page takes up to 64 MB.`);
  try {
    let found = await reader.ask<{ server: true } | { server: false; rows: number; columns: Column[] }>({ kind: "read", file });
    if (found.server) {
      const { csv } = await ask<{ csv: string }>("/api/table", { method: "POST", body: file });
      file = new Blob([csv], { type: "text/csv" });
      found = await reader.ask({ kind: "read", file });
    }
    if (found.server) throw new Error("the server sent no text");
    const used = found.columns.flatMap((column, j) => (column.reason ? [] : [j]));
    return { name, rows: found.rows, columns: found.columns, used, body: file };
  } catch (error) {
    throw new Error(`${name} cannot be used: ${(error as Error).message.replace(/\.$/, "")}.`);
  }
}

/** The cells of one row of the table that was read last. */
export const rowOf = (row: number) => reader.ask<string[]>({ kind: "row", row });

/** The table with its clusters, as a CSV. */
export const withLabels = (labels: Int32Array, probabilities: Float64Array) => reader.ask<Blob>({ kind: "labels", labels, probabilities });
