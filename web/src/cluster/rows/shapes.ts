/** Tables made here: shapes with a known answer, and points that the reader drew. */
import { normal, uniform } from "../../numbers";

type Make = (random: () => number, gauss: () => number, i: number, noise: number) => [number, number];

/** Words, what is true of it, and one point of it. */
export const SHAPES: Record<string, { words: string; truth: string; make: Make }> = {
  blobs: { words: "Four groups", truth: "four round groups", make: (_, g, i, s) => [[-2, -1.4], [2, -1.6], [0.2, 1.9], [2.6, 1.6]][i % 4].map((c) => c + (0.25 + s) * g()) as [number, number] },
  ellipses: { words: "Long groups", truth: "three long groups, side by side", make: (_, g, i, s) => [2.2 * g(), 1.6 * ((i % 3) - 1) + (0.12 + s * 0.6) * g()] },
  unequal: { words: "Large and small", truth: "one wide group and two tight ones", make: (_, g, i, s) => (i % 4 < 2 ? [-1.4 + (0.9 + s) * g(), (0.9 + s) * g()] : [2 + (0.15 + s / 2) * g(), (i % 4 === 2 ? 1.2 : -1.2) + (0.15 + s / 2) * g()]) },
  moons: {
    words: "Two moons",
    truth: "two moons; no Gaussian has this shape",
    make: (r, g, i, s) => {
      const a = Math.PI * r();
      const [x, y] = i % 2 ? [Math.cos(a), Math.sin(a)] : [1 - Math.cos(a), 0.5 - Math.sin(a)];
      return [2 * x - 1 + s * g(), 2 * y + s * g()];
    },
  },
  rings: {
    words: "A ring and its centre",
    truth: "two groups, one of them a ring around the other",
    make: (r, g, i, s) => {
      const a = 2 * Math.PI * r();
      return i % 3 ? [2.4 * Math.cos(a) + s * g(), 2.4 * Math.sin(a) + s * g()] : [0.45 * g(), 0.45 * g()];
    },
  },
  outliers: { words: "Groups and strays", truth: "two groups, and some rows that belong to neither", make: (r, g, i, s) => (i % 25 === 24 ? [14 * r() - 7, 14 * r() - 7] : [(i % 2 ? 1.6 : -1.6) + (0.3 + s) * g(), (0.3 + s) * g()]) },
  gauss: { words: "One Gaussian", truth: "one group", make: (_, g) => [g(), g()] },
  uniform: { words: "A uniform square", truth: "no groups at all", make: (r) => [4 * r() - 2, 4 * r() - 2] },
};

const csv = (points: [number, number][]) => new Blob([`x,y\n${points.map(([x, y]) => `${+x.toFixed(4)},${+y.toFixed(4)}`).join("\n")}\n`], { type: "text/csv" });

export function shape(name: string, noise: number, n = 300): Blob {
  const random = uniform(11);
  const gauss = normal(random);
  return csv(Array.from({ length: n }, (_, i) => SHAPES[name].make(random, gauss, i, noise)));
}

/** Points drawn by hand, in a square of side 4; three letters of base 36 for each coordinate in an address. */
export class Drawing {
  points: [number, number][] = [];

  static read(code: string): Drawing {
    const out = new Drawing();
    for (let i = 0; i + 4 <= code.length; i += 4) {
      const [x, y] = [code.slice(i, i + 2), code.slice(i + 2, i + 4)].map((part) => (parseInt(part, 36) / 1295) * 4 - 2);
      if (Number.isFinite(x) && Number.isFinite(y)) out.points.push([x, y]);
    }
    return out;
  }

  get code(): string {
    const part = (v: number) => Math.round(((Math.max(-2, Math.min(2, v)) + 2) / 4) * 1295).toString(36).padStart(2, "0");
    return this.points.map(([x, y]) => part(x) + part(y)).join("");
  }

  get body(): Blob {
    return csv(this.points);
  }
}

/** The points of a CSV that this page made itself, x and y alternating. */
export async function pointsOf(body: Blob): Promise<Float64Array> {
  const [, ...lines] = (await body.text()).trim().split("\n");
  return Float64Array.from(lines.flatMap((line) => line.split(",").map(Number)));
}
