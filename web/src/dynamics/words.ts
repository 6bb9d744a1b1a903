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
  softmax: "Each token attends to tokens in its own direction, far ones most of all",
  l2: "Each token attends to its neighbours, the nearest most of all",
  sinkhorn: "Attention is balanced: each token receives as much as it gives",
  linear: "Each token weighs every other by its score as it is, with no normaliser",
  "linear-epsilon": "Each token attends to all almost equally, a little more to large scores",
  sigmoid: "Each token gives every other a weight between zero and one, by the sigmoid of the score",
  relu: "Each token ignores negative scores and weighs the others by their score",
  exp: "Each token weighs the others by the exponential of the score, with no normaliser",
};

const VALUE: Record<string, string> = {
  expand: "and moves toward what it sees",
  contract: "and moves away from what it sees",
  turn: "and moves at a right angle to what it sees, so the cloud turns",
  saddle: "and moves toward it horizontally, away from it vertically",
  project: "and moves away from it horizontally only",
};

/** One sentence for the combination, and what follows from it for a Gaussian. */
export function sentence(set: Setting, value: string, leaving: number, all: number): string {
  const first = `${ATTENTION[set.attention]}, ${VALUE[value]}${set.relative ? ", relative to where it is" : ""}.`;
  if (set.attention === "l2" && value === "expand" && set.relative) return `${first} This is mean shift: tokens climb to the densest parts of the cloud.`;
  if (!hasClosedForm(set.attention)) return `${first} A Gaussian does not stay Gaussian under it.`;
  const end = leaving === 0 ? "no Gaussian grows without limit" : leaving === all ? "every Gaussian grows without limit" : `${leaving} of ${all} grow without limit`;
  return `${first} On Gaussians the flow has a closed form: ${end}.`;
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
