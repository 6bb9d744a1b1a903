/** The drawer: which columns, which axes, how many clusters, and whose flow is shown. */
import { button, choice, h, replace, tick } from "../dom";
import type { Table } from "../table/table";
import type { Model } from "./flow/model";
import { axisNames } from "./rows/data";

export interface Choices {
  columns: number[];
  axes: [string, string];
  n_clusters: number | null;
  model: string; // "" is the library's own flow
}

export function drawer(place: HTMLElement, table: Table, chosen: Choices, models: Model[], change: (next: Partial<Choices>) => void) {
  const names = chosen.columns.map((j) => table.columns[j].name);
  const offered = axisNames(names).map((name): [string, string] => [name, name]);
  const axis = (words: string, which: 0 | 1) =>
    choice(words, offered, chosen.axes[which], (value) => change({ axes: which ? [chosen.axes[0], value] : [value, chosen.axes[1]] }));
  const flows: [string, string][] = [
    ["", "FlowMixture's own"],
    ...models.filter((m) => m.d === null || m.d === names.length).map((m): [string, string] => [m.name, `${m.name}, in this browser`]),
  ];
  const asked = h("input", {
    type: "number",
    min: 1,
    max: 200,
    placeholder: "found",
    value: chosen.n_clusters ?? "",
    "aria-label": "Number of clusters",
    onchange: () => change({ n_clusters: asked.value ? Math.max(1, Math.round(+asked.value)) : null }),
  });
  replace(
    place,
    h(
      "div",
      { class: "drawer-parts" },
      columnPicker(table, chosen.columns, (columns) => change({ columns })),
      h(
        "div",
        { class: "stack", style: "gap: 12px; align-content: start" },
        axis("Across", 0),
        names.length > 1 && axis("Up", 1),
        h("label", { class: "field" }, h("span", {}, "Number of clusters"), asked),
        choice("Flow that is shown", flows, chosen.model, (model) => change({ model })),
        h("p", { class: "note" }, "The answer is always FlowMixture's, on every row. A flow in this browser is a preview of it."),
      ),
    ),
  );
}

/** Every column of numbers, with a search, all and none, and the reason why a column was left out. */
function columnPicker(table: Table, chosen: number[], change: (columns: number[]) => void): HTMLElement {
  const numeric = table.columns.flatMap((column, j) => (column.values ? [j] : []));
  const words = table.columns.filter((column) => !column.values);
  const boxes = numeric.map((j) => {
    const { name, reason } = table.columns[j];
    const box = tick(name, chosen.includes(j), (on) => {
      const next = on ? [...chosen, j].sort((a, b) => a - b) : chosen.filter((c) => c !== j);
      if (next.length) change(next);
      else box.input.checked = true;
    });
    if (reason) box.append(h("small", { class: "note" }, reason));
    return box;
  });
  const search = h("input", { type: "search", placeholder: "Search columns", "aria-label": "Search columns" });
  search.addEventListener("input", () => {
    const wanted = search.value.trim().toLowerCase();
    boxes.forEach((box, i) => (box.hidden = !table.columns[numeric[i]].name.toLowerCase().includes(wanted)));
  });
  return h(
    "fieldset",
    { class: "columns" },
    h("legend", {}, `Columns: ${chosen.length} of ${numeric.length} with numbers`),
    h(
      "div",
      { class: "row" },
      numeric.length > 8 && search,
      button("All", () => change(numeric), { class: "chip" }),
      button("None", () => change(numeric.slice(0, 1)), { class: "chip", title: "keeps the first: a clustering needs one" }),
      button("As suggested", () => change(table.used), { class: "chip" }),
    ),
    h("div", { class: "ticks" }, ...boxes),
    words.length > 0 && h("p", { class: "note" }, `Left out: ${words.slice(0, 12).map((one) => `${one.name} (${one.reason})`).join(", ")}${words.length > 12 ? `, and ${words.length - 12} more` : ""}.`),
  );
}
