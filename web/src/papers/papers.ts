/** Papers: what was found, beside what was printed; made on this machine at the press of a button. */
import { readAddress, writeAddress } from "../address";
import { ask, button, fill, h, replace } from "../dom";
import { open } from "./opened";
import { capital, tally, type Artefact, type Paper } from "./shelf";
import { plain } from "./table";

export default async function papers(place: HTMLElement): Promise<() => void> {
  const shelf = await ask<Paper[]>("/api/papers");
  const { state } = readAddress();
  const claims = filters(place, shelf.flatMap(({ artefacts }) => artefacts));
  fill(
    place,
    h(
      "div",
      { class: "intro" },
      h("h1", {}, "Four papers, computed anew"),
      h("p", {}, "Every table and figure, computed by this package. Open one to compare the printed numbers with ours; Run computes it on this machine, at its smallest size."),
    ),
    claims.element,
    ...shelf.map((paper) => panel(paper)),
  );
  claims.choose(state.get("with") ?? "");
  const asked = place.querySelector<HTMLDetailsElement>(`details[data-artefact="${CSS.escape(state.get("open") ?? "")}"]`);
  if (asked) {
    asked.open = true;
    requestAnimationFrame(() => asked.scrollIntoView({ block: "start" }));
  }
  return () => {};
}

/** What of the view stands in the address: the card that is open, and the verdict that is asked for. */
function remember(change: { open?: string; with?: string }) {
  const { state } = readAddress();
  writeAddress("papers", { open: state.get("open"), with: state.get("with"), ...change });
}

/** A button for each verdict: the cards without it step back. */
function filters(place: HTMLElement, all: Artefact[]) {
  let chosen = "";
  const buttons = tally(all).map(({ verdict, words }) => Object.assign(button(words, () => choose(chosen === verdict ? "" : verdict), { class: "chip" }), { verdict }));
  const choose = (verdict: string) => {
    chosen = verdict;
    for (const one of buttons) one.setAttribute("aria-pressed", String(one.verdict === verdict));
    for (const one of place.querySelectorAll<HTMLElement>("details.artefact")) one.classList.toggle("aside", !!verdict && !one.dataset.verdicts!.split(" ").includes(verdict));
    remember({ with: verdict });
  };
  const claims = all.reduce((sum, one) => sum + one.verdicts.length, 0);
  const element = h("div", { class: "row", role: "group", "aria-label": "Claims by verdict", hidden: !claims }, h("span", { class: "note" }, `Of ${claims} claims:`), ...buttons);
  return { element, choose };
}

const has = (one: Artefact) => one.made || !!one.found;

function panel({ paper, title, artefacts }: Paper): HTMLElement {
  const rest = artefacts.filter((one) => !has(one));
  const count = h("small", {}, [`${artefacts.length} tables and figures`, tally(artefacts).map(({ words }) => words).join(", ")].filter(Boolean).join(": "));
  const cards = (some: Artefact[]) => h("div", { class: "shelf" }, ...some.map((one) => card(paper, one)));
  return h(
    "section",
    { class: "panel" },
    h("header", {}, h("h2", {}, title), count),
    artefacts.length ? cards(artefacts.filter(has)) : h("p", { class: "empty" }, "This server was not told what this paper has to show."),
    rest.length > 0 && h("h3", {}, "No result ships for these; Run computes them"),
    rest.length > 0 && cards(rest),
  );
}

const WORDS: Record<string, string> = { table: "Table ", fig: "Figure ", theorem: "Theorem ", section: "Section " };
const spaced = (name: string) => capital(name.replace(/^(table|fig|theorem|section)(?=\d)/, (word) => WORDS[word]).replaceAll("_", " "));
/** The first sentence of what was found. */
const brief = (found: string) => capital(/^.*?[^\d\s]\.(?=\s|$)/.exec(found)?.[0] ?? found);

/** A picture with its number; opening it shows everything. */
function card(paper: string, one: Artefact): HTMLElement {
  const id = `${paper}-${one.name}`;
  const body = h("div", { class: "artefact-body" });
  const summary = h("summary", {}, ...face(one));
  const verdicts = [...new Set(one.verdicts.map(({ verdict }) => verdict))].join(" ");
  const details = h("details", { class: "artefact", "data-artefact": id, "data-verdicts": verdicts }, summary, body);
  const refresh = (next: Artefact) => {
    replace(summary, ...face(next));
    replace(body);
    void open(paper, next, body, refresh);
  };
  details.addEventListener("toggle", () => {
    if (details.open && !body.childElementCount) void open(paper, one, body, refresh);
    if (details.open) remember({ open: id });
    else if (readAddress().state.get("open") === id) remember({ open: "" });
  });
  return details;
}

function face(one: Artefact): HTMLElement[] {
  return [
    ...(one.face ? [h("span", { class: "face" }, plain(one.face[0], one.face.slice(1)))] : one.pictures.length ? [h("img", { src: `/api/papers/${one.pictures[0]}`, alt: "", loading: "lazy" })] : []),
    h("span", { class: "card-name" }, h("strong", {}, spaced(one.name)), h("span", {}, ...judged(one), one.made && h("span", { class: "badge made" }, "made here"))),
    ...(one.title ? [h("span", { class: "card-title" }, one.title)] : []),
    ...(one.found ? [h("span", { class: "card-found" }, brief(one.found))] : []),
  ];
}

/** The verdicts in brief: one word if they agree, else how many claims hold. */
function judged({ verdicts }: Artefact): HTMLElement[] {
  if (!verdicts.length) return [];
  const words = new Set(verdicts.map(({ verdict }) => verdict));
  const held = verdicts.filter(({ verdict }) => verdict === "holds").length;
  const [word, kind] = words.size === 1 ? [verdicts[0].verdict, verdicts[0].verdict] : [`${held} of ${verdicts.length} hold`, words.has("fails") ? "fails" : "mixed"];
  return [h("span", { class: `badge ${kind}` }, word)];
}
