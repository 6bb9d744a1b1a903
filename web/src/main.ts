/** The frame of the page: four views behind one address each, and a light or dark theme. */
import "./style.css";
import { readAddress } from "./address";
import { breath, h, replace } from "./dom";
import { drop } from "./dropped";
import { themeButton } from "./draw/theme";

/** A view fills its place on the page and returns what to do when it is left. */
export type View = (place: HTMLElement) => Promise<() => void> | (() => void);

const views: Record<string, () => Promise<{ default: View }>> = {
  cluster: () => import("./cluster/cluster"),
  dynamics: () => import("./dynamics/dynamics"),
  circuits: () => import("./circuits/circuits"),
  papers: () => import("./papers/papers"),
};

const main = document.querySelector<HTMLElement>("#main")!;
let leave = () => {};
let turn = 0;

async function show() {
  const { view: asked } = readAddress();
  const name = asked in views ? asked : "cluster";
  const mine = ++turn;
  leave();
  leave = () => {};
  for (const link of document.querySelectorAll<HTMLAnchorElement>("header nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const place = h("div", { class: `view ${name}` });
  replace(main, place);
  try {
    const view = await views[name]();
    await breath();
    if (mine !== turn) return;
    const left = await view.default(place);
    if (mine === turn) leave = left;
    else left();
  } catch (error) {
    replace(place, h("p", { class: "notice bad", role: "alert" }, `This view could not be opened: ${(error as Error).message}`));
  }
}

// A file dropped beside a view would make the browser leave the page: the view that takes files is told of it instead.
for (const kind of ["dragover", "dragleave", "drop"] as const)
  document.addEventListener(kind, (event) => {
    event.preventDefault();
    document.documentElement.classList.toggle("dragging", kind === "dragover");
    const file = kind === "drop" ? event.dataTransfer?.files[0] : null;
    if (!file) return;
    const { view } = readAddress();
    drop(file);
    if (view !== "cluster" && view in views) location.hash = "cluster";
  });

themeButton(document.querySelector<HTMLButtonElement>("#theme")!);
addEventListener("hashchange", show);
document.querySelector(".skip")!.addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
show();
