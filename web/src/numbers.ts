/** Small numerics: random numbers with a seed, principal axes, distances. Matrices are rows in one flat array. */

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
  const all = Uint32Array.from({ length: n }, (_, i) => i);
  if (count >= n) return all;
  const random = uniform(seed);
  for (let i = 0; i < count; i++) {
    const j = i + Math.floor(random() * (n - i));
    [all[i], all[j]] = [all[j], all[i]];
  }
  return all.slice(0, count).sort();
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

/** Directions of largest variance, (d, d) row by row, by Jacobi rotations of the covariance. */
export function principalAxes(p: Points): number[][] {
  const { n, d } = p;
  const m = mean(p);
  const S = Array.from({ length: d }, () => new Array<number>(d).fill(0));
  for (let i = 0; i < n; i++)
    for (let a = 0; a < d; a++)
      for (let b = 0; b <= a; b++) S[a][b] += ((p.x[i * d + a] - m[a]) * (p.x[i * d + b] - m[b])) / n;
  for (let a = 0; a < d; a++) for (let b = 0; b < a; b++) S[b][a] = S[a][b];
  const U = S.map((_, i) => S.map((_, j) => +(i === j)));
  for (let sweep = 0; sweep < 60; sweep++) {
    let off = 0;
    for (let a = 0; a < d; a++)
      for (let b = a + 1; b < d; b++) {
        off += S[a][b] ** 2;
        if (Math.abs(S[a][b]) < 1e-300) continue;
        const theta = (S[b][b] - S[a][a]) / (2 * S[a][b]);
        const t = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
        const c = 1 / Math.sqrt(t * t + 1);
        const s = t * c;
        for (let k = 0; k < d; k++) [S[k][a], S[k][b]] = [c * S[k][a] - s * S[k][b], s * S[k][a] + c * S[k][b]];
        for (let k = 0; k < d; k++) [S[a][k], S[b][k]] = [c * S[a][k] - s * S[b][k], s * S[a][k] + c * S[b][k]];
        for (let k = 0; k < d; k++) [U[k][a], U[k][b]] = [c * U[k][a] - s * U[k][b], s * U[k][a] + c * U[k][b]];
      }
    if (off < 1e-24) break;
  }
  const order = S.map((row, i) => [row[i], i]).sort((a, b) => b[0] - a[0]);
  return order.map(([, i]) => {
    const axis = U.map((row) => row[i]);
    const largest = axis.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a), 0);
    return axis.map((v) => v * Math.sign(largest || 1));
  });
}

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
