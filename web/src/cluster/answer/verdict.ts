/** The answer in words: how many, how sure, and what to know about the rows. */
import { h, percent, replace } from "../../dom";
import type { Scene } from "../picture/stage";
import type { Data } from "../rows/data";
import type { Fitted, Stability } from "./answers";

export function verdict(place: HTMLElement, K: number, fitted: Fitted | null, stable: Stability | null, refits: number, asked: boolean) {
  const likely = fitted?.n_clusters_posterior[K] ?? 0;
  const gaussian = fitted?.expected_index === null ? ", if the clusters are Gaussian" : "";
  const certainty = !fitted
    ? "a preview from this browser; the library is fitting every row"
    : asked
      ? "as many as were asked for"
      : `probability ${likely.toFixed(2)}${gaussian}; ${fitted.share_uncertain ? percent(fitted.share_uncertain) + " of the rows are" : "no row is"} uncertain`;
  const back = stable && `K = ${K} came back in ${Math.round(100 * (stable.n_clusters[K] ?? 0))} % of ${refits} refits`;
  replace(
    place,
    h("span", { class: "big", "data-k": K, "data-from": fitted ? "library" : "preview" }, K),
    h("span", { class: "verdict-words" }, h("strong", {}, K === 1 ? "cluster" : "clusters"), h("small", {}, certainty), back && h("small", { "data-stable": "" }, back)),
  );
}

export function notes(place: HTMLElement, fitted: Fitted, scene: Scene | null, data: Data | null) {
  const far = scene?.box.outside ?? 0;
  const told = fitted.notes.map((words) => (/[.?!]$/.test(words) ? words : `${words}.`));
  if (far) told.push(`${far} ${far === 1 ? "row lies" : "rows lie"} outside the picture, at the arrowheads.`);
  if (data && data.rows.length > data.drawn.length) told.push(`The picture shows ${data.drawn.length.toLocaleString("en")} of ${data.rows.length.toLocaleString("en")} rows.`);
  replace(place, ...fitted.diagnosis.map((words) => h("p", { class: "notice care" }, words)), ...told.map((words) => h("p", { class: "notice" }, words)));
}
