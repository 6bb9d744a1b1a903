/** What each choice means, in a sentence; and choices worth a look. */
import { hasClosedForm, I, type Matrix, type Setting } from "./attention";

export const VALUES: Record<string, [words: string, V: Matrix]> = {
  contract: ["V = −I", [-1, 0, 0, -1]],
  expand: ["V = I", [1, 0, 0, 1]],
  turn: ["V = quarter turn", [0, -1, 1, 0]],
  saddle: ["V = diag(1, −1)", [1, 0, 0, -1]],
  project: ["V = diag(−1, 0)", [-1, 0, 0, 0]],
};
export const SCORES: Record<string, [words: string, Q: Matrix, K: Matrix]> = {
  identity: ["Q = K = I", I, I],
  sharp: ["Q = K = 1.5 I", [1.5, 0, 0, 1.5], [1.5, 0, 0, 1.5]],
  uneven: ["Q = K = diag(1.4, 0.4)", [1.4, 0, 0, 0.4], [1.4, 0, 0, 0.4]],
  opposed: ["Q = −I, K = I", [-1, 0, 0, -1], I],
  turned: ["Q = quarter turn, K = I", [0, -1, 1, 0], I],
};
export const CLOUDS: [string, string][] = [["gauss", "one Gaussian"], ["blobs", "three groups"], ["ring", "a ring"]];

const ATTENTION: Record<string, string> = {
  softmax: "Each token looks at those that lie in its own direction, far ones most of all",
  l2: "Each token looks at its neighbours, near ones most of all",
  sinkhorn: "Tokens share their attention so that each one is looked at as much as it looks",
  linear: "Each token weighs all others by their scores as they are, without a limit",
  "linear-epsilon": "Each token looks at all alike, and a little more at those of large score",
  sigmoid: "Each token opens a gate for every other one, between shut and open",
  relu: "Each token ignores those behind it and weighs those ahead by their scores",
  exp: "Each token weighs others by the exponential of the score, without a limit",
};

const VALUE: Record<string, string> = {
  expand: "and goes toward what it sees",
  contract: "and goes away from what it sees",
  turn: "and goes crosswise to what it sees, so that the cloud turns",
  saddle: "and goes toward it across, away from it upward",
  project: "and goes away from it across only",
};

/** One sentence for the combination, and what follows from it for a Gaussian. */
export function sentence(set: Setting, value: string, leaving: number, all: number): string {
  const first = `${ATTENTION[set.attention]}, ${VALUE[value]}${set.relative ? ", with its own position subtracted" : ""}.`;
  if (set.attention === "l2" && value === "expand" && set.relative) return `${first} This is mean shift: tokens climb to where the cloud is densest.`;
  if (!hasClosedForm(set.attention)) return `${first} A Gaussian does not stay Gaussian under it.`;
  const end = leaving === 0 ? "no Gaussian grows without limit" : leaving === all ? "every Gaussian grows without limit" : `of ${all} Gaussians, ${leaving} grow without limit`;
  return `${first} In closed form, ${end}.`;
}

export interface Preset {
  words: string;
  why: string;
  attention: string;
  scores: string;
  value: string;
  relative: boolean;
  cloud: string;
}

export const PRESETS: Record<string, Preset> = {
  shift: { words: "Mean shift", why: "three groups fall onto three points", attention: "l2", scores: "sharp", value: "expand", relative: true, cloud: "blobs" },
  collapse: { words: "Collapse", why: "all tokens end in one", attention: "softmax", scores: "identity", value: "contract", relative: false, cloud: "blobs" },
  blowup: { words: "Blow-up", why: "tokens leave for infinity in finite time", attention: "linear", scores: "identity", value: "expand", relative: false, cloud: "gauss" },
  rotate: { words: "Rotate", why: "the cloud turns and keeps its shape for a while", attention: "softmax", scores: "identity", value: "turn", relative: false, cloud: "ring" },
  directions: { words: "Choose sides", why: "tokens run to the corners of their own hull", attention: "softmax", scores: "sharp", value: "expand", relative: true, cloud: "gauss" },
};
