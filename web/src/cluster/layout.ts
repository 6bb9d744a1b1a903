/** Where the parts of the view stand: the picture first, the dial beneath it, everything else below. */
import { fill, h } from "../dom";
import type { Picture } from "../draw/canvas";

type Part = { element: HTMLElement };

export interface Parts {
  source: Part;
  trouble: HTMLElement;
  stage: Picture;
  verdict: HTMLElement;
  tip: HTMLElement;
  player: Part;
  status: HTMLElement;
  list: HTMLElement;
  odds: HTMLElement;
  notes: HTMLElement;
  dial: Part;
  columns: HTMLElement;
  heat: HTMLElement;
  peers: Part;
  misleads: Part;
}

export function lay(place: HTMLElement, parts: Parts, saves: HTMLElement) {
  fill(
    place,
    h(
      "header",
      { class: "lead" },
      h("h1", {}, "Watch a transformer find the clusters"),
      h("p", { class: "note" }, "Every row is a point. Attention moves the points, layer after layer, until those of one cluster meet."),
    ),
    parts.source.element,
    parts.trouble,
    h(
      "div",
      { class: "stage-grid" },
      h("section", { class: "panel stage" }, h("div", { class: "canvas-place" }, parts.stage.element, parts.verdict, parts.tip), parts.player.element),
      h("section", { class: "panel list" }, h("header", {}, h("h2", {}, "Clusters"), parts.status), h("div", { class: "found" }, parts.list, parts.odds), saves),
    ),
    parts.notes,
    parts.dial.element,
    h("details", { class: "panel drawer" }, h("summary", {}, "Columns, axes and model"), parts.columns),
    h("section", { class: "panel" }, h("header", {}, h("h2", {}, "What tells the clusters apart")), parts.heat),
    parts.peers.element,
    parts.misleads.element,
    h(
      "p",
      { class: "note about" },
      "A row on its way is called a token. Every layer moves each token a little, toward what it attends to, and tokens that end on one spot are ",
      "a cluster. You do not have to say how many clusters there are. Your data stay on this machine.",
    ),
  );
}
