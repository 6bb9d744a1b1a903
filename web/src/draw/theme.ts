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

/** The colour of a cluster: ten chosen by hand, then as many more as there are, no two alike. */
export function clusterColour(k: number): string {
  if (k < 0) return colours.soft;
  if (k < colours.clusters.length) return colours.clusters[k];
  const round = k - colours.clusters.length;
  const light = document.documentElement.dataset.theme === "dark" ? [72, 60, 82] : [42, 54, 32];
  return hex((round * 137.508 + 18) % 360, 0.62, light[round % 3] / 100);
}

/** A hue in degrees, saturation and lightness as #rrggbb, which every program that reads SVG understands. */
function hex(hue: number, saturation: number, lightness: number): string {
  const part = (n: number) => {
    const at = (n + hue / 30) % 12;
    const value = lightness - saturation * Math.min(lightness, 1 - lightness) * Math.max(-1, Math.min(at - 3, 9 - at, 1));
    return Math.round(255 * value).toString(16).padStart(2, "0");
  };
  return `#${part(0)}${part(8)}${part(4)}`;
}
