// The page as a whole: what is committed, the keyboard, themes, sizes.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT, shoot } from "../tools/harness.mjs";
import { checkFields, checkTicks } from "../tools/fields.mjs";
import { checkReader } from "../tools/reader.mjs";
import { answered, clusters, everywhere, once, still, test } from "../tools/support.mjs";

once("the committed page is what the source builds", async () => {
  const folder = mkdtempSync(join(tmpdir(), "measureflow-build-"));
  const vite = join(ROOT, "web", "node_modules", "vite", "bin", "vite.js");
  execFileSync(process.execPath, [vite, "build", "--outDir", folder, "--logLevel", "silent"], { cwd: join(ROOT, "web") });
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const names = files.map((entry) => join(entry.parentPath, entry.name).slice(folder.length));
  assert.ok(names.length > 5);
  const committed = join(ROOT, "src/measureflow/explorer/static");
  const stale = names.filter((name) => !existsSync(committed + name) || !readFileSync(folder + name).equals(readFileSync(committed + name)));
  assert.deepEqual(stale, [], "run `make web` and commit what it makes");
  rmSync(folder, { recursive: true });
});

once("the page reads tables as the library does", checkReader);

once("the page computes attention as the library does", checkFields);

once("the marks of an axis differ in words, however narrow it is", checkTicks);

test("the keyboard reaches everything", async ({ page, address }) => {
  await clusters(page, address);
  await still(page); // while it plays by itself, the button says Pause
  const reached = [];
  for (let i = 0; i < 40; i++) {
    await page.keyboard.press("Tab");
    reached.push(await page.evaluate(() => document.activeElement?.getAttribute("aria-label") || document.activeElement?.textContent?.trim()));
  }
  const theme = await page.locator("#theme").getAttribute("aria-label");
  for (const name of ["Cluster", "Papers", theme, "Choose a file", "Signal to noise", "Play", "Layer", "Save labels", "Compare"])
    assert.ok(reached.includes(name), `Tab does not reach ${name}: ${reached.join(", ")}`);
  const dial = page.getByRole("slider", { name: "Signal to noise" });
  await dial.focus();
  const before = await dial.inputValue();
  await page.keyboard.press("ArrowRight");
  assert.ok(Number(await dial.inputValue()) > Number(before));
});

test("the theme is the system's until it is chosen", async ({ page, address }) => {
  await clusters(page, address);
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await page.evaluate(() => matchMedia("(prefers-color-scheme: light)").matches);
  const [other, own] = light ? ["Dark", "Light"] : ["Light", "Dark"];
  const before = await paper();
  await page.getByRole("button", { name: `${other} colours` }).click();
  assert.notEqual(await paper(), before);
  await page.reload();
  await page.getByRole("button", { name: `${own} colours` }).click();
  assert.equal(await paper(), before);
});

everywhere("nothing jumps while a view opens", async ({ page, address }) => {
  await page.addInitScript(() => {
    window.jumps = [];
    new PerformanceObserver((list) => {
      for (const { value, sources } of list.getEntries()) window.jumps.push({ value, what: sources.map(({ node }) => `${node?.nodeName} ${node?.className}`).join(", ") });
    }).observe({ type: "layout-shift", buffered: true });
  });
  for (const view of ["cluster", "dynamics", "circuits", "papers"]) {
    await page.goto("about:blank");
    await page.goto(`${address}/#${view}`);
    await page.locator(".panel canvas, details").first().waitFor();
    if (view === "cluster") await answered(page);
    await page.waitForTimeout(500);
    const jumps = await page.evaluate(() => window.jumps);
    const total = jumps.reduce((sum, { value }) => sum + value, 0); // the share of the window that moved, times how far
    assert.ok(total < 0.05, `${view}: ${total.toFixed(3)}, ${jumps.map(({ what }) => what).join("; ")}`);
  }
});

for (const width of [1280, 390])
  for (const dark of [false, true])
    once(`every view fits ${width} pixels, ${dark ? "dark" : "light"}`, async ({ page, address }) => {
      for (const view of ["cluster", "dynamics", "circuits", "papers"]) {
        await page.goto(`${address}/#${view}`);
        await page.locator(".panel canvas, details").first().waitFor();
        if (view === "cluster") await answered(page).then(() => still(page));
        await page.waitForTimeout(view === "dynamics" ? 2500 : 900);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= width, `${view} is ${wide} pixels wide`);
        await shoot(page, view, { fullPage: true });
      }
    });
