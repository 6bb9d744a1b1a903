/** The answer in words: how many, how sure, and what to know about the rows. */
import { h, percent, replace } from "../../dom";
import type { Scene } from "../picture/stage";
import type { Data } from "../rows/data";
import type { Fitted } from "./answers";
import type { Refits } from "./refits";

/** While there is neither an answer nor a preview. */
export function waiting(place: HTMLElement) {
  replace(place, h("span", { class: "verdict-words" }, h("strong", {}, "Finding the clusters…"), h("small", {}, "nobody has said how many there are")));
}

export function verdict(place: HTMLElement, K: number, fitted: Fitted | null, refits: Refits, asked: boolean) {
  const likely = fitted?.n_clusters_posterior[K] ?? 0;
  const gaussian = fitted?.expected_index === null ? ", if the clusters are Gaussian" : "";
  const certainty = !fitted
    ? "a preview from this browser; the library is fitting every row"
    : asked
      ? "as many as were asked for"
      : `probability ${likely.toFixed(2)}${gaussian}; ${fitted.share_uncertain ? percent(fitted.share_uncertain) + " of the rows are" : "no row is"} uncertain`;
  replace(
    place,
    h("span", { class: "big", "data-k": K, "data-from": fitted ? "library" : "preview" }, K),
    h(
      "span",
      { class: "verdict-words" },
      h("strong", {}, K === 1 ? "cluster" : "clusters"),
      h("small", {}, certainty),
      fitted && h("small", { class: "again" }),
    ),
  );
  if (fitted) again(place, fitted, refits);
}

/** A square for each part of the rows that is fitted again, with the K found in it, and how often K came back. */
export function again(verdict: HTMLElement, fitted: Fitted, { asked, numbers, done }: Refits) {
  const place = verdict.querySelector<HTMLElement>(".again")!;
  const K = fitted.n_clusters;
  if (!asked && !fitted.refits) return;
  const back = numbers.filter((one) => one === K).length;
  const words = done ? `K = ${K} came back in ${back} of ${asked} refits` : "fitting parts of the rows again…";
  const squares = Array.from({ length: Math.max(asked, numbers.length) }, (_, i) =>
    h("i", { class: i >= numbers.length ? "" : numbers[i] === K ? "same" : "other" }, numbers[i] ?? ""),
  );
  place.dataset.refits = String(numbers.length);
  place.toggleAttribute("data-stable", done);
  replace(place, h("span", { class: "squares", "aria-hidden": "true" }, ...squares), words);
}

export function notes(place: HTMLElement, fitted: Fitted, scene: Scene | null, data: Data | null) {
  const far = scene?.box.outside ?? 0;
  const told = fitted.notes.map((words) => (/[.?!]$/.test(words) ? words : `${words}.`));
  if (far) told.push(`${far} ${far === 1 ? "row lies" : "rows lie"} outside the picture, at the arrowheads.`);
  if (data && data.rows.length > data.drawn.length) told.push(`The picture shows ${data.drawn.length.toLocaleString("en")} of ${data.rows.length.toLocaleString("en")} rows.`);
  replace(place, ...fitted.diagnosis.map((words) => h("p", { class: "notice care" }, words)), ...told.map((words) => h("p", { class: "notice" }, words)));
}
