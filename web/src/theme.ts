/** Light or dark: what the system says, until the reader says otherwise. */

const dark = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

function current(): "light" | "dark" {
  const chosen = localStorage.getItem("theme");
  return chosen === "light" || chosen === "dark" ? chosen : dark.matches ? "dark" : "light";
}

function apply() {
  document.documentElement.dataset.theme = current();
  colours = read();
  for (const listener of listeners) listener();
}

function read() {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: of("ink"),
    soft: of("soft"),
    line: of("line"),
    paper: of("panel"),
    accent: of("accent"),
    bad: of("bad"),
    clusters: Array.from({ length: 10 }, (_, i) => of(`c${i}`)),
  };
}

document.documentElement.dataset.theme = current();

/** The colours of the theme, for canvases. */
export let colours = read();

/** Call back when the colours change; the result ends it. */
export function onTheme(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Make a button of the theme. */
export function themeButton(button: HTMLButtonElement) {
  const label = () => {
    const next = current() === "dark" ? "Light" : "Dark";
    button.textContent = next;
    button.setAttribute("aria-label", `${next} colours`);
  };
  button.addEventListener("click", () => {
    localStorage.setItem("theme", current() === "dark" ? "light" : "dark");
    apply();
    label();
  });
  dark.addEventListener("change", () => (apply(), label()));
  apply();
  label();
}

/** The colour of a cluster; past ten they begin again. */
export const clusterColour = (k: number) => (k < 0 ? colours.soft : colours.clusters[k % colours.clusters.length]);
