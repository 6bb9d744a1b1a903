/** The whole state of the view for the address; a file of the reader's own is the one thing a link cannot carry. */
import type { Table } from "../table/table";
import type { Choices } from "./drawer";
import type { Player } from "./picture/player";
import { axisNames, type Data } from "./rows/data";
import type { Source } from "./rows/source";

interface View {
  chosen: Choices;
  table: Table;
  data: Data | null;
  source: Source;
  db: number | null;
  player: Player;
  focus: number | null;
}

/** The names of the columns that were chosen; none where they are those that the library chooses by itself. */
export const named = (chosen: Choices, table: Table) => (chosen.columns.join() === table.used.join() ? [] : chosen.columns.map((j) => table.columns[j].name));

export function state({ chosen, table, data, source, db, player, focus }: View): Record<string, string | number | null> {
  const offered = data ? axisNames(data.names) : [];
  return {
    data: source.code,
    noise: source.name.startsWith("shape-") ? source.noise : null,
    columns: named(chosen, table).join("|"),
    x: chosen.axes[0] === offered[0] ? null : chosen.axes[0],
    y: chosen.axes[1] === offered[1] ? null : chosen.axes[1],
    db,
    k: chosen.n_clusters,
    only: focus,
    flow: chosen.model,
    layer: player.t >= player.layers ? null : +player.t.toFixed(2),
  };
}
