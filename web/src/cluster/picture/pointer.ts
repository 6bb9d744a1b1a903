/** What the pointer does on the picture: tells of a row, isolates a cluster, draws points. */
import { h, replace } from "../../dom";
import { short } from "../../numbers";
import { clusterColour } from "../../draw/theme";
import type { Fitted } from "../answer/answers";
import { nearestRow } from "../rows/data";
import type { Source } from "../rows/source";
import { frameOf, margins, type Scene } from "./stage";

interface Host {
  scene: Scene | null;
  fitted: Fitted | null;
  source: Source;
  focusOn: (k: number | null) => void;
  redraw: () => void;
}

export function listen(canvas: HTMLCanvasElement, tip: HTMLElement, host: Host) {
  let held = -1; // the point in hand, while drawing
  let last = 0;
  const place = (event: PointerEvent): [number, number] => {
    const { left, top } = canvas.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  };
  const under = (event: PointerEvent): number => {
    const { scene } = host;
    return scene ? nearestRow(frameOf(scene, canvas.clientWidth, canvas.clientHeight), scene.rows, ...place(event)) : -1;
  };
  const inData = (event: PointerEvent): [number, number] => {
    const { box } = host.scene!;
    const m = margins(canvas.clientWidth, canvas.clientHeight);
    const [x, y] = place(event);
    return [box.x0 + ((x - m.left) / (m.right - m.left)) * (box.x1 - box.x0), box.y1 - ((y - m.top) / (m.bottom - m.top)) * (box.y1 - box.y0)];
  };
  const move = (event: PointerEvent) => {
    if (!host.scene) return;
    if (host.source.drawn && event.buttons) {
      if (event.timeStamp - last < 45) return;
      last = event.timeStamp;
      const [x, y] = inData(event);
      const { points } = host.source.drawing;
      if (held >= 0) points[held] = [x, y];
      else points.push([x + 0.06 * (Math.random() - 0.5), y + 0.06 * (Math.random() - 0.5)]);
      return void host.source.draw();
    }
    const i = under(event);
    if (host.scene.hover !== i) {
      host.scene.hover = i;
      host.redraw();
    }
    if (i < 0) tip.hidden = true;
    else tell(tip, host.scene, host.fitted, i, place(event), canvas.clientWidth);
  };
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerleave", () => {
    tip.hidden = true;
    if (host.scene && host.scene.hover >= 0) {
      host.scene.hover = -1;
      host.redraw();
    }
  });
  canvas.addEventListener("pointerdown", (event) => {
    if (!host.scene) return;
    const i = under(event);
    if (host.source.drawn) {
      held = i >= 0 ? host.scene.data.drawn[i] : -1;
      canvas.setPointerCapture(event.pointerId);
      last = 0;
      return move(event);
    }
    const k = i >= 0 ? host.scene.label(i) : -1;
    host.focusOn(k < 0 || k === host.scene.focus ? null : k);
  });
  canvas.addEventListener("pointerup", () => (held = -1));
}

function tell(tip: HTMLElement, scene: Scene, fitted: Fitted | null, i: number, [x, y]: [number, number], width: number) {
  const { data } = scene;
  const row = data.drawn[i];
  const k = scene.label(i);
  const value = (j: number) => short(data.values.x[i * data.values.d + j]);
  const p = fitted?.probabilities[row];
  const rival = fitted?.rivals[row] ?? -1;
  replace(
    tip,
    h("strong", {}, `row ${row + 1}`),
    k < 0 && fitted && h("span", {}, `belongs to no cluster; nearest: ${fitted.labels[row]}`),
    k >= 0 && h("span", { class: "tip-cluster" }, h("i", { style: `background:${clusterColour(k)}` }), fitted ? `cluster ${k}${p === null || p === undefined ? "" : `, probability ${p.toFixed(p > 0.995 ? 3 : 2)}`}` : `preview: group ${k}`),
    rival >= 0 && h("span", { class: "note" }, `next most likely: ${rival}`),
    ...data.names.slice(0, 7).map((name, j) => h("span", { class: "tip-cell" }, h("em", {}, name), value(j))),
    data.names.length > 7 && h("span", { class: "note" }, `and ${data.names.length - 7} more columns`),
  );
  tip.hidden = false;
  tip.style.left = `${x > width - 230 ? Math.max(0, x - 216) : x + 16}px`;
  tip.style.top = `${Math.max(4, y - 20)}px`;
}
