/** What the library on this machine says about a table; the last question of a kind is the only one that counts. */
import { ask } from "../../dom";

export interface Fitted {
  n_rows: number;
  n_dropped: number;
  columns: string[];
  skipped: Record<string, string>;
  n_clusters: number;
  n_clusters_posterior: Record<string, number>;
  expected_index: number | null;
  share_uncertain: number;
  n_outliers: number;
  snr_db: number | null;
  clusters: { cluster: number; rows: number; weight: number; centre: Record<string, number>; traits: string[] }[];
  diagnosis: string[];
  notes: string[];
  headline: string;
  certainty: string;
  refits: number; // parts of the rows that are worth fitting again without being asked
  labels: number[];
  probabilities: (number | null)[];
  rivals: number[];
  outliers: number[];
  centres: number[][];
  differences: number[][];
  typical: number[][];
  flow: { layers: number; n: number; points: number[]; labels: number[]; times: number[]; snr_db: number };
}

/** How often each number of clusters, and each cluster, came back. */
export interface Stability {
  n_clusters: Record<string, number>;
  clusters: number[];
}

export interface Peer {
  name: string;
  words: string;
  labels: number[];
}

export interface Question {
  body: Blob;
  columns: string[];
  snr_db?: number | null;
  n_clusters?: number | null;
}

function address(path: string, { columns, snr_db, n_clusters }: Question, more: [string, string][] = []): string {
  const query = new URLSearchParams([...columns.map((name): [string, string] => ["columns", name]), ...more]);
  if (snr_db !== null && snr_db !== undefined) query.set("snr_db", String(snr_db));
  if (n_clusters) query.set("n_clusters", String(n_clusters));
  return `/api/${path}?${query}`;
}

/** One kind of question: asking again forgets the answer that has not come yet. */
export class Asker {
  private going: AbortController | null = null;

  private async post<T>(path: string, body: Blob): Promise<T | null> {
    this.stop();
    const mine = (this.going = new AbortController());
    try {
      return await ask<T>(path, { method: "POST", body, signal: mine.signal });
    } catch (error) {
      if (mine.signal.aborted) return null;
      throw error;
    } finally {
      if (this.going === mine) this.going = null;
    }
  }

  stop() {
    this.going?.abort();
    this.going = null;
  }

  /** The clusters, or null if another question came in between. */
  fit(question: Question) {
    return this.post<Fitted>(address("fit", question), question.body);
  }

  stability(question: Question, n: number) {
    return this.post<Stability>(address("stability", question, [["n", String(n)]]), question.body);
  }

  dial(question: Question, marks: number[]) {
    return this.post<number[]>(address("dial", { ...question, snr_db: null }, marks.map((db): [string, string] => ["db", String(db)])), question.body);
  }

  peers(question: Question, n_clusters: number) {
    return this.post<Peer[]>(address("peers", { ...question, snr_db: null, n_clusters }), question.body);
  }
}
