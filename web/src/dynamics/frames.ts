/** Computes the frames of a flow, and what is measured of each, off the page's own thread. */
import { covariance, energy, entropy, type Matrix, type Setting } from "./attention";
import { step } from "./step";

export interface Moment {
  t: number;
  x: Float64Array;
  entropy: number; // NaN where it was not asked for
  energy: number;
  covariance: Matrix;
}

/** Tokens at a time; they flow for h, or for less where the field is strong, and stay as they are for h = 0. */
export interface Asked {
  set: Setting;
  t: number;
  x: Float64Array;
  h: number;
  measured: boolean; // entropy and energy cost as much as a step
}

const MOST = 500; // tokens that entropy and energy are measured on

export function moment({ set, t, x: start, h: longest, measured }: Asked): Moment {
  const { x, h } = longest > 0 ? step(set, start, longest) : { x: start, h: 0 };
  const few = x.subarray(0, 2 * MOST);
  return { t: t + h, x, entropy: measured ? entropy(few) : NaN, energy: measured ? energy(set, few) : NaN, covariance: covariance(x) };
}

onmessage = ({ data }: MessageEvent<Asked>) => postMessage(moment(data));
