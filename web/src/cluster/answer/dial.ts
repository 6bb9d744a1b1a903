/** The dial, and above it the curve of K against it: what the library finds at each signal-to-noise ratio, plateaus shaded. */
import { button, h, slider } from "../../dom";
import { FONT, line, picture, type Pen, type Picture } from "../../draw/canvas";
import { clusterColour, colours } from "../../draw/theme";
import { ticks } from "../../numbers";
import { Asker, type Question } from "./answers";

const MOST = 30; // places of the dial that are tried
const LARGEST = 4 * 2 ** 20; // bytes of a table beyond which that would take too long
const FINER = "Right is finer: less noise, more clusters.";
const PLATEAU = 3; // decibels over which K stays

export interface Plateau {
  from: number;
  to: number;
  K: number;
}

/** Stretches of the dial on which K does not change. */
export function plateaus(curve: [db: number, K: number][]): Plateau[] {
  const out: Plateau[] = [];
  for (const [db, K] of curve) {
    const last = out.at(-1);
    if (last?.K === K) last.to = db;
    else out.push({ from: db, to: db, K });
  }
  return out.filter(({ from, to }) => to - from >= PLATEAU);
}

/** Places of the dial worth trying next: between those whose K differ. */
export function finer(curve: [db: number, K: number][], room: number): number[] {
  const gaps = curve.slice(1).map(([db, K], i) => ({ middle: (db + curve[i][0]) / 2, wide: db - curve[i][0], differ: K !== curve[i][1] }));
  return gaps.filter(({ wide, differ }) => differ && wide > 1).map(({ middle }) => middle).slice(0, Math.max(0, room));
}

export class Dial {
  /** Where the library itself set the dial. */
  found: { db: number; K: number } | null = null;
  private counts = new Map<number, number>();
  private asker = new Asker();
  private going: Promise<void> | null = null;
  private low = -4;
  private high = 24;
  private hint = h("p", { class: "note dial-words" });
  slider = slider("Signal to noise", { min: -4, max: 24, step: 0.1, value: 10 }, (v) => `${v.toFixed(1)} dB`, (v) => this.change(v));
  auto = button("Let the library set it", () => this.release(), { class: "quiet chip", disabled: true });
  chart: Picture = picture("Number of clusters at each position of the dial", () => 176, (c, w, t) => this.draw(c, w, t));
  element = h(
    "section",
    { class: "panel dial" },
    h("header", {}, h("h2", {}, "The dial: from coarse to fine"), this.auto),
    this.chart.element,
    this.slider,
    this.hint,
  );

  constructor(
    private change: (db: number) => void,
    private release: () => void,
  ) {
    const seek = (event: PointerEvent) => {
      if (event.type === "pointermove" && !event.buttons) return;
      const { left, width } = this.chart.element.getBoundingClientRect();
      const share = (event.clientX - left - 10) / (width - 20);
      this.slider.set(Math.round(10 * (this.low + share * (this.high - this.low))) / 10);
      this.change(this.value);
      this.chart.redraw();
    };
    this.chart.element.addEventListener("pointerdown", seek);
    this.chart.element.addEventListener("pointermove", seek);
    this.slider.input.addEventListener("input", () => this.chart.redraw());
  }

  get value(): number {
    return +this.slider.input.value;
  }

  get curve(): [number, number][] {
    return [...this.counts].sort((a, b) => a[0] - b[0]);
  }

  set(db: number, own: boolean) {
    this.slider.set(Math.max(this.low, Math.min(this.high, db)));
    this.auto.disabled = own;
    this.chart.redraw();
    this.say();
  }

  /** Forget the curve: it was of other rows. */
  clear() {
    this.asker.stop();
    this.going = null;
    this.counts.clear();
    this.found = null;
    this.say();
    this.chart.redraw();
  }

  /** Make the curve, once, of a table that is not too large for it. */
  async explore(question: Question) {
    if (question.body.size <= LARGEST) await (this.going ??= this.make(question));
    else this.hint.textContent = `${FINER} The table is too large for the curve of K.`;
  }

  /** Roughly first. */
  private async make(question: Question) {
    try {
      let next = Array.from({ length: 8 }, (_, i) => this.low + 4 * i).filter((db) => !this.counts.has(db));
      while (next.length) {
        const counts = await this.asker.dial(question, next);
        if (!counts) return;
        next.forEach((db, i) => this.counts.set(db, counts[i]));
        this.chart.redraw();
        this.say();
        next = finer(this.curve, MOST - this.counts.size);
      }
    } catch (error) {
      this.hint.textContent = `The curve could not be made: ${(error as Error).message}`;
    }
  }

  private say() {
    if (!this.counts.size) {
      this.hint.textContent = `${FINER} The curve of K is drawn here as soon as it is measured.`;
      return;
    }
    const here = plateaus(this.curve).find(({ from, to }) => this.value >= from && this.value <= to);
    const words = here
      ? `From ${here.from.toFixed(0)} to ${here.to.toFixed(0)} dB, K stays at ${here.K}. Trust a number that stays.`
      : "K changes quickly here: a small turn of the dial gives another number. Trust one that stays over a shaded stretch.";
    const nearest = this.found && this.curve.reduce((a, b) => (Math.abs(b[0] - this.found!.db) < Math.abs(a[0] - this.found!.db) ? b : a))[1];
    const off = this.found && nearest !== this.found.K ? ` The dot is the library's own answer, ${this.found.K}: it also looks for clusters of other shapes.` : "";
    this.hint.textContent = `${FINER} The curve supposes Gaussian clusters. ${words}${off}`;
  }

  private draw(c: Pen, width: number, height: number) {
    const X = (db: number) => 10 + ((db - this.low) / (this.high - this.low)) * (width - 20);
    const curve = this.curve;
    const most = Math.max(4, this.found?.K ?? 1, ...curve.map(([, K]) => K));
    const Y = (K: number) => height - 30 - (Math.log(K) / Math.log(most * 1.15)) * (height - 46);
    c.font = `12px ${FONT}`;
    for (const { from, to, K } of plateaus(curve)) {
      c.fillStyle = colours.accent;
      c.globalAlpha = 0.1;
      c.fillRect(X(from), 6, X(to) - X(from), height - 36);
      c.globalAlpha = 1;
      c.fillStyle = colours.ink;
      c.textAlign = "center";
      c.textBaseline = "bottom";
      c.font = `650 14px ${FONT}`;
      c.fillText(String(K), (X(from) + X(to)) / 2, Y(K) - 5);
      c.font = `12px ${FONT}`;
    }
    c.fillStyle = colours.soft;
    c.strokeStyle = colours.line;
    c.lineWidth = 1;
    c.textAlign = "left";
    c.textBaseline = "bottom";
    let above = Infinity;
    for (const K of [1, 2, 5, 10, 20, 50, 100].filter((one) => one <= most)) {
      line(c, 10, Y(K), width - 10, Y(K));
      if (above - Y(K) < 15) continue;
      above = Y(K);
      c.fillText(K === 1 ? "K = 1" : String(K), 12, Y(K) - 1);
    }
    c.textAlign = "center";
    c.textBaseline = "top";
    for (const t of ticks(this.low, this.high, width / 110)) c.fillText(`${t} dB`, Math.max(18, Math.min(width - 20, X(t))), height - 22);
    c.strokeStyle = colours.accent;
    c.lineWidth = 2;
    c.beginPath();
    curve.forEach(([db, K], i) => {
      if (i) c.lineTo(X((db + curve[i - 1][0]) / 2), Y(curve[i - 1][1]));
      c.lineTo(i ? X((db + curve[i - 1][0]) / 2) : X(db), Y(K));
      if (i === curve.length - 1) c.lineTo(X(db), Y(K));
    });
    c.stroke();
    const end = curve.at(-1);
    if (end) {
      c.fillStyle = colours.soft;
      c.textAlign = "right";
      c.textBaseline = "bottom";
      c.fillText(String(end[1]), X(end[0]), Y(end[1]) - 5);
    }
    c.strokeStyle = colours.ink;
    c.lineWidth = 1.5;
    line(c, X(this.value), 4, X(this.value), height - 28);
    if (this.found) {
      c.fillStyle = clusterColour(1);
      c.beginPath();
      c.arc(X(Math.min(this.high, this.found.db)), Y(this.found.K), 5, 0, 2 * Math.PI);
      c.fill();
      c.textBaseline = "bottom";
      const left = X(this.found.db) > width - 80;
      c.textAlign = left ? "right" : "left";
      c.fillText(`found: ${this.found.K}`, X(Math.min(this.high, this.found.db)) + (left ? -9 : 9), Y(this.found.K) + 18);
    }
  }

  close() {
    this.asker.stop();
    this.chart.close();
  }
}
