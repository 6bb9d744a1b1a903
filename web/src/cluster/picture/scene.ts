/** The scene of a picture, from the rows, the axes, the flow and the answer. */
import type { Fitted } from "../answer/answers";
import type { Path } from "../flow/model";
import { plane, robustBox, type Data, type Plane } from "../rows/data";
import type { Flow, Scene } from "./stage";

/** The browser's own flow, and the rows of the table that flowed. */
export interface Preview {
  path: Path;
  rows: Uint32Array;
}

export interface Known {
  data: Data;
  rows: number; // of the table
  axes: [string, string];
  fitted: Fitted | null;
  path: Preview | null;
  outliers: Set<number>;
  drawn: boolean; // by hand, in a square that stays
  preview: boolean; // whether the browser's flow is wanted although the library's is there
}

export function sceneOf(known: Known): Scene {
  const { data, fitted, path, outliers } = known;
  const at = plane(data, known.axes);
  const places = at.project(data.values.x, data.values.n);
  const box = known.drawn ? { x0: -2.2, x1: 2.2, y0: -2.2, y1: 2.2, outside: 0 } : robustBox(places, at.flat);
  const same = fitted !== null && fitted.labels.length === known.rows;
  const guessed = same || !path ? null : new Map(Array.from(path.rows, (row, i) => [row, path.path.labels[i]]));
  const label = (i: number) => {
    const row = data.drawn[i];
    return same ? (outliers.has(row) ? -1 : fitted.labels[row]) : (guessed?.get(row) ?? -1);
  };
  const centres = fitted && fitted.columns.length === data.names.length ? at.project(fitted.centres.flat(), fitted.n_clusters) : null;
  return { data, plane: at, box, rows: places, label, flow: flowOf(known, at), centres, t: 0, focus: null, hover: -1 };
}

/** The library's flow, or the browser's where that is wanted or comes first. */
function flowOf({ fitted, path, data, preview, rows }: Known, { project }: Plane): Flow | null {
  const d = data.names.length;
  const layersOf = (x: ArrayLike<number>, layers: number, n: number) => Array.from({ length: layers + 1 }, (_, l) => project(x, n, l * n * d));
  if (fitted && !preview && fitted.columns.length === d) {
    const { layers, n, points, labels } = fitted.flow;
    return { from: "library", layers: layersOf(points, layers, n), labels: Int32Array.from(labels) };
  }
  if (!path) return null;
  const { n, layers, x } = path.path;
  const own = new Float64Array(x.length);
  for (let i = 0; i < x.length; i++) own[i] = x[i] * data.scale[i % d] + data.centre[i % d];
  const labels = fitted && fitted.labels.length === rows ? Int32Array.from(path.rows, (row) => fitted.labels[row]) : path.path.labels;
  return { from: "preview", layers: layersOf(own, layers, n), labels };
}
