// A server of our own and a headless Chromium in front of it; every test gets a fresh page that is watched.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
export const SHOTS = join(ROOT, "out", "screenshots");
const { chromium } = createRequire(join(ROOT, "web", "package.json"))("playwright-core");

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** The Python of this clone, or the one that is asked for. */
export function pythonPath() {
  const own = join(ROOT, ".venv/bin/python");
  return process.env.PYTHON ?? (existsSync(own) ? own : "python3");
}

/** `measureflow explore` on a free port; its address and how to end it. */
export async function serve(...args) {
  const server = spawn(pythonPath(), ["-m", "measureflow.cli", "explore", "--no-browser", ...args], { cwd: ROOT });
  let said = "";
  server.stderr.on("data", (text) => (said += text));
  const address = await new Promise((resolve, reject) => {
    server.stdout.on("data", (text) => {
      said += text;
      const found = /http:\/\/127\.0\.0\.1:\d+/.exec(said);
      if (found) resolve(found[0]);
    });
    server.on("exit", () => reject(new Error(`the server did not start: ${said}`)));
    setTimeout(() => reject(new Error(`the server did not start within 300 s: ${said}`)), 300_000).unref();
  });
  return { address, close: () => server.kill("SIGINT") };
}

export async function browse() {
  const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
  if (!executablePath) throw new Error("there is no Chromium: apt-get install chromium");
  mkdirSync(SHOTS, { recursive: true });
  const browser = await chromium.launch({ executablePath, headless: true, args: FLAGS });
  return browser; // with a new profile in a temporary folder, as playwright always does
}

/** Windows of one size and theme. */
export function watch(browser, { width = 1280, height = 900, dark = false } = {}) {
  const colorScheme = dark ? "dark" : "light";
  return browser.newContext({ viewport: { width, height }, colorScheme, acceptDownloads: true });
}

/** A page that remembers every error, every request to another host than those of our servers, and what the library answered. */
export async function open(context, addresses) {
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const faults = [];
  page.ignore = (pattern) => (page.ignored = pattern);
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && faults.push(`console: ${message.text()}`));
  page.fits = []; // the answers to "what are the clusters", in order
  page.on("response", (response) => response.ok() && new URL(response.url()).pathname === "/api/fit" && page.fits.push(response.json().catch(() => null)));
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  const look = (request) => {
    const ours = [...addresses(), "blob:", "data:", "file:"].some((start) => request.url().startsWith(start));
    if (!ours) faults.push(`request to ${request.url()}`);
  };
  context.on("request", look);
  const close = async () => {
    context.off("request", look);
    await page.close();
  };
  return { page, faults, close };
}

/** Keep a picture of the window, under a name that tells its size and theme. */
export async function shoot(page, name, options = {}) {
  const dark = await page.evaluate(() => matchMedia("(prefers-color-scheme: dark)").matches);
  await page.screenshot({ path: join(SHOTS, `${name}-${page.viewportSize().width}-${dark ? "dark" : "light"}.png`), ...options });
}
