/** A pen that writes SVG: what a canvas shows, as a drawing that can be enlarged. */
import type { Pen } from "./canvas";

const escape = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
const round = (v: number) => String(Math.round(v * 100) / 100);

type Look = Pick<Pen, "fillStyle" | "strokeStyle" | "lineWidth" | "globalAlpha" | "font" | "textAlign" | "textBaseline" | "lineCap">;

export class SvgPen implements Pen {
  fillStyle: Pen["fillStyle"] = "#000";
  strokeStyle: Pen["strokeStyle"] = "#000";
  lineWidth = 1;
  globalAlpha = 1;
  font = "12px sans-serif";
  textAlign: CanvasTextAlign = "left";
  textBaseline: CanvasTextBaseline = "alphabetic";
  lineCap: CanvasLineCap = "butt";
  private path: string[] = [];
  private body: string[] = [];
  private dash = "";
  private looks: Look[] = [];
  private clips = 0;
  private shifts = 0;
  private open: number[] = [];
  private measure = document.createElement("canvas").getContext("2d")!;

  constructor(
    private width: number,
    private height: number,
  ) {}

  beginPath() {
    this.path = [];
  }
  closePath() {
    this.path.push("Z");
  }
  moveTo(x: number, y: number) {
    this.path.push(`M${round(x)} ${round(y)}`);
  }
  lineTo(x: number, y: number) {
    this.path.push(`${this.path.length ? "L" : "M"}${round(x)} ${round(y)}`);
  }
  /** Whole circles, which is all that our pictures draw. */
  arc(x: number, y: number, r: number) {
    const d = round(2 * r);
    this.path.push(`M${round(x + r)} ${round(y)}a${round(r)} ${round(r)} 0 1 1 -${d} 0a${round(r)} ${round(r)} 0 1 1 ${d} 0`);
  }
  rect(x: number, y: number, w: number, h: number) {
    this.path.push(`M${round(x)} ${round(y)}h${round(w)}v${round(h)}h${round(-w)}Z`);
  }
  fill() {
    this.body.push(`<path d="${this.path.join("")}" fill="${String(this.fillStyle)}"${this.alpha("fill")}/>`);
  }
  stroke() {
    const dash = this.dash && ` stroke-dasharray="${this.dash}"`;
    this.body.push(`<path d="${this.path.join("")}" fill="none" stroke="${String(this.strokeStyle)}" stroke-width="${this.lineWidth}"${dash}${this.alpha("stroke")}/>`);
  }
  fillRect(x: number, y: number, w: number, h: number) {
    this.body.push(`<rect x="${round(x)}" y="${round(y)}" width="${round(w)}" height="${round(h)}" fill="${String(this.fillStyle)}"${this.alpha("fill")}/>`);
  }
  fillText(text: string, x: number, y: number) {
    const anchor = { center: "middle", right: "end", end: "end", left: "start", start: "start" }[this.textAlign];
    const shift = { top: "0.8em", middle: "0.35em", hanging: "0.8em", bottom: "-0.2em", alphabetic: "0", ideographic: "0" }[this.textBaseline];
    this.body.push(`<text x="${round(x)}" y="${round(y)}" dy="${shift}" text-anchor="${anchor}" fill="${String(this.fillStyle)}" style="font:${escape(this.font)}"${this.alpha("fill")}>${escape(text)}</text>`);
  }
  measureText(text: string) {
    this.measure.font = this.font;
    return this.measure.measureText(text);
  }
  setLineDash(segments: Iterable<number>) {
    this.dash = [...segments].join(" ");
  }
  save() {
    const { fillStyle, strokeStyle, lineWidth, globalAlpha, font, textAlign, textBaseline, lineCap } = this;
    this.looks.push({ fillStyle, strokeStyle, lineWidth, globalAlpha, font, textAlign, textBaseline, lineCap });
    this.open.push(0);
  }
  restore() {
    Object.assign(this, this.looks.pop());
    for (let left = this.open.pop() ?? 0; left > 0; left--) this.body.push("</g>");
  }
  clip() {
    const id = `clip${this.clips++}`;
    this.body.push(`<clipPath id="${id}"><path d="${this.path.join("")}"/></clipPath><g clip-path="url(#${id})">`);
    if (this.open.length) this.open[this.open.length - 1]++;
  }
  /** Everything drawn from now on lies so much to the right and lower. */
  shift(x: number, y: number) {
    this.body.push(`<g transform="translate(${x} ${y})">`);
    this.shifts++;
  }
  private alpha(what: "fill" | "stroke"): string {
    return this.globalAlpha < 1 ? ` ${what}-opacity="${round(this.globalAlpha)}"` : "";
  }

  toString(): string {
    const size = `width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}"`;
    return `<svg xmlns="http://www.w3.org/2000/svg" ${size}>\n${this.body.join("\n")}${"</g>".repeat(this.shifts)}\n</svg>\n`;
  }
}
