/** Small numerics: random numbers with a seed, principal axes, distances, marks of an axis. Matrices are rows in one flat array. */

/** Uniform numbers in [0, 1) from a seed (mulberry32). */
export function uniform(seed: number): () => number {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Standard normal numbers (Box and Muller). */
export function normal(random: () => number): () => number {
  return () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** `count` of the numbers 0..n-1 in ascending order, without repetition. */
export function sample(n: number, count: number, seed: number): Uint32Array {
  const out = new Uint32Array(Math.min(n, count));
  const random = uniform(seed);
  const moved = new Map<number, number>(); // a shuffle of all n, of which only what changes places is held
  for (let i = 0; i < out.length; i++) {
    const j = count < n ? i + Math.floor(random() * (n - i)) : i;
    out[i] = moved.get(j) ?? j;
    moved.set(j, moved.get(i) ?? i);
  }
  return out.sort();
}

/** Points (n, d), row after row. */
export interface Points {
  n: number;
  d: number;
  x: Float64Array;
}

export function points(n: number, d: number): Points {
  return { n, d, x: new Float64Array(n * d) };
}

export function rowsOf(p: Points, which: ArrayLike<number>): Points {
  const out = points(which.length, p.d);
  for (let i = 0; i < which.length; i++) for (let j = 0; j < p.d; j++) out.x[i * p.d + j] = p.x[which[i] * p.d + j];
  return out;
}

export function distance2(a: ArrayLike<number>, i: number, b: ArrayLike<number>, j: number, d: number): number {
  let sum = 0;
  for (let c = 0; c < d; c++) sum += (a[i * d + c] - b[j * d + c]) ** 2;
  return sum;
}

export function mean(p: Points): Float64Array {
  const m = new Float64Array(p.d);
  for (let i = 0; i < p.n; i++) for (let j = 0; j < p.d; j++) m[j] += p.x[i * p.d + j] / p.n;
  return m;
}

/** Variance per coordinate, averaged over the coordinates. */
export function variance(p: Points): number {
  const m = mean(p);
  let sum = 0;
  for (let i = 0; i < p.n; i++) for (let j = 0; j < p.d; j++) sum += (p.x[i * p.d + j] - m[j]) ** 2;
  return sum / (p.n * p.d);
}

/** Every column to mean 0 and variance 1; a constant column stays constant. */
export function standardised(p: Points): Points {
  const out = points(p.n, p.d);
  const m = mean(p);
  for (let j = 0; j < p.d; j++) {
    let v = 0;
    for (let i = 0; i < p.n; i++) v += (p.x[i * p.d + j] - m[j]) ** 2 / p.n;
    const scale = v > 0 ? 1 / Math.sqrt(v) : 1;
    for (let i = 0; i < p.n; i++) out.x[i * p.d + j] = (p.x[i * p.d + j] - m[j]) * scale;
  }
  return out;
}

/** The directions of largest variance, at most `count`, by orthogonal iteration: quick with hundreds of columns too. */
export function principalAxes(p: Points, count = 3): number[][] {
  const { n, d } = p;
  const m = mean(p);
  const random = normal(uniform(3));
  let axes = Array.from({ length: Math.min(count, d) }, () => Array.from({ length: d }, random));
  for (let step = 0; step < 40; step++) {
    axes = axes.map((axis) => {
      const out = new Array<number>(d).fill(0);
      for (let i = 0; i < n; i++) {
        let along = 0;
        for (let j = 0; j < d; j++) along += axis[j] * (p.x[i * d + j] - m[j]);
        for (let j = 0; j < d; j++) out[j] += along * (p.x[i * d + j] - m[j]);
      }
      return out;
    });
    axes.forEach((axis, a) => {
      for (const before of axes.slice(0, a)) {
        const along = dot(axis, before);
        for (let j = 0; j < d; j++) axis[j] -= along * before[j];
      }
      const length = Math.sqrt(dot(axis, axis)) || 1;
      for (let j = 0; j < d; j++) axis[j] /= length;
    });
  }
  return axes.map((axis) => {
    const largest = axis.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a), 0);
    return axis.map((v) => v * Math.sign(largest || 1));
  });
}

const dot = (a: number[], b: number[]) => a.reduce((sum, v, j) => sum + v * b[j], 0);

/** Index of the nearest of `atoms` to row i of p. */
export function nearest(p: { x: ArrayLike<number>; d: number }, i: number, atoms: Points): number {
  let best = 0;
  let least = Infinity;
  for (let k = 0; k < atoms.n; k++) {
    const r = distance2(p.x, i, atoms.x, k, p.d);
    if (r < least) [least, best] = [r, k];
  }
  return best;
}

/** Round numbers between two, about `count` of them. */
export function ticks(low: number, high: number, count: number): number[] {
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((m) => m * power >= rough) ?? 10);
  const out = [];
  for (let t = Math.ceil(low / step) * step; t <= high + 1e-9 * step; t += step) out.push(Math.abs(t) < step / 1e6 ? 0 : t);
  return out;
}

/** A number in few digits; of marks `step` apart (NaN if there is one alone), in as many as tell them apart. */
export const short = (v: number, step = NaN) => {
  if (v === 0) return "0";
  const needed = step > 0 ? Math.max(1, Math.min(12, Math.ceil(Math.log10(Math.abs(v) / step) + 1))) : 1;
  const plain = Math.abs(v) < 1e5 && Math.abs(v) >= 1e-3;
  return plain ? String(+v.toPrecision(Math.max(3, needed))) : v.toExponential(needed - 1).replace(/\.?0+e/, "e");
};
