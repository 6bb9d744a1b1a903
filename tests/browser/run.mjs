// The page in a real browser: node tests/browser/run.mjs [--everywhere] [pattern of the tests' names]. README.md says which test
// shows what, and in which windows. Screenshots go to out/screenshots.
import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { browse, open, ROOT, serve, SHOTS, watch } from "./tools/harness.mjs";
import { tests } from "./tools/support.mjs";
import "./views/page.mjs";
import "./views/answer.mjs";
import "./views/cluster.mjs";
import "./views/data.mjs";
import "./views/dynamics.mjs";
import "./views/circuits.mjs";
import "./views/papers.mjs";
import "./views/phone.mjs";
import "./views/report.mjs";
import "./views/tasks.mjs";
import "./views/walk.mjs";

/** A folder of results as `measureflow reproduce` leaves them. */
function results() {
  const folder = mkdtempSync(join(tmpdir(), "measureflow-results-"));
  const home = join(folder, "castin2025", "fig1");
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, "findings.md"), "Castin 2025, Figure 1: covariances\n\nThe paper says so. Found: all is well with figure one.\n");
  writeFileSync(join(home, "limits.csv"), `run,rank,value\n0,1,0.125\n${Array.from({ length: 11 }, (_, i) => `${i + 1},1,\n`).join("")}`);
  copyFileSync(join(ROOT, "docs", "images", "demo.png"), join(home, "fig1.png"));
  return folder;
}

const wanted = new RegExp(process.argv.slice(2).find((word) => !word.startsWith("--")) ?? "");
const folder = results();
const empty = mkdtempSync(join(tmpdir(), "measureflow-empty-"));
const plain = await serve("--results", empty);
let withResults = null; // a second server, for the tests that ask for it
const made = async () => (withResults ??= await serve("--results", folder)).address;
const browser = await browse();
let failed = 0;
const contexts = new Map(); // one for each size and theme: what a page has compiled the next one need not
const contextOf = async (size) => {
  const key = JSON.stringify(size);
  if (!contexts.has(key)) contexts.set(key, await watch(browser, size));
  return contexts.get(key);
};
for (const { name, run } of tests.filter((one) => wanted.test(one.name))) {
  const size = { width: Number(/(\d+) pixels/.exec(name)?.[1] ?? 1280), dark: name.endsWith("dark") };
  const { page, faults, close } = await open(await contextOf(size), () => [plain, withResults].flatMap((server) => server?.address ?? []));
  const began = Date.now();
  try {
    await run({ page, address: plain.address, made });
    assert.deepEqual(faults.filter((fault) => !page.ignored?.test(fault)), [], "the page had faults");
    console.log(`ok      ${name} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed++;
    await page.screenshot({ path: join(SHOTS, "failed.png"), fullPage: true }).catch(() => {});
    console.log(`FAILED  ${name}\n        ${String(error?.stack ?? error).split("\n").join("\n        ")}\n        faults: ${faults.join("; ") || "none"}`);
  }
  await close();
}
await browser.close();
plain.close();
withResults?.close();
for (const one of [folder, empty]) rmSync(one, { recursive: true, force: true });
console.log(failed ? `${failed} browser tests failed` : "Every browser test passed; screenshots are in out/screenshots.");
process.exitCode = failed ? 1 : 0;
