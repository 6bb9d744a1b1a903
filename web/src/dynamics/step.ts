/** Steps along an attention, as long as the field allows. */
import { velocity, type Setting } from "./attention";

/**
 * The tokens a time h on, or less where they run away: no step carries one much farther than half the size of the cloud,
 * so that a blow-up is seen however fast it comes. Numbers that overflow stay what they are.
 */
export function step(set: Setting, x: Float64Array, h: number): { x: Float64Array; h: number } {
  const k1 = velocity(set, x);
  let [fast, size] = [0, 0.5];
  for (let i = 0; i < x.length; i++) [fast, size] = [Math.max(fast, Math.abs(k1[i])), Math.max(size, Math.abs(x[i]))];
  if (!Number.isFinite(fast)) return { x: k1, h: 0 };
  h = Math.min(h, (0.5 * size) / Math.max(fast, 1e-9));
  for (;;) {
    const next = tried(set, x, k1, h, Math.ceil((4 * h * fast) / size));
    let far = 0;
    for (let i = 0; i < x.length; i++) far = Math.max(far, Math.abs(next[i] - x[i]));
    if (far <= 0.6 * size || h < 1e-12) return { x: next, h };
    h /= 2;
  }
}

/** A step of fourth order, or parts of second order where the field is strong. */
function tried(set: Setting, x: Float64Array, k1: Float64Array, h: number, parts: number): Float64Array {
  if (parts > 1) {
    for (let p = 0; p < parts; p++) x = midpoint(set, x, h / parts);
    return x;
  }
  const add = (v: Float64Array, s: number) => x.map((xi, i) => xi + s * v[i]);
  const k2 = velocity(set, add(k1, h / 2));
  const k3 = velocity(set, add(k2, h / 2));
  const k4 = velocity(set, add(k3, h));
  return x.map((xi, i) => xi + (h / 6) * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]));
}

function midpoint(set: Setting, x: Float64Array, h: number): Float64Array {
  const k = velocity(set, x);
  const half = velocity(set, x.map((xi, i) => xi + (h / 2) * k[i]));
  return x.map((xi, i) => xi + h * half[i]);
}
