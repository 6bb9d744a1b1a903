/** An artefact that is open: what was found first, then the picture, claim by claim, the tables, and how to make it again. */
import { ask, button, fill, h } from "../dom";
import { capital, sentences, type Artefact } from "./shelf";
import { fileTable, printedTable, verdictTable } from "./table";

export async function open(paper: string, one: Artefact, body: HTMLElement, refresh: (next: Artefact) => void) {
  const whose = one.made ? "As made on this machine." : one.size ? `As shipped, from a run of size ${one.size}.` : "";
  const tables = h("div", { class: "stack", style: "gap: 12px" });
  fill(
    body,
    ...found(one.found),
    one.said && h("p", { class: "note" }, one.said),
    ...one.pictures.map((path) => picture(path, one.title)),
    one.verdicts.length > 0 && verdictTable(one.verdicts),
    tables,
    one.printed.length > 0 && printedTable(one.printed),
    whose && h("p", { class: "note" }, whose),
    maker(paper, one, refresh),
  );
  for (const path of one.tables) tables.append(await fileTable(path));
}

/** What was found: one sentence after the word, several as a list. */
function found(words: string): HTMLElement[] {
  const told = sentences(words);
  if (told.length < 3) return words ? [h("p", { class: "verdict-line" }, h("strong", {}, "Found. "), capital(words))] : [];
  return [h("p", { class: "verdict-line" }, h("strong", {}, "Found.")), h("ul", { class: "verdict-list" }, ...told.map((one) => h("li", {}, capital(one))))];
}

/** A picture as wide as there is room, and alone in its own window at a click. */
function picture(path: string, title: string): HTMLElement {
  const src = `/api/papers/${path}`;
  return h("a", { href: src, target: "_blank", rel: "noopener", class: "figure", title: "Open the picture alone" }, h("img", { src, alt: title, loading: "lazy" }));
}

/** The command, to run here or to copy. */
function maker(paper: string, one: Artefact, refresh: (next: Artefact) => void): HTMLElement {
  const status = h("span", { class: "note", role: "status" });
  const run = button("Run", () => void start(), { class: "main", "aria-label": `Run ${one.name}` });
  const said = (words: string) => () => void (status.textContent = words);
  const copy = () => void navigator.clipboard.writeText(one.command).then(said("copied"), said("this browser does not let the page copy"));
  const start = async () => {
    run.disabled = true;
    status.textContent = "running… (some take a minute or two)";
    try {
      refresh(await ask<Artefact>(`/api/papers/${paper}/${one.name}`, { method: "POST" }));
    } catch (error) {
      status.textContent = `It could not be made: ${(error as Error).message}`;
      run.disabled = false;
    }
  };
  return h("div", { class: "row" }, run, h("code", {}, one.command), button("Copy", copy, { "aria-label": "Copy the command" }), status);
}
