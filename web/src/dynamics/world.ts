/** One attention and its tokens, with everything that has happened to them so far. */
import { cloud, covariance, type Setting } from "./attention";
import type { Asked, Moment } from "./frames";

export const H = 0.04; // time of one frame
export const LONGEST = 12; // time after which a flow has shown where it goes
const FAR = 1e3; // a token beyond this has left
const AHEAD = 3; // frames that are computed before they are asked for

/** A time in as many figures as tell it from zero. */
export const clock = (t: number) => (t === 0 || t >= 0.1 ? t.toFixed(2) : t.toPrecision(2));

/** A worker that computes one frame after another. */
export class Frames {
  private worker = new Worker(new URL("./frames.ts", import.meta.url), { type: "module" });
  private waiting: ((moment: Moment) => void)[] = [];

  constructor() {
    this.worker.onmessage = ({ data }: MessageEvent<Moment>) => this.waiting.shift()!(data);
  }

  /** Answers come in the order of the questions. */
  ask(question: Asked): Promise<Moment> {
    this.worker.postMessage(question);
    return new Promise((done) => this.waiting.push(done));
  }

  close() {
    this.worker.terminate();
  }
}

export class World {
  past: Moment[] = [];
  private seen = 0; // the time that is shown
  private end = ""; // why nothing comes after the last moment
  private asked = false;
  private turn = 0; // answers to questions of an earlier turn are too late
  private reel: { times: number[]; points: number[][][] } | null = null; // a run that the server made, shown instead of our own

  constructor(
    public set: Setting,
    public start: Float64Array,
    private frames: Frames,
    private arrived: () => void,
  ) {
    this.reset();
  }

  static of(set: Setting, kind: string, n: number, seed: number, frames: Frames, arrived: () => void): World {
    return new World({ ...set }, cloud(kind, n, seed), frames, arrived);
  }

  reset() {
    if (this.reel) this.load(this.reel);
    else this.begin(0, this.start);
  }

  /** Show a run of the server from its beginning. */
  load(reel: { times: number[]; points: number[][][] }) {
    this.reel = reel;
    this.begin(reel.times[0], Float64Array.from(reel.points[0].flat()));
  }

  private begin(t: number, x: Float64Array) {
    this.past = [{ t, x, entropy: NaN, energy: NaN, covariance: covariance(x) }];
    this.end = "";
    this.seen = t;
    const mine = ++this.turn;
    this.asked = true;
    void this.frames.ask({ set: this.set, t, x, h: 0, measured: true }).then((first) => {
      if (mine !== this.turn) return;
      this.past[0] = first;
      this.asked = false;
      this.arrived();
      this.more(this.seen);
    });
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

  /** Why the flow goes no farther than t, in words; empty where it does. */
  over(t: number): string {
    return t >= this.now.t - 1e-9 ? this.end : "";
  }

  private index(t: number): number {
    return Math.max(0, this.past.findLastIndex((moment) => moment.t <= t + 1e-12));
  }

  /** Have the frames after time t computed, one at a time. */
  more(t: number) {
    this.seen = t;
    if (this.asked || this.end || this.past.length - 1 - this.index(t) >= AHEAD) return;
    const next = this.past.length;
    if (this.reel && next >= this.reel.points.length) {
      this.end = "This is the end of the run.";
      this.arrived();
      return;
    }
    const from = this.reel ? { t: this.reel.times[next], x: Float64Array.from(this.reel.points[next].flat()), h: 0 } : { t: this.now.t, x: this.now.x, h: H };
    const mine = this.turn;
    this.asked = true;
    void this.frames.ask({ set: this.set, ...from, measured: this.reel !== null || next % 2 === 0 }).then((moment) => {
      if (mine !== this.turn) return;
      this.asked = false;
      this.note(moment);
      this.arrived();
      this.more(this.seen);
    });
  }

  private note(moment: Moment) {
    if (!this.reel && moment.x.some((v) => !(Math.abs(v) < FAR))) this.end = `The tokens left for infinity at about t = ${clock(moment.t)}.`;
    else {
      this.past.push(moment);
      if (!this.reel && moment.t > LONGEST) this.end = "It has flowed long enough to see where it goes.";
    }
  }

  /** Let go of questions that are under way. */
  close() {
    this.turn++;
  }
}
