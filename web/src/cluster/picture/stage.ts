/** The picture of a clustering: rows faint where they are, tokens on their way, centres with their numbers. */
import { axes as drawAxes, badge, dots, FONT, type Box, type Frame, type Pen } from "../../draw/canvas";
import { clusterColour, colours } from "../../draw/theme";
import type { Data, Plane } from "../rows/data";

/** Tokens at every layer as they are drawn, and the cluster that each ends in. */
export interface Flow {
  from: "library" | "preview";
  layers: Float64Array[]; // x, y alternating
  labels: Int32Array;
}

export interface Scene {
  data: Data;
  plane: Plane;
  box: Box & { outside: number };
  rows: Float64Array; // where the drawn rows are, x and y alternating
  label: (i: number) => number; // the cluster of a drawn row, -1 where it is not known yet
  flow: Flow | null;
  centres: Float64Array | null;
  t: number; // the layer, and how far on to the next
  focus: number | null; // the one cluster that is shown in colour
  hover: number; // a drawn row, or -1
}

const AROUND = 306; // pixels above and below the picture on the first screen

/** How tall the picture is for its width: what plays it stands on the first screen too. */
export const tall = (width: number) => Math.min(640, Math.max(360, Math.min(0.74 * width, innerHeight - AROUND)));

/** Where the axes stand; where it is wide, the answer has the band above them to itself. */
export const margins = (width: number, height: number) => ({ left: 46, top: width > 560 ? 70 : 8, right: width - 8, bottom: height - 28 });

export function frameOf(scene: Scene, width: number, height: number): Frame {
  const { left, top, right, bottom } = margins(width, height);
  const { box } = scene;
  return {
    X: (v) => left + ((v - box.x0) / (box.x1 - box.x0)) * (right - left),
    Y: (v) => bottom - ((v - box.y0) / (box.y1 - box.y0)) * (bottom - top),
  };
}

/** Tokens between two layers, eased so that each layer is felt as a step. */
export function between(layers: Float64Array[], t: number): Float64Array {
  const last = layers.length - 1;
  const at = Math.min(last, Math.max(0, Math.floor(t)));
  const part = Math.min(1, Math.max(0, t - at));
  if (at === last || part === 0) return layers[at];
  const s = part * part * (3 - 2 * part);
  const [a, b] = [layers[at], layers[at + 1]];
  return a.map((v, i) => v + s * (b[i] - v));
}

export function drawScene(c: Pen, width: number, height: number, scene: Scene) {
  const { flow, focus, rows, label } = scene;
  const place = margins(width, height);
  const f = drawAxes(c, scene.box, place, scene.plane.names, scene.plane.flat);
  c.save();
  c.beginPath();
  c.rect(place.left, place.top, place.right - place.left, place.bottom - place.top);
  c.clip();
  if (scene.plane.flat) histogram(c, f, scene);
  const small = scene.data.drawn.length > 800 ? 1.9 : scene.data.drawn.length > 200 ? 2.8 : 3.6;
  const seen = (k: number) => focus === null || k === focus;
  const shown = (k: number) => (seen(k) ? k : NaN);
  if (focus !== null) dots(c, f, rows, (i) => (seen(label(i)) ? NaN : -1), small, 0.22);
  const moving = flow !== null && flow.layers.length > 1;
  dots(c, f, rows, (i) => shown(label(i)), small, moving && scene.t > 0 ? 0.42 : 0.85);
  if (flow && moving) {
    trails(c, f, flow, scene.t, seen);
    dots(c, f, between(flow.layers, scene.t), (i) => shown(flow.labels[i]), small + 1.1, 0.95);
  }
  strays(c, f, scene, place, seen);
  const last = flow ? flow.layers.length - 1 : 0;
  const nearly = Math.max(0, Math.min(1, 1 - (last - scene.t) / 0.7));
  if (scene.centres && nearly > 0 && !scene.plane.flat) {
    c.globalAlpha = nearly;
    for (let k = scene.centres.length / 2 - 1; k >= 0; k--)
      if (seen(k)) badge(c, f.X(scene.centres[2 * k]), f.Y(scene.centres[2 * k + 1]), k, scene.centres.length > 40 ? 7 : 10);
    c.globalAlpha = 1;
  }
  if (scene.hover >= 0) ring(c, f.X(rows[2 * scene.hover]), f.Y(rows[2 * scene.hover + 1]));
  c.restore();
}

function ring(c: Pen, x: number, y: number) {
  c.strokeStyle = colours.ink;
  c.lineWidth = 2;
  c.beginPath();
  c.arc(x, y, 7, 0, 2 * Math.PI);
  c.stroke();
}

/** Where the tokens came from, over the last two layers. */
function trails(c: Pen, f: Frame, flow: Flow, t: number, seen: (k: number) => boolean) {
  if (t <= 0) return;
  const from = Math.max(0, t - 2);
  const times = [from, ...flow.layers.keys()].filter((at, i) => !i || (at > from && at < t)).concat(t);
  const places = times.map((at) => between(flow.layers, at));
  c.lineWidth = 1;
  c.globalAlpha = 0.25;
  const n = flow.labels.length;
  const stride = Math.max(1, Math.ceil(n / 500));
  for (let i = 0; i < n; i += stride) {
    if (!seen(flow.labels[i])) continue;
    c.strokeStyle = clusterColour(flow.labels[i]);
    c.beginPath();
    for (const layer of places) c.lineTo(f.X(layer[2 * i]), f.Y(layer[2 * i + 1]));
    c.stroke();
  }
  c.globalAlpha = 1;
}

/** Rows that lie outside the picture are arrowheads at its edge. */
function strays(c: Pen, f: Frame, scene: Scene, place: ReturnType<typeof margins>, seen: (k: number) => boolean) {
  const { box, rows, label } = scene;
  if (!box.outside) return;
  for (let i = 0; i < rows.length / 2; i++) {
    const [x, y] = [rows[2 * i], rows[2 * i + 1]];
    if ((x >= box.x0 && x <= box.x1 && y >= box.y0 && y <= box.y1) || !seen(label(i))) continue;
    const at = [Math.max(place.left + 7, Math.min(place.right - 7, f.X(x))), Math.max(place.top + 7, Math.min(place.bottom - 7, f.Y(y)))];
    const angle = Math.atan2(f.Y(y) - at[1], f.X(x) - at[0]);
    c.fillStyle = clusterColour(label(i));
    c.beginPath();
    for (const turn of [0, 2.5, -2.5]) c.lineTo(at[0] + 7 * Math.cos(angle + turn), at[1] + 7 * Math.sin(angle + turn));
    c.closePath();
    c.fill();
  }
}

/** One column: how many rows of each cluster lie where, above the strewn rows. */
function histogram(c: Pen, f: Frame, { box, rows, label, focus }: Scene) {
  const bins = 48;
  const counts = new Map<number, Float64Array>();
  const totals = new Float64Array(bins);
  for (let i = 0; i < rows.length / 2; i++) {
    const at = Math.floor(((rows[2 * i] - box.x0) / (box.x1 - box.x0)) * bins);
    if (at < 0 || at >= bins) continue;
    const k = label(i);
    if (!counts.has(k)) counts.set(k, new Float64Array(bins));
    counts.get(k)![at]++;
    totals[at]++;
  }
  const most = Math.max(...totals, 1);
  const base = new Float64Array(bins).fill(1.05);
  for (const k of [...counts.keys()].sort((a, b) => a - b)) {
    c.fillStyle = focus === null || focus === k ? clusterColour(k) : colours.line;
    c.globalAlpha = 0.75;
    counts.get(k)!.forEach((count, at) => {
      if (!count) return;
      const [x, w] = [f.X(box.x0 + ((box.x1 - box.x0) * at) / bins), (f.X(box.x1) - f.X(box.x0)) / bins - 1];
      const top = base[at] + (0.8 * count) / most;
      c.fillRect(x, f.Y(top), w, f.Y(base[at]) - f.Y(top));
      base[at] = top;
    });
  }
  c.globalAlpha = 1;
}

/** Words in two lines of so many letters at most. */
function wrapped(words: string, most: number): string[] {
  const at = words.length > most ? words.lastIndexOf(" ", most) : words.length;
  const rest = words.slice(at + 1);
  return [words.slice(0, at), rest.length > most ? `${rest.slice(0, most - 1)}…` : rest].filter(Boolean);
}

/** The paper of a picture to keep: a title and a line of words above where the scene goes. */
export function poster(c: Pen, width: number, height: number, title: string, words: string) {
  c.fillStyle = colours.paper;
  c.fillRect(0, 0, width, height);
  c.fillStyle = colours.ink;
  c.textAlign = "left";
  c.textBaseline = "top";
  c.font = `650 18px ${FONT}`;
  c.fillText(title, 16, 14);
  c.fillStyle = colours.soft;
  c.font = `13px ${FONT}`;
  wrapped(words, Math.floor((width - 32) / 7)).forEach((line, i) => c.fillText(line, 16, 37 + 17 * i));
  c.font = `12px ${FONT}`;
}

export const POSTER_TOP = 6; // above the band that margins leave for words
