/** How probable each number of clusters is, as bars. */
import { h, percent, replace } from "../../dom";
import type { Fitted } from "./answers";

const MOST = 7; // bars
const LEAST = 0.01; // of the probability that a bar is drawn for

export function posterior(place: HTMLElement, fitted: Fitted, asked: boolean) {
  const likely = Object.entries(fitted.n_clusters_posterior)
    .map(([K, p]): [number, number] => [+K, p])
    .filter(([K, p]) => p >= LEAST || K === fitted.n_clusters)
    .sort((a, b) => b[1] - a[1])
    .slice(0, MOST)
    .sort((a, b) => a[0] - b[0]);
  if (asked || !likely.length) return void replace(place);
  const top = likely.reduce((a, b) => (b[1] > a[1] ? b : a));
  const rest = 1 - likely.reduce((sum, [, p]) => sum + p, 0);
  replace(
    place,
    h("h3", {}, "How probable is each K?"),
    h(
      "ul",
      {},
      ...likely.map(([K, p]) =>
        h("li", { class: K === fitted.n_clusters ? "chosen" : "" }, h("b", {}, K), h("span", { class: "card-bar" }, h("i", { style: `width:${100 * p}%` })), h("small", {}, percent(p))),
      ),
    ),
    rest > LEAST && h("p", { class: "note" }, `others together: ${percent(rest)}`),
    top[0] !== fitted.n_clusters && h("p", { class: "note" }, `K = ${top[0]} is more probable. Clusters are chosen by which rows belong together, not by their number alone.`),
  );
}
