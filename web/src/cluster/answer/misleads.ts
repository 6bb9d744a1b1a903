/** How it misleads: the same rows at five dials, noise that has no clusters, one Gaussian. */
import { button, h, replace } from "../../dom";
import { axes, boxOf, dots, picture, type Picture } from "../../draw/canvas";
import type { Scene } from "../picture/stage";
import { pointsOf, shape, SHAPES } from "../rows/shapes";
import { Asker, type Question } from "./answers";

const DIALS = [0, 5, 10, 15, 20];

export class Misleads {
  private pictures: Picture[] = [];
  private list = h("div", { class: "small-ones" });
  private go = button("Show", () => void this.run());
  private asked: { question: Question; scene: () => Scene | null } | null = null;
  private turn = 0;
  element = h(
    "section",
    { class: "panel" },
    h("header", {}, h("h2", {}, "How it misleads"), this.go),
    h(
      "p",
      { class: "note" },
      "A method that is asked for clusters finds some. See the same rows at five positions of the dial, an evenly filled square, which has no ",
      "clusters, and a single Gaussian, which is one.",
    ),
    this.list,
  );

  about(question: Question, scene: () => Scene | null) {
    this.clear();
    this.asked = { question, scene };
  }

  clear() {
    this.turn++;
    for (const one of this.pictures.splice(0)) one.close();
    replace(this.list);
    this.go.disabled = false;
  }

  private async run() {
    if (!this.asked) return;
    const { question, scene } = this.asked;
    const mine = this.turn;
    this.go.disabled = true;
    try {
      for (const db of DIALS) {
        const fitted = await new Asker().fit({ ...question, snr_db: db, n_clusters: null });
        const now = scene();
        if (mine !== this.turn || !fitted || !now) return;
        this.add(now.rows, (i) => fitted.labels[now.data.drawn[i]], fitted.n_clusters, `these rows at ${db} dB`);
      }
      for (const name of ["uniform", "gauss"]) {
        const body = shape(name, 0.2);
        const fitted = await new Asker().fit({ body, columns: [] });
        const xy = await pointsOf(body);
        if (mine !== this.turn || !fitted) return;
        this.add(xy, (i) => fitted.labels[i], fitted.n_clusters, `${SHAPES[name].words.replace(/^./, (first) => first.toLowerCase())}: in truth ${SHAPES[name].truth}`);
      }
    } catch (error) {
      this.list.append(h("p", { class: "notice bad" }, (error as Error).message));
    }
  }

  private add(xy: Float64Array, label: (i: number) => number, K: number, words: string) {
    const made = picture(`K = ${K}: ${words}`, () => 150, (c, w, t) => {
      const f = axes(c, boxOf(xy), { left: 4, top: 4, right: w - 4, bottom: t - 4 }, ["", ""], true);
      dots(c, f, xy, label, 1.9, 0.8);
    });
    this.pictures.push(made);
    this.list.append(h("figure", {}, made.element, h("figcaption", {}, h("strong", {}, `K = ${K}`), `, ${words}`)));
  }

  close() {
    this.clear();
  }
}
