/** Plays the layers: continuous motion, a slider, single steps, and the space bar. */
import { button, h, slider } from "../../dom";

const SPEED = 1.9; // layers in a second, for a flow of six

export class Player {
  layers = 6;
  private frame = 0;
  play = button("Play", () => this.toggle(), { class: "main", title: "space" });
  slider = slider("Layer", { min: 0, max: 6, step: 0.05, value: 6 }, (v) => `${+v.toFixed(1)} of ${this.layers}`, (v) => (this.stop(), this.seek(v)));
  element = h(
    "div",
    { class: "player" },
    this.play,
    button("◀", () => this.step(-1), { "aria-label": "One layer back", class: "step" }),
    button("▶", () => this.step(1), { "aria-label": "One layer on", class: "step" }),
    this.slider,
  );
  private key = (event: KeyboardEvent) => {
    const busy = (event.target as HTMLElement).closest?.("input, button, select, textarea, a, summary, [contenteditable]");
    if (event.key !== " " || busy) return;
    event.preventDefault();
    this.toggle();
  };

  constructor(private show: (t: number) => void) {
    addEventListener("keydown", this.key);
  }

  get t(): number {
    return +this.slider.input.value;
  }

  get playing(): boolean {
    return this.frame !== 0;
  }

  /** Another flow: as far along it as before, or at its end. */
  fit(layers: number) {
    const share = this.layers ? this.t / this.layers : 1;
    if (layers === this.layers) return;
    this.layers = layers;
    this.slider.input.max = String(layers);
    this.seek(share * layers);
  }

  seek(t: number) {
    this.slider.set(Math.max(0, Math.min(this.layers, t)));
    this.show(this.t);
  }

  step(by: number) {
    this.stop();
    this.seek(by > 0 ? Math.floor(this.t + 1e-6) + 1 : Math.ceil(this.t - 1e-6) - 1);
  }

  toggle() {
    if (this.frame) this.stop();
    else this.start(this.t >= this.layers ? 0 : this.t);
  }

  start(from = 0) {
    this.stop();
    if (!this.layers) return;
    this.play.textContent = "Pause";
    const pace = (SPEED * Math.max(6, this.layers)) / 6;
    let began = 0;
    const next = (now: number) => {
      began ||= now;
      const t = from + ((now - began) / 1000) * pace;
      this.seek(t);
      if (t >= this.layers) this.stop();
      else this.frame = requestAnimationFrame(next);
    };
    this.seek(from);
    this.frame = requestAnimationFrame(next);
  }

  stop() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.play.textContent = "Play";
  }

  close() {
    this.stop();
    removeEventListener("keydown", this.key);
  }
}
