/** From a table to the rows that are drawn, the rows that flow, and the axes they are drawn along. */
import type { Frame } from "../../draw/canvas";
import { mean, points, principalAxes, rowsOf, sample, type Points } from "../../numbers";
import type { Table } from "../../table/table";

export const DRAWN = 4000; // rows the picture shows at most
export const FLOWING = 1500; // tokens the browser flows at most

export interface Data {
  columns: number[]; // of the table
  names: string[];
  rows: Uint32Array; // of the table that are complete
  drawn: Uint32Array; // those of them that are drawn
  values: Points; // of the rows that are drawn, in their own units
  centre: Float64Array;
  scale: Float64Array;
}

export function prepare(table: Table, columns: number[]): Data {
  const chosen = columns.map((j) => table.columns[j].values!);
  const rows = complete(table.rows, chosen);
  if (!rows.length) throw new Error("No row has a number in each of the chosen columns.");
  const drawn = sample(rows.length, DRAWN, 7).map((at) => rows[at]);
  const values = points(drawn.length, columns.length);
  drawn.forEach((row, i) => chosen.forEach((column, j) => (values.x[i * values.d + j] = column[row])));
  const centre = mean(values);
  const scale = new Float64Array(values.d);
  for (let j = 0; j < values.d; j++) {
    let v = 0;
    for (let i = 0; i < values.n; i++) v += (values.x[i * values.d + j] - centre[j]) ** 2 / values.n;
    scale[j] = Math.sqrt(v) || 1;
  }
  return { columns, names: columns.map((j) => table.columns[j].name), rows, drawn, values, centre, scale };
}

/** The rows in which no column has a gap; a plain loop, for there may be millions. */
function complete(n: number, columns: Float64Array[]): Uint32Array {
  const rows = new Uint32Array(n);
  let count = 0;
  for (let i = 0; i < n; i++) {
    let whole = true;
    for (let j = 0; j < columns.length && whole; j++) whole = Number.isFinite(columns[j][i]);
    if (whole) rows[count++] = i;
  }
  return rows.subarray(0, count);
}

/** The rows that flow in the browser, every column to mean 0 and variance 1. */
export function tokens(data: Data): { input: Points; rows: Uint32Array } {
  const which = sample(data.values.n, FLOWING, 7);
  return { input: standardised(data, rowsOf(data.values, which)), rows: which.map((i) => data.drawn[i]) };
}

export function standardised(data: Data, p: Points): Points {
  const out = points(p.n, p.d);
  for (let i = 0; i < p.n; i++) for (let j = 0; j < p.d; j++) out.x[i * p.d + j] = (p.x[i * p.d + j] - data.centre[j]) / data.scale[j];
  return out;
}

/** The axes on offer: names of columns and, where there are more than two, principal axes. */
export function axisNames(names: string[]): string[] {
  return names.length > 2 ? ["principal 1", "principal 2", "principal 3", ...names] : names;
}

export interface Plane {
  names: [string, string];
  flat: boolean; // one column only: upward is not a quantity
  /** Where n points of the data's own units, from `offset` on, are drawn: x, y alternating. */
  project: (x: ArrayLike<number>, n: number, offset?: number) => Float64Array;
}

export function plane(data: Data, axes: [string, string]): Plane {
  const d = data.names.length;
  const offered = axisNames(data.names);
  const [across, up] = axes.map((name, i) => (offered.includes(name) ? name : (offered[i] ?? "")));
  const few = rowsOf(data.values, sample(data.values.n, 800, 5));
  const principal = [across, up].some((name) => /^principal \d$/.test(name) && !data.names.includes(name)) ? principalAxes(standardised(data, few)) : [];
  const along = (name: string): ((x: ArrayLike<number>, at: number) => number) => {
    const j = data.names.indexOf(name);
    if (j >= 0) return (x, at) => x[at + j];
    const axis = principal[+name.slice(-1) - 1];
    return (x, at) => {
      let sum = 0;
      for (let c = 0; c < d; c++) sum += (axis[c] * (x[at + c] - data.centre[c])) / data.scale[c];
      return sum;
    };
  };
  const flat = d === 1;
  const [X, Y] = [along(across), flat ? null : along(up)];
  const project = (x: ArrayLike<number>, n: number, offset = 0) => {
    const out = new Float64Array(2 * n);
    for (let i = 0; i < n; i++) {
      out[2 * i] = X(x, offset + i * d);
      out[2 * i + 1] = Y ? Y(x, offset + i * d) : strewn(x[offset + i * d]);
    }
    return out;
  };
  const words = (name: string) => (data.names.includes(name) ? name : name.replace("principal", "principal axis"));
  return { names: [words(across), flat ? "" : words(up)], flat, project };
}

/** One column: rows are strewn upward, the same value always to the same height. */
function strewn(v: number): number {
  const s = Math.sin(v * 12.9898 + 4.1414) * 43758.5453;
  return s - Math.floor(s);
}

/** A box around most points, and how many lie outside: a far row does not flatten the rest. */
export function robustBox(xy: Float64Array, flat: boolean): { x0: number; x1: number; y0: number; y1: number; outside: number } {
  const range = (from: number): [number, number] => {
    const v = Float64Array.from({ length: xy.length / 2 }, (_, i) => xy[2 * i + from]).sort();
    const at = (q: number) => v[Math.round(q * (v.length - 1))];
    const [low, high] = [at(0.02), at(0.98)];
    const reach = 2.5 * (high - low || v[v.length - 1] - v[0] || 1);
    const [least, most] = [v.find((one) => one >= low - reach)!, v.findLast((one) => one <= high + reach)!]; // of the rows that are near
    const margin = 0.06 * (most - least || 1);
    return [least - margin, most + margin];
  };
  const [x0, x1] = range(0);
  const [y0, y1] = flat ? [-0.15, 1.9] : range(1);
  let outside = 0;
  for (let i = 0; i < xy.length; i += 2) outside += +(xy[i] < x0 || xy[i] > x1 || xy[i + 1] < y0 || xy[i + 1] > y1);
  return { x0, x1, y0, y1, outside };
}

/** The drawn row nearest a place on the canvas, or -1. */
export function nearestRow(f: Frame, xy: Float64Array, x: number, y: number, within = 14): number {
  let [best, least] = [-1, within * within];
  for (let i = 0; i < xy.length / 2; i++) {
    const r = (f.X(xy[2 * i]) - x) ** 2 + (f.Y(xy[2 * i + 1]) - y) ** 2;
    if (r < least) [best, least] = [i, r];
  }
  return best;
}
