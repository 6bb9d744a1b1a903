// What the tests of the page share: how to reach a view, how to wait, tables to bring.
import assert from "node:assert/strict";

export const tests = [];
/** A test in one window: its name tells which, as in "at 390 pixels, dark"; 1280 pixels and light if it does not. */
export const once = (name, run) => tests.push({ name, run });
const ALL = [1280, 390].flatMap((width) => ["light", "dark"].map((theme) => [width, theme]));
const TWO = [[1280, "light"], [390, "dark"]];

/** A test in a large light window and on a dark phone; in all four with --everywhere. */
export function test(name, run, windows = process.argv.includes("--everywhere") ? ALL : TWO) {
  for (const [width, theme] of windows) once(`${name}, at ${width} pixels, ${theme}`, (told) => run({ ...told, width, theme }));
}
/** A test in four windows. */
export const everywhere = (name, run) => test(name, run, ALL);

export const k = async (page) => Number((await page.locator("[data-k]").getAttribute("data-k", { timeout: 60_000 })) ?? NaN);
export const pixels = (page, label) => page.locator(`canvas[aria-label="${label}"]`).evaluate((canvas) => canvas.toDataURL());
export const move = (slider, value) =>
  slider.evaluate((input, v) => {
    input.value = v;
    input.dispatchEvent(new Event("input", { bubbles: true }));
  }, String(value));

/** Wait until a check holds. */
export async function until(check, what, seconds = 60) {
  const end = Date.now() + 1000 * seconds;
  while (Date.now() < end) {
    if (await check()) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.fail(`waited ${seconds} s for ${what}`);
}

/** The cluster view, with the library's answer. */
export async function clusters(page, address, state = "") {
  await page.goto(`${address}/#cluster${state}`);
  await answered(page);
}

/** What the library answered last: the page is compared with it, so that no test hangs on what certain weights find. */
export const told = (page) => page.fits.at(-1);

/** The library's own answer to a table, asked for beside the page. */
export async function library(address, content, query = "", path = "fit") {
  const answer = await fetch(`${address}/api/${path}?${query}`, { method: "POST", body: content });
  assert.ok(answer.ok, `${answer.status}`);
  return answer.json();
}

export const answered = (page) => page.waitForSelector('[data-from="library"]', { timeout: 300_000 });
export const table = (page) => page.locator(".drop strong").innerText();
export const opened = async (page, name) => {
  await until(async () => (await table(page)) === name, name, 120);
  await answered(page);
};
/** What was asked for is on the screen. */
export const drawn = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
/** The layers have come to rest. */
export const still = (page) => until(async () => (await page.getByRole("button", { name: "Play", exact: true }).count()) === 1, "the end of the flow");

/** A CSV of `n` rows in groups far apart. */
export function groups(n, centres = [[0, 0], [10, 0], [0, 10]]) {
  let seed = 12345;
  const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  const noise = () => Math.sqrt(-2 * Math.log(random())) * Math.cos(6.283185307179586 * random());
  const rows = Array.from({ length: n }, (_, i) => centres[i % centres.length].map((c) => (c + 0.7 * noise()).toFixed(4)).join(","));
  return `width,height\n${rows.join("\n")}\n`;
}

export const upload = (page, name, content) =>
  page.setInputFiles('input[type="file"]', { name, mimeType: "text/csv", buffer: Buffer.from(content) });

/** The longest task of 50 ms or more on the page's own thread while `work` ran, by the browser's own observer of long tasks. */
export async function observedTask(page, work) {
  await page.addInitScript(watchTasks);
  await page.evaluate(watchTasks);
  await work();
  return page.evaluate(() => window.longestTask);
}

/**
 * The longest task while `work` ran, in milliseconds: by processor time, which other programs on the machine hardly change, by
 * the clock, and by the browser's observer. Tracing itself lengthens what the clock and the observer see.
 */
export async function longestTask(page, work) {
  const browser = page.context().browser();
  await browser.startTracing(page, { categories: ["toplevel", "disabled-by-default-devtools.timeline"] });
  const observed = await observedTask(page, work);
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
  const frames = traceEvents.flatMap(({ name, args }) => (name === "TracingStartedInBrowser" ? args.data.frames : name === "FrameCommittedInBrowser" ? [args.data] : []));
  const ours = new Set(frames.filter(({ url }) => url.startsWith("http")).map(({ processId }) => processId)); // the browser has pages of its own
  const main = new Set(traceEvents.filter((e) => e.name === "thread_name" && e.args.name === "CrRendererMain").map((e) => `${e.pid} ${e.tid}`));
  const tasks = traceEvents.filter((e) => e.tdur !== undefined && ours.has(e.pid) && main.has(`${e.pid} ${e.tid}`) && e.name.endsWith("RunTask"));
  assert.ok(tasks.length > 0, "no task was traced");
  const most = (time) => Math.max(...tasks.map((e) => e[time] / 1000));
  return { processor: most("tdur"), clock: most("dur"), observed };
}

function watchTasks() {
  window.longestTask = 0; // the observer tells of tasks of 50 ms and more
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) window.longestTask = Math.max(window.longestTask, duration);
  }).observe({ type: "longtask" });
}

/** Milliseconds of processor time beyond which a task would be felt. */
export const LONGEST = 100;

export const taskWords = ({ processor, clock, observed }) =>
  `longest task ${processor.toFixed(0)} ms of processor time, ${clock.toFixed(0)} ms by the clock, ${observed ? `${observed.toFixed(0)} ms` : "none of 50 ms"} by the browser's observer`;

/** How many times longer than on an idle machine work takes now: time that passes over time on a processor. */
export function slowness() {
  const [began, used] = [performance.now(), process.cpuUsage()];
  const spent = () => {
    const { user, system } = process.cpuUsage(used);
    return (user + system) / 1000;
  };
  while (spent() < 250);
  return Math.max(1, (performance.now() - began) / spent());
}
