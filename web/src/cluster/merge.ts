/** Tokens that have come together are one atom: the mixing measure, read off the tokens. */
import { distance2, points, rowsOf } from "../numbers";
import type { Clustering } from "./peers";

/**
 * Atoms of tokens (n, d): the token with most others within `radius` takes them all, then the next of those left.
 * Atoms of less than `least` of the mass join the nearest other. The heaviest atom comes first.
 */
export function atoms(x: Float32Array, n: number, d: number, radius: number, least = 0.01): Clustering {
  const near: Uint16Array[] = neighbours(x, n, d, radius);
  const labels = new Int32Array(n).fill(-1);
  const left = Int32Array.from(near, (list) => list.length);
  const members: number[][] = [];
  for (;;) {
    let peak = -1;
    for (let i = 0; i < n; i++) if (labels[i] < 0 && (peak < 0 || left[i] > left[peak])) peak = i;
    if (peak < 0) break;
    const taken = Array.from(near[peak]).filter((j) => labels[j] < 0);
    for (const j of taken) labels[j] = members.length;
    for (const j of taken) for (const i of near[j]) left[i]--;
    members.push(taken);
  }
  const large = members.filter((group) => group.length >= least * n);
  const kept = large.length ? large : members.slice(0, 1);
  const centres = points(kept.length, d);
  kept.forEach((group, k) =>
    group.forEach((i) => {
      for (let j = 0; j < d; j++) centres.x[k * d + j] += x[i * d + j] / group.length;
    }),
  );
  const weights = new Array<number>(kept.length).fill(0);
  for (let i = 0; i < n; i++) {
    let [best, shortest] = [0, Infinity];
    for (let k = 0; k < kept.length; k++) {
      const r = distance2(x, i, centres.x, k, d);
      if (r < shortest) [best, shortest] = [k, r];
    }
    labels[i] = best;
    weights[best] += 1 / n;
  }
  return heaviestFirst({ centres, weights, labels });
}

function heaviestFirst({ centres, weights, labels }: Clustering): Clustering {
  const order = weights.map((_, k) => k).sort((a, b) => weights[b] - weights[a]);
  const rank = order.map((_, k) => order.indexOf(k));
  return { centres: rowsOf(centres, order), weights: order.map((k) => weights[k]), labels: labels.map((k) => rank[k]) };
}

/** For each centre of `other`, a colour: that of the nearest centre of `mine` not yet taken, or one of its own. */
export function matched(other: Clustering, mine: Clustering | null): number[] {
  if (!mine) return other.weights.map((_, k) => k);
  const pairs = other.weights.flatMap((_, a) => mine.weights.map((_, b) => [a, b] as const));
  const far = ([a, b]: readonly [number, number]) => distance2(other.centres.x, a, mine.centres.x, b, mine.centres.d);
  const out = new Map<number, number>();
  const taken = new Set<number>();
  for (const [a, b] of pairs.sort((p, q) => far(p) - far(q)))
    if (!out.has(a) && !taken.has(b)) {
      out.set(a, b);
      taken.add(b);
    }
  let next = mine.weights.length;
  return other.weights.map((_, a) => out.get(a) ?? next++);
}

function neighbours(x: Float32Array, n: number, d: number, radius: number): Uint16Array[] {
  const lists: number[][] = Array.from({ length: n }, (_, i) => [i]);
  for (let i = 0; i < n; i++)
    for (let j = 0; j < i; j++)
      if (distance2(x, i, x, j, d) <= radius * radius) {
        lists[i].push(j);
        lists[j].push(i);
      }
  return lists.map((list) => Uint16Array.from(list));
}
