/** The picture of a circuit at work: points, centres, and whom the head that acts connects. */
import { axes, badge, boxOf, dots, line, type Frame, type Pen } from "../draw/canvas";
import { clusterColour, colours } from "../draw/theme";

interface Head {
  Q: number[][];
  K: number[][];
  V: number[][];
  queries: "points" | "centres";
  keys: "points" | "centres";
  does: string;
}

interface Stream {
  points: number[][];
  centres: number[][];
}

export interface Circuit {
  algorithm: string;
  parts: Record<string, string>;
  slots: Record<string, [number, number]>;
  heads: Record<string, Head>;
  points: [number, number][];
  steps: { before: Stream; after: Stream; attention: Record<string, number[][]> }[];
}

export function frameOf(circuit: Circuit, width: number, height: number): { f: Frame; box: ReturnType<typeof boxOf>; place: { left: number; top: number; right: number; bottom: number } } {
  const { points, steps, slots } = circuit;
  const centres = steps.flatMap((step) => [step.before, step.after].flatMap((stream) => stream.centres.map((token) => token.slice(...slots.point))));
  const box = boxOf([...points, ...centres].flat(), 0.12);
  const place = { left: 34, top: 6, right: width - 6, bottom: height - 24 };
  const f = {
    X: (v: number) => place.left + ((v - box.x0) / (box.x1 - box.x0)) * (place.right - place.left),
    Y: (v: number) => place.bottom - ((v - box.y0) / (box.y1 - box.y0)) * (place.bottom - place.top),
  };
  return { f, box, place };
}

/** Points in the colours of their clusters, centres, whom the head that acts connects, and what is pointed at. */
export function drawCircuit(c: Pen, width: number, height: number, circuit: Circuit, asked: { layer: number; head: string }, linked: { points: number; centres: number }) {
  const { points, steps, slots, heads } = circuit;
  const now = steps[asked.layer];
  const spot = (token: number[]) => token.slice(...slots.point);
  const [before, after] = [now.before, now.after].map((stream) => stream.centres.map(spot));
  const { box, place } = frameOf(circuit, width, height);
  const f = axes(c, box, place, ["", ""]);
  const assigned = asked.head === "enc_sa" ? now.before.points : now.after.points;
  const label = assigned.map((token) => {
    const share = token.slice(...slots.assignment);
    const most = Math.max(...share);
    return most > 0 ? share.indexOf(most) : -1;
  });
  const A = now.attention[asked.head];
  const { queries, keys } = heads[asked.head];
  if (queries !== keys) {
    const largest = Math.max(...A.flat());
    A.forEach((row, i) =>
      row.forEach((a, j) => {
        if (a < 0.02 * largest) return;
        const [x, y] = queries === "points" ? [points[i], before[j]] : [points[j], before[i]];
        c.strokeStyle = clusterColour(queries === "points" ? j : i);
        c.globalAlpha = 0.5 * (a / largest);
        c.lineWidth = 1.2;
        line(c, f.X(x[0]), f.Y(x[1]), f.X(y[0]), f.Y(y[1]));
      }),
    );
    c.globalAlpha = 1;
  }
  dots(c, f, points.flat(), (i) => label[i], 5);
  before.forEach(([x, y], k) => {
    c.strokeStyle = clusterColour(k);
    c.fillStyle = colours.paper;
    c.lineWidth = 2.5;
    c.beginPath();
    c.arc(f.X(x), f.Y(y), 8, 0, 2 * Math.PI);
    c.fill();
    c.stroke();
    if (asked.head === "dec_ca") line(c, f.X(x), f.Y(y), f.X(after[k][0]), f.Y(after[k][1]));
  });
  if (asked.head === "dec_ca") after.forEach(([x, y], k) => badge(c, f.X(x), f.Y(y), k, 9));
  const rings: [number[] | undefined, number][] = [[points[linked.points], 9], [before[linked.centres], 13]];
  for (const [at, size] of rings) {
    if (!at) continue;
    c.strokeStyle = colours.ink;
    c.lineWidth = 2;
    c.beginPath();
    c.arc(f.X(at[0]), f.Y(at[1]), size, 0, 2 * Math.PI);
    c.stroke();
  }
}
