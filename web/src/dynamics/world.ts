/** One attention and its tokens, with everything that has happened to them so far. */
import { cloud, covariance, energy, entropy, type Matrix, type Setting } from "./attention";
import { step } from "./step";

export const H = 0.04; // time of one frame
export const LONGEST = 12; // time after which a flow has shown where it goes
const FAR = 1e3; // a token beyond this has left

interface Moment {
  t: number;
  x: Float64Array;
  entropy: number; // NaN at every other frame, which saves time
  energy: number;
  covariance: Matrix;
}

/** A time in as many figures as tell it from zero. */
export const clock = (t: number) => (t === 0 || t >= 0.1 ? t.toFixed(2) : t.toPrecision(2));

export class World {
  past: Moment[] = [];
  over = "";
  reel: { times: number[]; points: number[][][] } | null = null; // a run that the server made, shown instead of our own

  constructor(
    public set: Setting,
    public start: Float64Array,
  ) {
    this.reset();
  }

  static of(set: Setting, kind: string, n: number, seed: number): World {
    return new World({ ...set }, cloud(kind, n, seed));
  }

  reset() {
    this.past = [];
    this.over = "";
    this.reel = null;
    this.note(0, this.start);
  }

  get now(): Moment {
    return this.past[this.past.length - 1];
  }

  /** What was at time t, or as near before it as there is. */
  at(t: number): Moment {
    return this.past[this.index(t)];
  }

  /** The times of what came next after t: one, or none yet. */
  after(t: number): number[] {
    return this.past.slice(this.index(t) + 1, this.index(t) + 2).map((moment) => moment.t);
  }

  private index(t: number): number {
    return Math.max(0, this.past.findLastIndex((moment) => moment.t <= t + 1e-12));
  }

  advance() {
    if (this.over) return;
    if (this.reel) return this.unreel();
    const { t } = this.now;
    const { x, h } = step(this.set, this.now.x, H);
    if (x.some((v) => !(Math.abs(v) < FAR))) this.over = `The tokens left for infinity at about t = ${clock(t + h)}.`;
    else {
      this.note(t + h, x);
      if (t + h > LONGEST) this.over = "It has flowed long enough to see where it goes.";
    }
  }

  private unreel() {
    const { times, points } = this.reel!;
    const at = this.past.length;
    if (at >= points.length) this.over = "This is the end of the run.";
    else this.note(times[at], Float64Array.from(points[at].flat()));
  }

  /** Show a run of the server from its beginning. */
  load(reel: { times: number[]; points: number[][][] }) {
    this.past = [];
    this.over = "";
    this.reel = reel;
    this.note(reel.times[0], Float64Array.from(reel.points[0].flat()));
  }

  private note(t: number, x: Float64Array) {
    const few = x.length > 1000 ? x.subarray(0, 1000) : x;
    const fresh = this.past.length % 2 === 0 || this.reel !== null;
    this.past.push({ t, x, entropy: fresh ? entropy(few) : NaN, energy: fresh ? energy(this.set, few) : NaN, covariance: covariance(x) });
  }
}
