/** Matrices as squares, with numbers where there is room, whose rows can be pointed at. */
import { FONT, line, picture, type Picture } from "../draw/canvas";
import { colours } from "../draw/theme";

export interface MatrixOptions {
  cell?: number; // the largest side of a square
  most?: number; // the largest height
  groups?: { at: number; name: string }[];
  /** The row and column to mark, and what to do when the pointer is over a cell (-1, -1 when it leaves). */
  marked?: () => [row: number, column: number];
  over?: (row: number, column: number) => void;
}

/** A matrix as squares: the stronger the colour the larger the number, orange below zero; numbers where there is room. */
export function matrix(label: string, values: () => number[][], options: MatrixOptions = {}): Picture {
  const top = options.groups ? 16 : 0;
  const shape = () => [values().length, values()[0]?.length ?? 1];
  const side = (width: number) => Math.min(options.cell ?? 18, width / shape()[1]);
  const made = picture(
    label,
    (width) => top + Math.max(4, Math.min(side(width), (options.most ?? 400) / shape()[0]) * shape()[0]) + 1,
    (c, width, height) => {
      const M = values();
      const rows = M.length;
      const w = side(width);
      const tall = (height - top - 1) / rows;
      const scale = Math.max(1e-12, ...M.flat().map((v) => (Number.isFinite(v) ? Math.abs(v) : 0)));
      const [row, column] = options.marked?.() ?? [-1, -1];
      const legible = w >= 25 && tall >= 14;
      c.font = `10.5px ${FONT}`;
      M.forEach((line, i) =>
        line.forEach((v, j) => {
          const strength = Math.min(1, Math.abs(v) / scale) * +(v !== 0);
          c.fillStyle = v < 0 ? colours.bad : colours.accent;
          c.globalAlpha = 0.06 + 0.94 * strength;
          c.fillRect(j * w, top + i * tall, Math.max(0.5, w - (w > 5 ? 1 : 0)), Math.max(0.5, tall - (tall > 5 ? 1 : 0)));
          c.globalAlpha = 1;
          if (!legible || v === 0) return;
          c.fillStyle = strength > 0.5 ? colours.paper : colours.ink;
          c.textAlign = "center";
          c.textBaseline = "middle";
          c.fillText(cellText(v), (j + 0.5) * w, top + (i + 0.5) * tall);
        }),
      );
      c.strokeStyle = colours.ink;
      c.lineWidth = 1.5;
      c.beginPath();
      if (row >= 0 && row < rows) c.rect(0.75, top + row * tall, M[0].length * w - 1.5, tall);
      if (column >= 0 && column < M[0].length) c.rect(column * w, top + 0.75, w, rows * tall - 1.5);
      c.stroke();
      c.fillStyle = colours.soft;
      c.textAlign = "left";
      c.textBaseline = "top";
      c.font = `11px ${FONT}`;
      for (const group of options.groups ?? []) {
        c.fillText(group.name, group.at * w, 0);
        c.strokeStyle = colours.soft;
        c.lineWidth = 1;
        if (group.at) line(c, group.at * w - 0.5, top - 4, group.at * w - 0.5, height);
      }
    },
  );
  const { over } = options;
  if (over) {
    made.element.addEventListener("pointermove", (event) => {
      const { left, top: above, width, height } = made.element.getBoundingClientRect();
      const [i, j] = [Math.floor(((event.clientY - above - top) / (height - top)) * shape()[0]), Math.floor((event.clientX - left) / side(width))];
      over(i >= 0 && i < shape()[0] ? i : -1, j >= 0 && j < shape()[1] ? j : -1);
    });
    made.element.addEventListener("pointerleave", () => over(-1, -1));
  }
  return made;
}

/** A number in as few characters as a cell has room for. */
const cellText = (v: number) => (Math.abs(v) >= 99.5 ? v.toPrecision(1) : Math.abs(v) >= 9.95 ? v.toFixed(0) : String(+v.toFixed(Math.abs(v) < 1 ? 2 : 1)).replace("0.", "."));
