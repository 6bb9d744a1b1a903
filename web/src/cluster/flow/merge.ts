/** Tokens that have come together are one atom: what the browser's own flow found, read off its last layer. */
import { distance2 } from "../../numbers";

/**
 * The atom of each token (n, d), heaviest first: the token with most others within `radius` takes them all, then the next of
 * those left. Atoms of less than `least` of the mass join the nearest other.
 */
export function atoms(x: ArrayLike<number>, n: number, d: number, radius: number, least = 0.01): Int32Array {
  const near = neighbours(x, n, d, radius);
  const labels = new Int32Array(n).fill(-1);
  const left = Int32Array.from(near, (list) => list.length);
  const members: number[][] = [];
  for (;;) {
    let peak = -1;
    for (let i = 0; i < n; i++) if (labels[i] < 0 && (peak < 0 || left[i] > left[peak])) peak = i;
    if (peak < 0) break;
    const taken = near[peak].filter((j) => labels[j] < 0);
    for (const j of taken) labels[j] = members.length;
    for (const j of taken) for (const i of near[j]) left[i]--;
    members.push(taken);
  }
  const large = members.filter((group) => group.length >= least * n);
  const kept = (large.length ? large : members.slice(0, 1)).sort((a, b) => b.length - a.length);
  const centres = new Float64Array(kept.length * d);
  kept.forEach((group, k) =>
    group.forEach((i) => {
      for (let j = 0; j < d; j++) centres[k * d + j] += x[i * d + j] / group.length;
    }),
  );
  for (let i = 0; i < n; i++) {
    let shortest = Infinity;
    for (let k = 0; k < kept.length; k++) {
      const r = distance2(x, i, centres, k, d);
      if (r < shortest) [shortest, labels[i]] = [r, k];
    }
  }
  return labels;
}

function neighbours(x: ArrayLike<number>, n: number, d: number, radius: number): number[][] {
  const lists: number[][] = Array.from({ length: n }, (_, i) => [i]);
  for (let i = 0; i < n; i++)
    for (let j = 0; j < i; j++)
      if (distance2(x, i, x, j, d) <= radius * radius) {
        lists[i].push(j);
        lists[j].push(i);
      }
  return lists;
}
