/** Files to take home: labels, and the picture as SVG or as PNG at twice the size. */
import { button, download, h } from "../../dom";
import { SvgPen } from "../../draw/svg";
import { withLabels, type Table } from "../../table/table";
import type { Fitted } from "../answer/answers";
import { drawScene, poster, POSTER_TOP, type Scene } from "./stage";

const [WIDTH, HEIGHT] = [960, 640];

interface View {
  fitted: Fitted | null;
  scene: Scene | null;
  table: Table | null;
}

/** What stands above a picture that is saved. */
const title = ({ table, fitted }: View): [string, string] => [`${table?.name ?? ""}: ${fitted?.headline ?? "a preview"}`, fitted?.certainty ?? ""];

/** The buttons that save, after another one. */
export function saves(view: View, first: HTMLElement): HTMLElement {
  return h(
    "div",
    { class: "row saves" },
    first,
    button("Save labels", () => view.fitted && void saveLabels(view.fitted), { class: "chip" }),
    button("PNG", () => view.scene && savePng(view.scene, ...title(view)), { class: "chip", "aria-label": "Save picture as PNG" }),
    button("SVG", () => view.scene && saveSvg(view.scene, ...title(view)), { class: "chip", "aria-label": "Save picture as SVG" }),
  );
}

function paint(c: Parameters<typeof drawScene>[0], scene: Scene, title: string, words: string, lower: () => void) {
  poster(c, WIDTH, HEIGHT + POSTER_TOP, title, words);
  lower();
  drawScene(c, WIDTH, HEIGHT, { ...scene, hover: -1 });
}

function savePng(scene: Scene, title: string, words: string) {
  const canvas = h("canvas", { width: 2 * WIDTH, height: 2 * (HEIGHT + POSTER_TOP) });
  const c = canvas.getContext("2d")!;
  c.scale(2, 2);
  paint(c, scene, title, words, () => c.translate(0, POSTER_TOP));
  canvas.toBlob((blob) => blob && download("clusters.png", blob), "image/png");
}

function saveSvg(scene: Scene, title: string, words: string) {
  const pen = new SvgPen(WIDTH, HEIGHT + POSTER_TOP);
  paint(pen, scene, title, words, () => pen.shift(0, POSTER_TOP));
  download("clusters.svg", new Blob([pen.toString()], { type: "image/svg+xml" }));
}

/** The file that `measureflow cluster` calls labels.csv. */
async function saveLabels(fitted: Fitted) {
  const probabilities = Float64Array.from(fitted.probabilities, (p) => p ?? NaN);
  download("labels.csv", await withLabels(Int32Array.from(fitted.labels), probabilities));
}
