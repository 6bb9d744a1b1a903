/** The cone of 2 x 2 covariances in three dimensions: height is half the trace, the rim is rank one. */
import { h } from "../dom";
import { picture, type Picture } from "../draw/canvas";
import { colours } from "../draw/theme";
import type { Fate, Matrix } from "./attention";

export interface Strand {
  path: Matrix[];
  fate: Fate | "particles";
}

const TOP = 3; // height of the cone drawn

export function cone(strands: () => Strand[]): Picture & { turn: (by: number) => void } {
  let azimuth = 0.7;
  let tilt = 0.38;
  const made = picture("Paths of covariances in the cone", (w) => Math.min(380, Math.max(230, w * 0.72)), (c, width, height) => {
    const unit = Math.min((0.45 * width) / TOP, (height - 46) / (TOP * (Math.cos(tilt) + Math.abs(Math.sin(tilt)))));
    const at = (a: number, b: number, z: number): [number, number] => {
      const x = a * Math.cos(azimuth) - b * Math.sin(azimuth);
      const y = a * Math.sin(azimuth) + b * Math.cos(azimuth);
      return [width / 2 + x * unit, height - 16 - (z * Math.cos(tilt) - y * Math.sin(tilt)) * unit];
    };
    const of = (S: Matrix) => at((S[0] - S[3]) / 2, S[1], (S[0] + S[3]) / 2);
    const ring = (z: number) => {
      c.beginPath();
      for (let k = 0; k <= 60; k++) c.lineTo(...at(z * Math.cos((k * Math.PI) / 30), z * Math.sin((k * Math.PI) / 30), z));
      c.stroke();
    };
    c.lineWidth = 1;
    c.strokeStyle = colours.line;
    for (const z of [0.75, 1.5, 2.25]) ring(z);
    for (let k = 0; k < 16; k++) {
      c.beginPath();
      c.moveTo(...at(0, 0, 0));
      c.lineTo(...at(TOP * Math.cos((k * Math.PI) / 8), TOP * Math.sin((k * Math.PI) / 8), TOP));
      c.stroke();
    }
    c.strokeStyle = colours.soft;
    ring(TOP);
    c.save();
    c.beginPath();
    c.rect(0, 0, width, height);
    c.clip();
    for (const strand of strands()) {
      c.strokeStyle = fateColour(strand.fate);
      c.fillStyle = c.strokeStyle;
      c.lineWidth = strand.fate === "particles" ? 3 : 1.6;
      c.globalAlpha = strand.fate === "particles" ? 1 : 0.85;
      c.beginPath();
      for (const S of strand.path) if (S[0] + S[3] < 2.6 * TOP) c.lineTo(...of(S));
      c.stroke();
      const shown = strand.path.filter((S) => S[0] + S[3] < 2.6 * TOP);
      const ends: [Matrix | undefined, number][] = [[shown[0], 2], [strand.fate === "blows up" ? undefined : shown.at(-1), 3.6]];
      for (const [S, r] of ends) {
        if (!S) continue;
        c.beginPath();
        c.arc(...of(S), r, 0, 2 * Math.PI);
        c.fill();
      }
    }
    c.restore();
    c.globalAlpha = 1;
    c.fillStyle = colours.soft;
    c.textAlign = "left";
    c.textBaseline = "top";
    c.fillText("trace / 2 ↑", ...at(0.06, 0, TOP * 1.12));
  });
  const turn = (by: number) => {
    azimuth += by;
    made.redraw();
  };
  const { element } = made;
  element.tabIndex = 0;
  element.style.touchAction = "pan-y";
  element.addEventListener("pointermove", (event) => {
    if (!event.buttons) return;
    tilt = Math.max(-0.1, Math.min(1.3, tilt + event.movementY * 0.006));
    turn(-event.movementX * 0.008);
  });
  element.addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft") turn(0.12);
    else if (event.key === "ArrowRight") turn(-0.12);
    else return;
    event.preventDefault();
  });
  return { ...made, turn };
}

export const fateColour = (fate: Strand["fate"]) =>
  ({ settles: colours.clusters[0], "blows up": colours.clusters[1], moving: colours.clusters[9], particles: colours.ink })[fate];

/** What the colours of the paths mean. */
export function legend(): HTMLElement {
  const entry = (fate: Strand["fate"], words: string) => h("span", {}, h("i", { style: `background:${fateColour(fate)}` }), words);
  return h("div", { class: "legend" }, entry("settles", "settles"), entry("blows up", "blows up"), entry("moving", "still moving"), entry("particles", "these tokens"));
}
