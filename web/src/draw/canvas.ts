/** Canvases that follow their size and the theme: scatter plots, curves, matrices. */
import { h } from "../dom";
import { short, ticks } from "../numbers";
import { clusterColour, colours, onTheme } from "./theme";

/** What pictures draw with: a canvas, or a pen that writes SVG. */
export type Pen = Pick<
  CanvasRenderingContext2D,
  | "fillStyle" | "strokeStyle" | "lineWidth" | "globalAlpha" | "font" | "textAlign" | "textBaseline" | "lineCap"
  | "beginPath" | "closePath" | "moveTo" | "lineTo" | "arc" | "rect" | "fill" | "stroke" | "fillRect" | "fillText"
  | "save" | "restore" | "clip" | "setLineDash" | "measureText"
>;

export type Paint = (c: Pen, width: number, height: number) => void;

export interface Picture {
  element: HTMLCanvasElement;
  redraw: () => void;
  close: () => void;
  paint: Paint;
}

export const FONT = "ui-sans-serif, system-ui, sans-serif";

const FRAME = 16; // milliseconds of painting after which other pictures wait for the next frame
let frame = { began: 0, spent: 0 };

/** Paint within a frame, unless others have taken their time in it already. */
function within(now: number, paint: () => void): boolean {
  if (frame.began !== now) frame = { began: now, spent: 0 };
  if (frame.spent > FRAME) return false;
  const start = performance.now();
  paint();
  frame.spent += performance.now() - start;
  return true;
}

/** A canvas that paints itself whenever it must. `height` is CSS pixels for its width. */
export function picture(label: string, height: (width: number) => number, paint: Paint): Picture {
  const element = h("canvas", { role: "img", "aria-label": label });
  let queued = 0;
  /** Give the canvas its size, which is none while it is not on the page. */
  const fit = () => {
    const width = element.clientWidth;
    const tall = Math.round(height(width));
    const ratio = Math.min(3, devicePixelRatio || 1);
    if (width && (element.width !== Math.round(width * ratio) || element.height !== Math.round(tall * ratio))) {
      element.width = Math.round(width * ratio);
      element.height = Math.round(tall * ratio);
      element.style.height = `${tall}px`;
    }
    return { width, tall, ratio };
  };
  queueMicrotask(fit); // as soon as it stands where it was made for, so that nothing below it jumps
  const draw = (now: number) => {
    queued = 0;
    const { width, tall, ratio } = fit();
    if (!width) return;
    const painted = within(now, () => {
      const c = element.getContext("2d")!;
      c.setTransform(ratio, 0, 0, ratio, 0, 0);
      c.clearRect(0, 0, width, tall);
      c.font = `12px ${FONT}`;
      paint(c, width, tall);
    });
    if (!painted) redraw();
  };
  const redraw = () => {
    queued ||= requestAnimationFrame(draw);
  };
  const watch = new ResizeObserver(redraw);
  watch.observe(element);
  const offTheme = onTheme(redraw);
  const close = () => {
    watch.disconnect();
    offTheme();
    cancelAnimationFrame(queued);
  };
  return { element, redraw, close, paint };
}

export interface Box {
  x0: number;
  x1: number;
  y0: number;
  y1: number;
}

/** The box of some points (x, y alternating), a little wider than they are. */
export function boxOf(xy: ArrayLike<number>, margin = 0.06): Box {
  let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let i = 0; i < xy.length; i += 2) {
    if (!Number.isFinite(xy[i]) || !Number.isFinite(xy[i + 1])) continue;
    x0 = Math.min(x0, xy[i]);
    x1 = Math.max(x1, xy[i]);
    y0 = Math.min(y0, xy[i + 1]);
    y1 = Math.max(y1, xy[i + 1]);
  }
  if (!Number.isFinite(x0)) return { x0: -1, x1: 1, y0: -1, y1: 1 };
  const dx = (x1 - x0 || 1) * margin;
  const dy = (y1 - y0 || 1) * margin;
  return { x0: x0 - dx, x1: x1 + dx, y0: y0 - dy, y1: y1 + dy };
}

export interface Frame {
  X: (v: number) => number;
  Y: (v: number) => number;
}

/** Axes with ticks and names; the result places data on the canvas. */
export function axes(
  c: Pen,
  box: Box,
  place: { left: number; top: number; right: number; bottom: number },
  names: [string, string],
  flat = false, // upward is not a quantity
): Frame {
  const { left, top, right, bottom } = place;
  const X = (v: number) => left + ((v - box.x0) / (box.x1 - box.x0)) * (right - left);
  const Y = (v: number) => bottom - ((v - box.y0) / (box.y1 - box.y0)) * (bottom - top);
  c.strokeStyle = colours.line;
  c.fillStyle = colours.soft;
  c.lineWidth = 1;
  c.textAlign = "center";
  c.textBaseline = "top";
  const across = ticks(box.x0, box.x1, Math.max(4, (right - left) / 80));
  for (const t of across) {
    line(c, X(t), top, X(t), bottom);
    c.fillText(short(t, across[1] - across[0]), X(t), bottom + 6);
  }
  c.textAlign = "right";
  c.textBaseline = "middle";
  const upward = flat ? [] : ticks(box.y0, box.y1, (bottom - top) / 45);
  for (const t of upward) {
    line(c, left, Y(t), right, Y(t));
    c.fillText(short(t, upward[1] - upward[0]), left - 6, Y(t));
  }
  c.fillStyle = colours.ink;
  c.textAlign = "right";
  c.textBaseline = "bottom";
  if (names[0]) c.fillText(names[0], right - 4, bottom - 4);
  c.textAlign = "left";
  c.textBaseline = "top";
  if (names[1]) c.fillText(names[1], left + 5, top + 4);
  return { X, Y };
}

export function line(c: Pen, x0: number, y0: number, x1: number, y1: number) {
  c.beginPath();
  c.moveTo(x0, y0);
  c.lineTo(x1, y1);
  c.stroke();
}

/** Dots coloured by cluster; one path for each colour, so that thousands are cheap. A label of NaN is not drawn. */
export function dots(
  c: Pen,
  f: Frame,
  xy: ArrayLike<number>,
  label: (i: number) => number,
  radius: number,
  alpha = 1,
) {
  const groups = new Map<number, number[]>();
  for (let i = 0; i < xy.length / 2; i++) {
    const x = f.X(xy[2 * i]);
    const y = f.Y(xy[2 * i + 1]);
    if (!(Math.abs(x) < 1e5 && Math.abs(y) < 1e5)) continue;
    const k = label(i);
    if (Number.isNaN(k)) continue;
    if (!groups.has(k)) groups.set(k, []);
    groups.get(k)!.push(x, y);
  }
  c.globalAlpha = alpha;
  for (const [k, places] of groups) {
    c.fillStyle = clusterColour(k);
    c.beginPath();
    for (let i = 0; i < places.length; i += 2) {
      c.moveTo(places[i] + radius, places[i + 1]);
      c.arc(places[i], places[i + 1], radius, 0, 2 * Math.PI);
    }
    c.fill();
  }
  c.globalAlpha = 1;
}

/** A disc with the number of a cluster: where it has its centre. */
export function badge(c: Pen, x: number, y: number, k: number, size = 10) {
  c.beginPath();
  c.arc(x, y, size, 0, 2 * Math.PI);
  c.fillStyle = clusterColour(k);
  c.fill();
  c.lineWidth = 2;
  c.strokeStyle = colours.paper;
  c.stroke();
  c.fillStyle = colours.paper;
  c.font = `700 ${size + 1}px ${FONT}`;
  c.textAlign = "center";
  c.textBaseline = "middle";
  c.fillText(String(k), x, y + 0.5);
  c.font = `12px ${FONT}`;
}

/** A ring with a cross: where a cluster has its centre. */
export function mark(c: Pen, x: number, y: number, k: number, size = 7) {
  c.lineWidth = 4.5;
  c.strokeStyle = colours.paper;
  for (let pass = 0; pass < 2; pass++) {
    c.beginPath();
    c.arc(x, y, size, 0, 2 * Math.PI);
    c.moveTo(x - size / 2, y);
    c.lineTo(x + size / 2, y);
    c.moveTo(x, y - size / 2);
    c.lineTo(x, y + size / 2);
    c.stroke();
    c.lineWidth = 2;
    c.strokeStyle = clusterColour(k);
  }
}

export interface Curve {
  name: string;
  colour: () => string;
  x: number[];
  y: number[];
}

/** Curves over time with their names at the top, and a mark at `now`. */
export function curves(title: string, list: () => Curve[], now: () => number | null): Picture {
  return picture(
    title,
    () => 150,
    (c, width, height) => {
      const shown = list();
      const xy: number[] = [];
      for (const curve of shown) curve.x.forEach((x, i) => Number.isFinite(curve.y[i]) && xy.push(x, curve.y[i]));
      if (!xy.length) return; // axes without a curve would show a scale that means nothing
      const place = { left: 46, top: 8, right: width - 8, bottom: height - 24 };
      const f = axes(c, boxOf(xy, 0.08), place, ["", ""]);
      for (const curve of shown) {
        c.strokeStyle = curve.colour();
        c.lineWidth = 2;
        c.beginPath();
        curve.x.forEach((x, i) => Number.isFinite(curve.y[i]) && c.lineTo(f.X(x), f.Y(curve.y[i])));
        c.stroke();
        const last = curve.x.length - 1;
        if (last >= 0 && Number.isFinite(curve.y[last])) {
          c.fillStyle = curve.colour();
          c.beginPath();
          c.arc(f.X(curve.x[last]), f.Y(curve.y[last]), 3, 0, 2 * Math.PI);
          c.fill();
        }
      }
      const at = now();
      if (at !== null) {
        c.strokeStyle = colours.soft;
        c.lineWidth = 1;
        c.setLineDash([3, 3]);
        line(c, f.X(at), place.top, f.X(at), place.bottom);
        c.setLineDash([]);
      }
    },
  );
}
