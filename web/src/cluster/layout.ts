/** Where the parts of the view stand: the picture first, the dial beneath it, everything else below. */
import { fill, h } from "../dom";
import type { Picture } from "../draw/canvas";

type Part = { element: HTMLElement };

/** Where words go that change with the answer. */
export const words = () => ({
  trouble: h("div", { role: "alert" }),
  verdict: h("div", { class: "verdict" }),
  status: h("small", { class: "note", role: "status" }),
  notes: h("div", { class: "notes" }),
  list: h("div", { class: "cards", role: "group", "aria-label": "Clusters" }),
  odds: h("div", { class: "odds" }),
  heat: h("div", { class: "stack", style: "gap: 8px" }),
  columns: h("div"),
  tip: h("div", { class: "tip", hidden: true }),
});

export type Words = ReturnType<typeof words>;

interface Parts {
  source: Part;
  stage: Picture;
  words: Words;
  player: Part;
  dial: Part;
  peers: Part;
  misleads: Part;
}

export function lay(place: HTMLElement, { words, ...parts }: Parts, saves: HTMLElement) {
  fill(
    place,
    h(
      "header",
      { class: "lead" },
      h("h1", {}, "Watch a transformer find the clusters"),
      h("p", { class: "note" }, "Every row is a point. Attention moves the points, layer after layer, until those of one cluster meet."),
    ),
    parts.source.element,
    words.trouble,
    h(
      "div",
      { class: "stage-grid" },
      h("section", { class: "panel stage" }, h("div", { class: "canvas-place" }, parts.stage.element, words.verdict, words.tip), parts.player.element),
      h("section", { class: "panel list" }, h("header", {}, h("h2", {}, "Clusters"), words.status), h("div", { class: "found" }, words.list, words.odds), saves),
    ),
    words.notes,
    parts.dial.element,
    h("details", { class: "panel drawer" }, h("summary", {}, "Columns, axes and model"), words.columns),
    h("section", { class: "panel" }, h("header", {}, h("h2", {}, "What tells the clusters apart")), words.heat),
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
