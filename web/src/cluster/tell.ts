/** Everything that is said about an answer: the verdict, notes, cards, bars and the heat map. */
import type { Table } from "../table/table";
import type { Fitted } from "./answer/answers";
import { backs, cards, heatMap } from "./answer/cards";
import { posterior } from "./answer/posterior";
import type { Refits } from "./answer/refits";
import { again, notes, verdict } from "./answer/verdict";
import type { Choices } from "./drawer";
import type { Words } from "./layout";
import type { Preview } from "./picture/scene";
import type { Scene } from "./picture/stage";
import type { Data } from "./rows/data";

interface View {
  table: Table | null;
  data: Data | null;
  scene: Scene | null;
  fitted: Fitted | null;
  path: Preview | null; // says how many clusters there may be while the answer is not there
  chosen: Choices;
  refits: Refits;
  words: Words;
  focusOn: (k: number | null) => void;
}

/** Only how stable the answer is: it comes bit by bit, and what the reader holds stays as it is. */
export function tellAgain({ fitted, refits, words }: View) {
  if (!fitted) return;
  again(words.verdict, fitted, refits);
  backs(words.list, refits);
}

export function tell(view: View) {
  const { fitted, path, scene, table, data, words } = view;
  const asked = view.chosen.n_clusters !== null;
  const focus = scene?.focus ?? null;
  const K = fitted?.n_clusters ?? (path ? new Set(path.path.labels).size : null);
  if (K === null || !table) return;
  verdict(words.verdict, K, fitted, view.refits, asked);
  if (!fitted) return;
  notes(words.notes, fitted, scene, data);
  cards(words.list, fitted, view.refits, focus, (k) => view.focusOn(k));
  posterior(words.odds, fitted, asked);
  const values = (row: number) => fitted.columns.slice(0, 4).map((name) => `${name} ${table.columns.find((column) => column.name === name)?.values?.[row] ?? "?"}`);
  heatMap(words.heat, fitted, focus, (row) => `row ${row + 1}: ${values(row).join(", ")}`);
}
