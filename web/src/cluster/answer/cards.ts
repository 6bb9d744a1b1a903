/** The clusters in words and numbers: a card each, and a heat map of what tells them apart. */
import { h, percent, replace } from "../../dom";
import { short } from "../../numbers";
import { clusterColour, colours } from "../../draw/theme";
import type { Fitted } from "./answers";
import type { Refits } from "./refits";

const MOST_COLUMNS = 16;
const MOST_CLUSTERS = 30;

/** A button for each cluster; pressing one shows it alone. */
export function cards(place: HTMLElement, fitted: Fitted, refits: Refits, focus: number | null, choose: (k: number | null) => void) {
  const total = fitted.clusters.reduce((sum, { rows }) => sum + rows, 0);
  replace(
    place,
    ...fitted.clusters.map(({ cluster: k, rows, traits }) =>
      h(
        "button",
        { type: "button", class: "card", "data-cluster": k, "aria-pressed": String(focus === k), onclick: () => choose(focus === k ? null : k) },
        h("span", { class: "disc", style: `background:${clusterColour(k)}` }, k),
        h("span", { class: "card-size" }, `${rows.toLocaleString("en")} ${rows === 1 ? "row" : "rows"}, ${percent(rows / total)}`),
        h("span", { class: "card-bar" }, h("i", { style: `width:${(100 * rows) / total}%;background:${clusterColour(k)}` })),
        h("span", { class: "card-traits" }, traits.length ? breakable(traits.map(tidy).join(" · ")) : "near the mean in every column"),
        (refits.asked > 0 || fitted.refits > 0) && h("span", { class: "card-back" }, "\u00a0"), // its line is there from the start: nothing jumps
      ),
    ),
    fitted.n_outliers > 0 &&
      h(
        "button",
        { type: "button", class: "card", "data-cluster": -1, "aria-pressed": String(focus === -1), onclick: () => choose(focus === -1 ? null : -1) },
        h("span", { class: "disc", style: `background:${colours.soft}` }, "–"),
        h("span", { class: "card-size" }, `${fitted.n_outliers.toLocaleString("en")} ${fitted.n_outliers === 1 ? "row" : "rows"} far from the rest`),
      ),
  );
  backs(place, refits);
}

/** How often each cluster came back, once that is known; the cards stay as they are, for one may be in use. */
export function backs(place: HTMLElement, { found, asked, done }: Refits) {
  if (!done || !found) return;
  place.querySelectorAll(".card-back").forEach((line, k) => {
    line.textContent = `came back in ${Math.round(found.clusters[k] * asked)} of ${asked} refits`;
    line.toggleAttribute("data-stable", true);
  });
}

/** "high mass (5.1e3, +1.2 sd)" without its figures, which the heat map has. */
const tidy = (trait: string) => trait.replace(/ \([^()]*\)$/, "");

/** A name that may break after an underscore or a stop. */
const breakable = (name: string) => name.replace(/([_.])/g, "$1\u200b");

/** Rows are clusters, columns are columns; colour says how far the centre lies from the mean of all rows. */
export function heatMap(place: HTMLElement, fitted: Fitted, focus: number | null, typical: (row: number) => string) {
  const { differences, columns, centres } = fitted;
  const strength = columns.map((_, j) => Math.max(...differences.map((row) => Math.abs(row[j]))));
  const order = columns.map((_, j) => j).sort((a, b) => strength[b] - strength[a]).slice(0, MOST_COLUMNS);
  const shown = order.sort((a, b) => a - b);
  const cell = (k: number, j: number) => {
    const z = differences[k][j];
    const strong = Math.min(1, Math.abs(z) / 2.2);
    const colour = z > 0 ? colours.accent : colours.bad;
    const style = `background:color-mix(in srgb, ${colour} ${Math.round(78 * strong)}%, transparent)`;
    return h("td", { style, title: `${columns[j]}: ${short(centres[k][j])}, ${z > 0 ? "+" : ""}${z.toFixed(1)} sd` }, short(centres[k][j]));
  };
  replace(
    place,
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "Cluster by column" },
      h(
        "table",
        { class: "heat" },
        h("thead", {}, h("tr", {}, h("th", {}, ""), ...shown.map((j) => h("th", { scope: "col" }, breakable(columns[j]))), h("th", { class: "words" }, "a typical row"))),
        h(
          "tbody",
          {},
          ...fitted.clusters.slice(0, MOST_CLUSTERS).map(({ cluster: k }) =>
            h(
              "tr",
              { class: focus !== null && focus !== k ? "dim" : "" },
              h("th", { scope: "row" }, h("span", { class: "disc", style: `background:${clusterColour(k)}` }, k)),
              ...shown.map((j) => cell(k, j)),
              h("td", { class: "words" }, fitted.typical[k].length ? typical(fitted.typical[k][0]) : "–"),
            ),
          ),
        ),
      ),
    ),
    h(
      "p",
      { class: "note" },
      "Centres in the units of each column; blue is above the mean of all rows, orange below.",
      fitted.n_outliers > 0 && " Rows far from the rest are not in that mean.",
      columns.length > MOST_COLUMNS ? ` The ${MOST_COLUMNS} columns that tell most, of ${columns.length}.` : "",
      fitted.clusters.length > MOST_CLUSTERS ? ` The ${MOST_CLUSTERS} largest clusters, of ${fitted.clusters.length}.` : "",
    ),
  );
}
