/** What other clusterers make of the same rows, computed by the server with scikit-learn. */
import { button, h, replace } from "../../dom";
import { axes, dots, picture, type Picture } from "../../draw/canvas";
import type { Scene } from "../picture/stage";
import { Asker, type Peer, type Question } from "./answers";

export class Peers {
  private asker = new Asker();
  private pictures: Picture[] = [];
  private list = h("div", { class: "three" });
  private go = button("Compare", () => void this.compare());
  private asked: { question: Question; K: number; scene: () => Scene | null } | null = null;
  element = h(
    "section",
    { class: "panel" },
    h("header", {}, h("h2", {}, "Other methods on the same rows"), this.go),
    h("p", { class: "note" }, "scikit-learn's k-means, Gaussian mixture (four covariances, the number of components by BIC) and HDBSCAN, on standardised columns."),
    this.list,
  );

  /** Other rows or another answer: what was compared is out of date. */
  about(question: Question, K: number, scene: () => Scene | null) {
    this.clear();
    this.asked = { question, K, scene };
  }

  clear() {
    this.asker.stop();
    for (const one of this.pictures.splice(0)) one.close();
    replace(this.list);
    this.go.disabled = false;
    this.asked = null;
  }

  redraw() {
    for (const one of this.pictures) one.redraw();
  }

  private async compare() {
    if (!this.asked) return;
    const { question, K, scene } = this.asked;
    this.go.disabled = true;
    replace(this.list, h("p", { class: "note" }, "comparing…"));
    try {
      const found = await this.asker.peers(question, K);
      if (found) replace(this.list, ...found.map((peer) => this.card(peer, scene)));
    } catch (error) {
      replace(this.list, h("p", { class: "notice bad" }, (error as Error).message));
      this.go.disabled = false;
    }
  }

  private card(peer: Peer, scene: () => Scene | null): HTMLElement {
    const made = picture(`Clusters by ${peer.name}`, () => 230, (c, w, t) => {
      const now = scene();
      if (!now) return;
      const colour = likeness(peer.labels, now);
      const f = axes(c, now.box, { left: 34, top: 4, right: w - 4, bottom: t - 22 }, ["", ""], now.plane.flat);
      dots(c, f, now.rows, (i) => colour(peer.labels[now.data.drawn[i]]), 2.2, 0.8);
    });
    this.pictures.push(made);
    return h("figure", { "data-peer": peer.name }, h("h3", {}, peer.name), made.element, h("figcaption", {}, peer.words));
  }

  close() {
    this.clear();
  }
}

/** Colours for another clustering: each group has the colour of our cluster that it shares most rows with, if that is free. */
function likeness(labels: number[], scene: Scene): (k: number) => number {
  const pairs = new Map<string, number>();
  scene.data.drawn.forEach((row, i) => {
    const key = `${labels[row]} ${scene.label(i)}`;
    pairs.set(key, (pairs.get(key) ?? 0) + 1);
  });
  const colour = new Map<number, number>([[-1, -1]]);
  const taken = new Set<number>([-1]);
  let ours = 0;
  for (const [key] of [...pairs].sort((a, b) => b[1] - a[1])) {
    const [a, b] = key.split(" ").map(Number);
    ours = Math.max(ours, b + 1);
    if (colour.has(a) || taken.has(b)) continue;
    colour.set(a, b);
    taken.add(b);
  }
  return (k) => {
    if (!colour.has(k)) colour.set(k, ours++);
    return colour.get(k)!;
  };
}
