/** Attention as a velocity field on a cloud of points in the plane, and on 2 x 2 covariances where it is exact. */
import { normal, uniform } from "../numbers";

export type Matrix = [number, number, number, number]; // [a, b; c, d]

export const I: Matrix = [1, 0, 0, 1];
export const times = (A: Matrix, B: Matrix): Matrix => [
  A[0] * B[0] + A[1] * B[2],
  A[0] * B[1] + A[1] * B[3],
  A[2] * B[0] + A[3] * B[2],
  A[2] * B[1] + A[3] * B[3],
];
export const plus = (A: Matrix, B: Matrix, s = 1): Matrix => [A[0] + s * B[0], A[1] + s * B[1], A[2] + s * B[2], A[3] + s * B[3]];
export const transpose = (A: Matrix): Matrix => [A[0], A[2], A[1], A[3]];
const scaled = (A: Matrix, s: number): Matrix => [A[0] * s, A[1] * s, A[2] * s, A[3] * s];
const det = (A: Matrix) => A[0] * A[3] - A[1] * A[2];
const inverse = (A: Matrix): Matrix => scaled([A[3], -A[1], -A[2], A[0]], 1 / det(A));

export interface Setting {
  attention: string;
  Q: Matrix;
  K: Matrix;
  V: Matrix;
  epsilon: number;
  relative: boolean;
}

/** The names the library gives them, with words. */
export const ATTENTIONS: [string, string][] = [
  ["softmax", "softmax"],
  ["l2", "L2 (softmax of distances)"],
  ["sinkhorn", "Sinkhorn"],
  ["linear", "linear"],
  ["linear-epsilon", "linear, epsilon form"],
  ["sigmoid", "sigmoid"],
  ["relu", "ReLU"],
  ["exp", "exp, not normalised"],
];

const sigmoid = (s: number) => 1 / (1 + Math.exp(-s));

/** Weights of all keys for query i, written into `w`; `s` holds the scores. */
type Row = (s: Float64Array, w: Float64Array, epsilon: number) => void;

const each = (f: (s: number) => number): Row => (s, w) => {
  for (let j = 0; j < s.length; j++) w[j] = f(s[j]) / s.length;
};

const softmax: Row = (s, w) => {
  const most = s.reduce((a, b) => Math.max(a, b), -Infinity);
  let total = 0;
  for (let j = 0; j < s.length; j++) total += w[j] = Math.exp(s[j] - most);
  for (let j = 0; j < s.length; j++) w[j] /= total;
};

const expansion: Row = (s, w, epsilon) => {
  const mean = s.reduce((a, b) => a + b, 0) / s.length;
  for (let j = 0; j < s.length; j++) w[j] = (1 / epsilon + s[j] - mean) / s.length;
};

const ROWS: Record<string, Row> = {
  softmax,
  l2: softmax,
  linear: each((s) => s),
  "linear-epsilon": expansion,
  sigmoid: each(sigmoid),
  relu: each((s) => Math.max(0, s)),
  exp: each(Math.exp),
};

function apply(M: Matrix, x: Float64Array): Float64Array {
  const out = new Float64Array(x.length);
  for (let i = 0; i < x.length; i += 2) {
    out[i] = M[0] * x[i] + M[1] * x[i + 1];
    out[i + 1] = M[2] * x[i] + M[3] * x[i + 1];
  }
  return out;
}

/** The score of query i and key j, from q = Q x and k = K y. */
const scoreOf = (attention: string) =>
  attention === "l2"
    ? (q: Float64Array, k: Float64Array, i: number, j: number) => -((q[i] - k[j]) ** 2) - (q[i + 1] - k[j + 1]) ** 2
    : (q: Float64Array, k: Float64Array, i: number, j: number) => q[i] * k[j] + q[i + 1] * k[j + 1];

/** Velocities at the points `at` (x, y alternating; the tokens x themselves unless told) of the field that x makes. */
export function velocity(set: Setting, x: Float64Array, at: Float64Array = x): Float64Array {
  const m = at.length / 2;
  const out = new Float64Array(at.length);
  const v = apply(set.V, x);
  attend(set, x, at, (i, w) => {
    for (let j = 0; j < w.length; j++) {
      out[2 * i] += w[j] * v[2 * j];
      out[2 * i + 1] += w[j] * v[2 * j + 1];
    }
  });
  if (set.relative) for (let i = 0; i < 2 * m; i++) out[i] -= at[i];
  return out;
}

/** How much each token counts for token i. */
export function weightsOf(set: Setting, x: Float64Array, i: number): Float64Array {
  let out = new Float64Array();
  if (set.attention === "sinkhorn") attend(set, x, x, (row, w) => row === i && (out = w.slice()));
  else attend(set, x, x.subarray(2 * i, 2 * i + 2), (_, w) => (out = w.slice()));
  return out;
}

/** Call back with the weights of all tokens x for each of the points `at`; Sinkhorn couples them, so there they are x. */
function attend(set: Setting, x: Float64Array, at: Float64Array, each: (i: number, w: Float64Array) => void) {
  const [n, m] = [x.length / 2, at.length / 2];
  const [q, k] = [apply(set.Q, at), apply(set.K, x)];
  const score = scoreOf(set.attention);
  const w = new Float64Array(n);
  if (set.attention === "sinkhorn") {
    const Z = sinkhorn(n, (i, j) => score(q, k, 2 * i, 2 * j) / set.epsilon);
    for (let i = 0; i < n; i++) each(i, Z.subarray(i * n, (i + 1) * n));
    return;
  }
  const s = new Float64Array(n);
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < n; j++) s[j] = score(q, k, 2 * i, 2 * j);
    ROWS[set.attention](s, w, set.epsilon);
    each(i, w);
  }
}

/** Doubly stochastic weights: rows sum to one, columns too (times n over n). */
function sinkhorn(n: number, logit: (i: number, j: number) => number): Float64Array {
  const Z = new Float64Array(n * n);
  let most = -Infinity;
  for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) most = Math.max(most, (Z[i * n + j] = logit(i, j)));
  for (let i = 0; i < n * n; i++) Z[i] = Math.exp(Math.max(-300, Z[i] - most));
  const [a, b] = [new Float64Array(n).fill(1), new Float64Array(n).fill(1)];
  for (let step = 0; step < 30; step++) {
    b.fill(0);
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) b[j] += a[i] * Z[i * n + j];
    for (let j = 0; j < n; j++) b[j] = 1 / b[j];
    for (let i = 0; i < n; i++) {
      let sum = 0;
      for (let j = 0; j < n; j++) sum += Z[i * n + j] * b[j];
      a[i] = 1 / sum;
    }
  }
  for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) Z[i * n + j] *= a[i] * b[j];
  return Z;
}

/** Differential entropy from distances to third neighbours (Kozachenko and Leonenko 1987). */
export function entropy(x: Float64Array, k = 3): number {
  const n = x.length / 2;
  const digamma3 = 1.5 - 0.5772156649015329; // psi(3) = 1 + 1/2 - Euler's constant
  let sum = 0;
  for (let i = 0; i < n; i++) {
    const near = new Array<number>(k).fill(Infinity);
    for (let j = 0; j < n; j++) {
      if (j === i) continue;
      const r = (x[2 * i] - x[2 * j]) ** 2 + (x[2 * i + 1] - x[2 * j + 1]) ** 2;
      if (r >= near[k - 1]) continue;
      near[k - 1] = r;
      near.sort((a, b) => a - b);
    }
    sum += Math.log(near[k - 1]) / n;
  }
  return Math.log(Math.PI) + sum + Math.log(n - 1) - digamma3;
}

/** Logarithm of the interaction energy, half the mean of exp(score) over all pairs. */
export function energy(set: Setting, x: Float64Array): number {
  const n = x.length / 2;
  const [q, k] = [set.Q, set.K].map((M) => apply(M, x));
  const score = scoreOf(set.attention);
  let most = -Infinity;
  const s = new Float64Array(n * n);
  for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) most = Math.max(most, (s[i * n + j] = score(q, k, 2 * i, 2 * j)));
  let sum = 0;
  for (const v of s) sum += Math.exp(v - most);
  return Math.log(sum / (2 * n * n)) + most;
}

export function covariance(x: Float64Array): Matrix {
  const n = x.length / 2;
  let [mx, my] = [0, 0];
  for (let i = 0; i < n; i++) [mx, my] = [mx + x[2 * i] / n, my + x[2 * i + 1] / n];
  const S: Matrix = [0, 0, 0, 0];
  for (let i = 0; i < n; i++) {
    const [a, b] = [x[2 * i] - mx, x[2 * i + 1] - my];
    S[0] += (a * a) / n;
    S[1] += (a * b) / n;
    S[3] += (b * b) / n;
  }
  S[2] = S[1];
  return S;
}

/** A first cloud of n points by name. */
export function cloud(kind: string, n: number, seed: number): Float64Array {
  const random = uniform(seed);
  const gauss = normal(random);
  const x = new Float64Array(2 * n);
  for (let i = 0; i < n; i++) {
    const angle = (2 * Math.PI * (i % 3)) / 3 + 0.5;
    const turn = 2 * Math.PI * random();
    const [a, b] = [gauss(), gauss()];
    if (kind === "blobs") x.set([1.7 * Math.cos(angle) + 0.45 * a, 1.7 * Math.sin(angle) + 0.45 * b], 2 * i);
    else if (kind === "ring") x.set([1.6 * Math.cos(turn) + 0.08 * a, 1.6 * Math.sin(turn) + 0.08 * b], 2 * i);
    else x.set([a, b], 2 * i);
  }
  return x;
}

// covariances ----------------------------------------------------------------------------------------------------

/** Whether a Gaussian stays Gaussian, so that its covariance obeys an equation of its own [Castin 2025, section 4]. */
export const hasClosedForm = (attention: string) => ["softmax", "l2", "linear", "linear-epsilon", "sinkhorn"].includes(attention);

/** The matrix M of the field x -> M x on a centred Gaussian of covariance S. */
function affine(set: Setting, S: Matrix): Matrix {
  const A = times(transpose(set.K), set.Q);
  let M = times(S, A);
  if (set.attention === "l2") {
    const left = plus(I, scaled(times(S, times(transpose(set.K), set.K)), 2));
    M = times(inverse(left), scaled(M, 2));
  }
  if (set.attention === "sinkhorn") M = sinkhornAffine(A, S, set.epsilon);
  M = times(set.V, M);
  return set.relative ? plus(M, I, -1) : M;
}

/** Lemma 4.14 of Castin 2025 without inverses, as the library computes it. */
function sinkhornAffine(A: Matrix, S: Matrix, epsilon: number): Matrix {
  const root = squareRoot(S);
  const P = times(times(root, A), root);
  const N = times(transpose(P), P);
  const f = inverse(plus(squareRoot(plus(N, I, epsilon ** 2 / 4)), I, epsilon / 2));
  const middle = times(times(root, times(f, f)), root);
  const inner = plus(I, times(times(middle, transpose(A)), times(S, A)), -1);
  return scaled(times(times(S, A), inner), 1 / epsilon);
}

/** Square root of a symmetric matrix that is not negative: (S + sqrt(det) I) / sqrt(tr + 2 sqrt(det)). */
function squareRoot(S: Matrix): Matrix {
  const r = Math.sqrt(Math.max(0, det(S)));
  const t = Math.sqrt(Math.max(1e-300, S[0] + S[3] + 2 * r));
  return scaled(plus(S, I, r), 1 / t);
}

export type Fate = "settles" | "blows up" | "moving";

/** The path of a covariance until it settles, leaves for infinity, or time is up. */
export function covariancePath(set: Setting, S: Matrix): { path: Matrix[]; fate: Fate } {
  const rate = (T: Matrix) => {
    const M = affine(set, T);
    return plus(times(M, T), times(T, transpose(M)));
  };
  const size = (T: Matrix) => Math.max(...T.map(Math.abs));
  const path = [S];
  for (let i = 0; i < 4000; i++) {
    const k1 = rate(S);
    const change = size(k1) / Math.max(1e-12, size(S));
    if (change < 1e-5 || size(S) < 1e-4) return { path, fate: "settles" };
    const h = Math.min(0.5, 0.06 / change);
    const k2 = rate(plus(S, k1, h / 2));
    S = plus(S, k2, h);
    if (i % 2) path.push(S);
    if (!(size(S) < 60)) return { path, fate: "blows up" };
  }
  return { path, fate: "moving" };
}
