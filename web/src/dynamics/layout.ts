/** Where the parts of the view stand: the tokens first, beside what can be chosen; what is measured of them below. */
import { fill, h } from "../dom";
import type { Picture } from "../draw/canvas";
import { legend } from "./cone";

export interface Parts {
  about: HTMLElement;
  presets: HTMLElement[];
  panel: HTMLElement;
  panels: HTMLElement;
  player: HTMLElement[];
  ending: HTMLElement;
  cones: Picture;
  entropy: Picture;
  energy: Picture;
  larger: { element: HTMLElement };
}

const CONE =
  "Each point of the cone is a covariance: higher is larger, on the axis the cloud is round, at the rim it is flat as a line. " +
  "The bold path follows the dashed ellipse of the tokens; thin paths are Gaussians, computed exactly.";

export function lay(place: HTMLElement, parts: Parts) {
  const figure = (made: Picture, words: string) => h("figure", {}, made.element, h("figcaption", {}, words));
  const panel = (title: string, small: string, ...children: HTMLElement[]) => h("section", { class: "panel" }, h("header", {}, h("h2", {}, title), small && h("small", {}, small)), ...children);
  fill(
    place,
    h("div", { class: "intro" }, h("h1", {}, "Attention is a velocity field"), parts.about),
    h("div", { class: "row presets", role: "group", "aria-label": "Presets" }, ...parts.presets),
    h(
      "div",
      { class: "split" },
      parts.panel,
      h(
        "div",
        { class: "stack" },
        h("section", { class: "panel stage" }, parts.panels, h("div", { class: "player" }, ...parts.player), parts.ending),
        h(
          "div",
          { class: "three uneven" },
          panel("Covariances in their cone", "drag or use ← →", parts.cones.element, legend(), h("p", { class: "note" }, CONE)),
          panel(
            "Entropy and energy",
            "",
            figure(parts.entropy, "Entropy: how spread out the tokens are."),
            figure(parts.energy, "Energy: the logarithm of half the mean of exp(score) over all pairs."),
          ),
          panel("A larger run", "on this machine", parts.larger.element),
        ),
      ),
    ),
  );
}
