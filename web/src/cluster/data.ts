/** From a table to what the model sees and what the picture shows. */
import { mean, points, principalAxes, rowsOf, sample, standardised, type Points } from "../numbers";
import { complete, type Table } from "../table";

export const SAMPLE = 1500; // tokens the browser flows; more rows are represented by a sample

export interface Choice {
  columns: number[];
  scaled: boolean;
  axes: [string, string]; // "p0", "p1" for principal axes, "c0", "c1" for the chosen columns
  dimension: number | null; // that the model takes, null if any
}

export interface Prepared {
  rows: Uint32Array; // of the table that are complete
  all: Points; // every complete row as the model sees it
  chosen: Uint32Array; // those of them that flow
  input: Points; // the rows that flow
  names: [string, string];
  /** Where points of the model's space are drawn: x, y alternating. */
  shown: (x: ArrayLike<number>, n: number, offset?: number) => Float64Array;
}

/** The axes on offer for some columns, as value and words. */
export function axisChoices(table: Table, columns: number[]): [string, string][] {
  const named = columns.map((c, j): [string, string] => [`c${j}`, table.numeric[c].name]);
  const principal = columns.length > 2 ? columns.slice(0, 3).map((_, j): [string, string] => [`p${j}`, `principal axis ${j + 1}`]) : [];
  return [...principal, ...named];
}

export function prepare(table: Table, choice: Choice): Prepared {
  const { points: raw, rows } = complete(table, choice.columns);
  if (rows.length < 3) throw new Error("Fewer than three rows have a number in every chosen column.");
  const Z = choice.scaled ? standardised(raw) : raw;
  const centre = mean(raw);
  const spread = scales(raw, Z, centre);
  const axes = principalAxes(Z);
  const options = new Map(axisChoices(table, choice.columns));
  const pick = choice.axes.map((name) => axisOf(name, choice.columns.length, axes));
  const back = (name: string, v: number) => {
    const j = +name.slice(1);
    return choice.scaled && name[0] === "c" ? v * spread[j] + centre[j] : v;
  };
  const flat = choice.dimension === 2;
  const all = flat ? onto(Z, pick) : Z;
  const chosen = sample(all.n, SAMPLE, 7);
  const shown = (x: ArrayLike<number>, n: number, offset = 0) => {
    const out = new Float64Array(2 * n);
    for (let i = 0; i < n; i++)
      for (let a = 0; a < 2; a++) {
        let v = 0;
        if (flat) v = x[offset + 2 * i + a];
        else for (let j = 0; j < Z.d; j++) v += pick[a][j] * x[offset + i * Z.d + j];
        out[2 * i + a] = choice.axes[a] ? back(choice.axes[a], v) : 0;
      }
    return out;
  };
  const names = choice.axes.map((name) => options.get(name) ?? "") as [string, string];
  return { rows, all, chosen, input: rowsOf(all, chosen), names, shown };
}

function axisOf(name: string, d: number, principal: number[][]): number[] {
  if (!name) return new Array<number>(d).fill(0);
  const j = +name.slice(1);
  return name[0] === "p" ? principal[j] : Array.from({ length: d }, (_, i) => +(i === j));
}

function onto(p: Points, pick: number[][]): Points {
  const out = points(p.n, 2);
  for (let i = 0; i < p.n; i++)
    for (let a = 0; a < 2; a++) for (let j = 0; j < p.d; j++) out.x[2 * i + a] += pick[a][j] * p.x[i * p.d + j];
  return out;
}

/** What one unit of a standardised column is in the column's own units. */
function scales(raw: Points, Z: Points, centre: Float64Array): Float64Array {
  return Float64Array.from({ length: raw.d }, (_, j) => {
    for (let i = 0; i < raw.n; i++) {
      const z = Z.x[i * raw.d + j];
      if (Math.abs(z) > 1e-9) return (raw.x[i * raw.d + j] - centre[j]) / z;
    }
    return 1;
  });
}
