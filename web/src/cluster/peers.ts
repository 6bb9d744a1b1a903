/** What the flow is compared with: k-means, and a Gaussian mixture whose components share one variance. */
import { distance2, nearest, points, rowsOf, uniform, variance, type Points } from "../numbers";

export interface Clustering {
  centres: Points;
  weights: number[];
  labels: Int32Array;
}

/** First centres far apart [Arthur and Vassilvitskii 2007]. */
function seeds(p: Points, k: number, random: () => number): Points {
  const chosen = [Math.floor(random() * p.n)];
  const least = Float64Array.from({ length: p.n }, (_, i) => distance2(p.x, i, p.x, chosen[0], p.d));
  while (chosen.length < k) {
    let left = random() * least.reduce((a, b) => a + b, 0);
    let next = 0;
    while (next < p.n - 1 && (left -= least[next]) > 0) next++;
    chosen.push(next);
    for (let i = 0; i < p.n; i++) least[i] = Math.min(least[i], distance2(p.x, i, p.x, next, p.d));
  }
  return rowsOf(p, chosen);
}

/** Lloyd's algorithm from several seeds; the best of them. */
export function kmeans(p: Points, k: number, restarts = 5): Clustering {
  const random = uniform(1);
  k = Math.min(k, p.n);
  let best: Clustering | null = null;
  let least = Infinity;
  for (let r = 0; r < restarts; r++) {
    const centres = seeds(p, k, random);
    const labels = new Int32Array(p.n).fill(-1);
    let cost = Infinity;
    for (let step = 0; step < 60; step++) {
      let moved = false;
      cost = 0;
      for (let i = 0; i < p.n; i++) {
        const to = nearest(p, i, centres);
        moved ||= to !== labels[i];
        labels[i] = to;
        cost += distance2(p.x, i, centres.x, to, p.d);
      }
      if (!moved) break;
      const sums = points(k, p.d);
      const counts = new Float64Array(k);
      for (let i = 0; i < p.n; i++) {
        counts[labels[i]]++;
        for (let j = 0; j < p.d; j++) sums.x[labels[i] * p.d + j] += p.x[i * p.d + j];
      }
      for (let c = 0; c < k; c++)
        if (counts[c]) for (let j = 0; j < p.d; j++) centres.x[c * p.d + j] = sums.x[c * p.d + j] / counts[c];
    }
    if (cost < least) [least, best] = [cost, { centres, labels: labels.slice(), weights: shares(labels, k) }];
  }
  return best!;
}

export function shares(labels: Int32Array, k: number): number[] {
  const counts = new Array<number>(k).fill(0);
  for (const label of labels) if (label >= 0) counts[label] += 1 / labels.length;
  return counts;
}

export interface Mixture extends Clustering {
  /** The variance of a component in each coordinate. */
  noise: number;
}

/** EM from the centres of k-means; spherical components with one shared variance. */
export function mixture(p: Points, k: number): Mixture & { bic: number } {
  const { n, d } = p;
  const start = kmeans(p, k, 3);
  const centres = start.centres;
  k = centres.n;
  let weights = start.weights.map((w) => Math.max(w, 1e-9));
  let noise = 0;
  for (let i = 0; i < n; i++) noise += distance2(p.x, i, centres.x, start.labels[i], d) / (n * d);
  const floor = 1e-9 * variance(p) + 1e-300;
  noise = Math.max(noise, floor);
  const labels = new Int32Array(n);
  const r = new Float64Array(k);
  let before = -Infinity;
  let fit = before;
  for (let step = 0; step < 100; step++) {
    const sums = points(k, d);
    const mass = new Float64Array(k);
    const squares = new Float64Array(k);
    fit = -0.5 * n * d * Math.log(2 * Math.PI * noise);
    for (let i = 0; i < n; i++) {
      let most = -Infinity;
      for (let c = 0; c < k; c++) {
        r[c] = Math.log(weights[c]) - distance2(p.x, i, centres.x, c, d) / (2 * noise);
        if (r[c] > most) [most, labels[i]] = [r[c], c];
      }
      let total = 0;
      for (let c = 0; c < k; c++) total += r[c] = Math.exp(r[c] - most);
      fit += most + Math.log(total);
      for (let c = 0; c < k; c++) {
        const share = r[c] / total;
        mass[c] += share;
        for (let j = 0; j < d; j++) {
          sums.x[c * d + j] += share * p.x[i * d + j];
          squares[c] += share * p.x[i * d + j] ** 2;
        }
      }
    }
    if (fit - before < 1e-7 * Math.abs(fit)) break;
    before = fit;
    noise = 0;
    for (let c = 0; c < k; c++) {
      const m = Math.max(mass[c], 1e-12);
      let length = 0;
      for (let j = 0; j < d; j++) length += (centres.x[c * d + j] = sums.x[c * d + j] / m) ** 2;
      noise += (squares[c] - m * length) / (n * d);
    }
    noise = Math.max(noise, floor);
    weights = Array.from(mass, (m) => Math.max(m / n, 1e-12));
  }
  return { centres, weights, labels, noise, bic: -2 * fit + (k * d + k) * Math.log(n) };
}

/** The mixture whose number of components has the least Bayesian information criterion. */
export function mixtureByBic(p: Points, most = 10): Mixture {
  let best = mixture(p, 1);
  for (let k = 2; k <= Math.min(most, p.n - 1); k++) {
    const next = mixture(p, k);
    if (next.bic < best.bic) best = next;
  }
  return best;
}
