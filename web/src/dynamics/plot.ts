/** The picture of tokens: where they are, where they were, where the field would carry them, whom one of them looks at. */
import { axes, dots, line, type Frame, type Pen } from "../draw/canvas";
import { clusterColour, colours } from "../draw/theme";
import { velocity, weightsOf, type Matrix } from "./attention";
import type { World } from "./world";

export interface Look {
  arrows: boolean;
  groups: number; // colours
  t: number;
  hover: number; // token, or -1
}

const place = (width: number, height: number) => ({ left: 42, top: 6, right: width - 6, bottom: height - 26 });

function frameOf(world: World, t: number, width: number, height: number): { f: Frame; box: { x0: number; x1: number; y0: number; y1: number } } {
  const reach = Math.max(2.6, quantile(world.at(t).x, 0.98)) * 1.15;
  const { left, top, right, bottom } = place(width, height);
  const aspect = (bottom - top) / (right - left);
  const [wide, tall] = aspect < 1 ? [reach / aspect, reach] : [reach, reach * aspect];
  const box = { x0: -wide, x1: wide, y0: -tall, y1: tall };
  return { box, f: { X: (v) => left + ((v + wide) / (2 * wide)) * (right - left), Y: (v) => bottom - ((v + tall) / (2 * tall)) * (bottom - top) } };
}

/** The token near a place on the canvas, or -1. */
export function nearestToken(world: World, t: number, width: number, height: number, px: number, py: number): number {
  const { f } = frameOf(world, t, width, height);
  const { x } = world.at(t);
  let [best, least] = [-1, 150];
  for (let i = 0; i < x.length / 2; i++) {
    const r = (f.X(x[2 * i]) - px) ** 2 + (f.Y(x[2 * i + 1]) - py) ** 2;
    if (r < least) [best, least] = [i, r];
  }
  return best;
}

export function drawTokens(c: Pen, width: number, height: number, world: World, look: Look) {
  const now = world.at(look.t);
  const { box } = frameOf(world, look.t, width, height);
  const at = place(width, height);
  const f = axes(c, box, at, ["", ""]);
  c.save();
  c.beginPath();
  c.rect(at.left, at.top, at.right - at.left, at.bottom - at.top);
  c.clip();
  if (look.arrows) arrows(c, f, world, now.x, box);
  trails(c, f, world, look);
  ellipse(c, f, now.x, now.covariance);
  if (look.hover >= 0) attention(c, f, world, now.x, look.hover);
  dots(c, f, now.x, (i) => i % look.groups, now.x.length > 1000 ? 2 : 3.2, 0.85);
  c.restore();
}

/** The field on a grid, each arrow as strong as the field is there. */
function arrows(c: Pen, f: Frame, world: World, x: Float64Array, box: { x0: number; x1: number; y0: number; y1: number }) {
  const grid: number[] = [];
  const most = world.set.attention === "sinkhorn" ? 240 : 500; // coordinates; Sinkhorn takes many rounds over all pairs
  const few = x.length > most ? x.filter((_, i) => Math.floor(i / 2) % Math.ceil(x.length / most) === 0) : x;
  if (world.set.attention === "sinkhorn") for (let i = 0; i < few.length; i += 2 * Math.ceil(few.length / 200)) grid.push(few[i], few[i + 1]);
  else {
    const across = Math.max(7, Math.min(15, Math.round((f.X(box.x1) - f.X(box.x0)) / 40)));
    const up = Math.max(7, Math.min(11, Math.round((f.Y(box.y0) - f.Y(box.y1)) / 40)));
    for (let a = 0; a < across; a++) for (let b = 0; b < up; b++) grid.push(box.x0 + ((a + 0.5) / across) * (box.x1 - box.x0), box.y0 + ((b + 0.5) / up) * (box.y1 - box.y0));
  }
  const places = Float64Array.from(grid);
  const v = world.set.attention === "sinkhorn" ? at(velocity(world.set, few), few, places) : velocity(world.set, few, places);
  let fastest = 1e-9;
  for (let i = 0; i < v.length; i += 2) fastest = Math.max(fastest, Math.hypot(v[i], v[i + 1]));
  c.strokeStyle = colours.soft;
  c.lineWidth = 1.3;
  for (let i = 0; i < places.length; i += 2) {
    const speed = Math.hypot(v[i], v[i + 1]);
    if (speed < 1e-6 * fastest) continue;
    const long = 6 + 20 * Math.sqrt(speed / fastest);
    const [ux, uy] = [v[i] / speed, -v[i + 1] / speed];
    const [X, Y] = [f.X(places[i]), f.Y(places[i + 1])];
    const [tx, ty] = [X + long * ux, Y + long * uy];
    c.globalAlpha = 0.2 + 0.5 * Math.sqrt(speed / fastest);
    line(c, X, Y, tx, ty);
    line(c, tx, ty, tx - 4.5 * ux - 3 * uy, ty - 4.5 * uy + 3 * ux);
    line(c, tx, ty, tx - 4.5 * ux + 3 * uy, ty - 4.5 * uy - 3 * ux);
  }
  c.globalAlpha = 1;
}

/** The velocities of those tokens that are among the places. */
function at(v: Float64Array, x: Float64Array, places: Float64Array): Float64Array {
  const stride = Math.max(1, Math.round(x.length / places.length));
  return places.map((_, i) => v[2 * stride * Math.floor(i / 2) + (i % 2)] ?? 0);
}

function trails(c: Pen, f: Frame, world: World, look: Look) {
  const end = world.past.indexOf(world.at(look.t));
  const states = world.past.slice(Math.max(0, end - 14), end + 1).filter((_, i, all) => (all.length - 1 - i) % 2 === 0);
  if (states.length < 2) return;
  const n = states[0].x.length / 2;
  c.lineWidth = 1;
  c.globalAlpha = 0.3;
  for (let i = 0; i < n; i += Math.ceil(n / 300)) {
    c.strokeStyle = clusterColour(i % look.groups);
    c.beginPath();
    for (const { x } of states) c.lineTo(f.X(x[2 * i]), f.Y(x[2 * i + 1]));
    c.stroke();
  }
  c.globalAlpha = 1;
}

/** Two standard deviations of the cloud: the point of the cone that the tokens are at. */
function ellipse(c: Pen, f: Frame, x: Float64Array, S: Matrix) {
  let [mx, my] = [0, 0];
  for (let i = 0; i < x.length; i += 2) [mx, my] = [mx + (2 * x[i]) / x.length, my + (2 * x[i + 1]) / x.length];
  const [a, b, d] = [Math.sqrt(Math.max(S[0], 1e-12)), S[1] / Math.sqrt(Math.max(S[0], 1e-12)), 0];
  const low = Math.sqrt(Math.max(S[3] - b * b, 0));
  c.strokeStyle = colours.ink;
  c.lineWidth = 1.6;
  c.globalAlpha = 0.55;
  c.setLineDash([5, 4]);
  c.beginPath();
  for (let k = 0; k <= 72; k++) {
    const [u, w] = [2 * Math.cos((k * Math.PI) / 36), 2 * Math.sin((k * Math.PI) / 36)];
    c.lineTo(f.X(mx + a * u + d), f.Y(my + b * u + low * w));
  }
  c.stroke();
  c.setLineDash([]);
  c.globalAlpha = 1;
}

/** Lines from one token to all that it looks at; orange where the weight is below zero. */
function attention(c: Pen, f: Frame, world: World, x: Float64Array, i: number) {
  const w = weightsOf(world.set, x, i);
  const most = w.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-12);
  for (let j = 0; j < w.length; j++) {
    const share = Math.abs(w[j]) / most;
    if (share < 0.03) continue;
    c.strokeStyle = w[j] < 0 ? colours.bad : colours.accent;
    c.globalAlpha = 0.1 + 0.7 * share;
    c.lineWidth = 0.5 + 1.5 * share;
    line(c, f.X(x[2 * i]), f.Y(x[2 * i + 1]), f.X(x[2 * j]), f.Y(x[2 * j + 1]));
  }
  c.globalAlpha = 1;
}

function quantile(x: Float64Array, q: number): number {
  const sorted = x.map(Math.abs).sort();
  return sorted[Math.floor(q * (sorted.length - 1))];
}
