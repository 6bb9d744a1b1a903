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

/** What an address asks of a table, where it asks for anything; `state` is what writes it. */
export function askedOf(table: Table, address: URLSearchParams) {
  const named = address.getAll("columns").flatMap((names) => names.split("|"));
  const columns = table.columns.flatMap((column, j) => (column.values && named.includes(column.name) ? [j] : []));
  const number = (name: string) => (address.has(name) ? +address.get(name)! : null);
  const chosen: Choices = {
    columns: columns.length ? columns : table.used,
    axes: [address.get("x") ?? "", address.get("y") ?? ""],
    n_clusters: number("k") || null,
    model: address.get("flow") ?? "",
  };
  return { chosen, db: number("db"), focus: number("only"), layer: number("layer") };
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
