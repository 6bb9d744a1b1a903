/** Making and filling elements without a framework. */

type Child = Node | string | number | null | undefined | false;
type Attributes = Record<string, unknown>;

/** An element with attributes (functions are listeners: onclick, oninput) and children. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value as EventListener);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined && value !== null) element.setAttribute(name, String(value));
  }
  return fill(element, ...children);
}

export function fill<T extends Element>(element: T, ...children: Child[]): T {
  for (const child of children) if (child || child === 0) element.append(child instanceof Node ? child : String(child));
  return element;
}

export function replace<T extends Element>(element: T, ...children: Child[]): T {
  element.replaceChildren();
  return fill(element, ...children);
}

/** A labelled choice; `change` gets the chosen value. */
export function choice(
  label: string,
  options: [value: string, words: string][],
  value: string,
  change: (value: string) => void,
) {
  const select = h("select", { "aria-label": label, onchange: () => change(select.value) });
  for (const [option, words] of options) select.append(h("option", { value: option, selected: option === value }, words));
  return Object.assign(h("label", { class: "field" }, h("span", {}, label), select), { select });
}

/** A labelled slider with its value in words. */
export function slider(
  label: string,
  range: { min: number; max: number; step: number | "any"; value: number },
  words: (value: number) => string,
  change: (value: number) => void,
) {
  const input = h("input", { type: "range", ...range, "aria-label": label });
  const shown = h("output", {}, words(range.value));
  const set = (value: number) => {
    input.value = String(value);
    say();
  };
  const say = () => {
    shown.textContent = words(+input.value);
    input.setAttribute("aria-valuetext", shown.textContent);
    const share = (+input.value - +input.min) / Math.max(1e-9, +input.max - +input.min);
    input.style.setProperty("--share", `${100 * share}%`);
  };
  input.addEventListener("input", () => (say(), change(+input.value)));
  say();
  return Object.assign(h("label", { class: "field slider" }, h("span", {}, label, shown), input), { input, set, say });
}

export function button(words: string, click: () => void, attributes: Attributes = {}) {
  return h("button", { type: "button", onclick: click, ...attributes }, words);
}

/** A tick box with words. */
export function tick(words: string, value: boolean, change: (value: boolean) => void) {
  const input = h("input", { type: "checkbox", checked: value, onchange: () => change(input.checked) });
  return Object.assign(h("label", { class: "tick" }, input, h("span", {}, words)), { input });
}

/** The next turn of the browser, so that it can draw and listen between two long pieces of work. */
export const breath = () => new Promise<void>((done) => setTimeout(done));

/** Hand a file to the reader. */
export function download(name: string, content: Blob) {
  const link = h("a", { href: URL.createObjectURL(content), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** JSON from our own server, or an error with its reason in plain words. */
export async function ask<T>(path: string, options?: RequestInit): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    if (options?.signal?.aborted) throw error;
    throw new Error("the server does not answer; is `measureflow explore` still running?");
  }
  if (answer.ok) return (await answer.json()) as T;
  const { detail } = await answer.json().catch(() => ({}));
  throw new Error(typeof detail === "string" ? detail : `the server answered ${answer.status}`);
}

export const percent = (share: number) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
