// The page in a real browser: node tests/browser/run.mjs [pattern of the tests' names]. Screenshots go to out/screenshots.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { browse, open, ROOT, serve, SHOTS, watch } from "./harness.mjs";

const tests = [];
const test = (name, run) => tests.push({ name, run });

const k = async (page) => Number((await page.locator("[data-k]").getAttribute("data-k", { timeout: 60_000 })) ?? NaN);
const pixels = (page, label) => page.locator(`canvas[aria-label="${label}"]`).evaluate((canvas) => canvas.toDataURL());
const move = (slider, value) =>
  slider.evaluate((input, v) => {
    input.value = v;
    input.dispatchEvent(new Event("input", { bubbles: true }));
  }, String(value));

/** Wait until a check holds. */
async function until(check, what, seconds = 60) {
  const end = Date.now() + 1000 * seconds;
  while (Date.now() < end) {
    if (await check()) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.fail(`waited ${seconds} s for ${what}`);
}

async function clusters(page, address) {
  await page.goto(`${address}/#cluster`);
  await page.waitForSelector("[data-k]");
}

const flowed = (page) => until(async () => /flow time/.test(await page.locator(".panel [role=status]").innerText()), "the flow");

/** A CSV of `n` rows in groups far apart. */
function groups(n, centres = [[0, 0], [10, 0], [0, 10]]) {
  let seed = 12345;
  const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  const noise = () => Math.sqrt(-2 * Math.log(random())) * Math.cos(6.283185307179586 * random());
  const rows = Array.from({ length: n }, (_, i) => centres[i % centres.length].map((c) => (c + 0.7 * noise()).toFixed(4)).join(","));
  return `width,height\n${rows.join("\n")}\n`;
}

const upload = (page, name, content) =>
  page.setInputFiles('input[type="file"]', { name, mimeType: "text/csv", buffer: Buffer.from(content) });

test("the committed page is what the source builds", async () => {
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

test("opens with an example, already clustered", async ({ page, address }) => {
  await clusters(page, address);
  assert.ok((await k(page)) >= 2);
  assert.match(await page.locator(".drop").innerText(), /272 rows, 2 columns/);
});

test("loads a file and finds its three groups", async ({ page, address }) => {
  await clusters(page, address);
  await upload(page, "groups.csv", groups(300));
  await until(async () => (await page.locator(".drop strong").innerText()) === "groups.csv" && (await k(page)) === 3, "K = 3");
  const shares = await page.locator(".bars b").allInnerTexts();
  for (const share of shares) assert.ok(Math.abs(parseFloat(share) - 33.3) < 2, `a share of ${share}`);
});

test("takes a file dropped on the page", async ({ page, address }) => {
  await clusters(page, address);
  const data = await page.evaluateHandle((text) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([text], "dropped.csv", { type: "text/csv" }));
    return transfer;
  }, groups(90));
  await page.dispatchEvent(".view", "drop", { dataTransfer: data });
  await until(async () => (await page.locator(".drop strong").innerText()) === "dropped.csv", "the dropped table");
});

test("the dial changes the flow", async ({ page, address }) => {
  await clusters(page, address);
  await flowed(page);
  const time = async () => Number(/flow time ([\d.]+)/.exec(await page.locator(".panel [role=status]").innerText())?.[1] ?? NaN);
  const dial = page.getByRole("slider", { name: "Signal to noise" });
  const [low, high] = await dial.evaluate((input) => [input.min, input.max]);
  const before = await time();
  await move(dial, low);
  await until(async () => (await time()) > before, "a longer flow");
  const coarse = await k(page);
  await move(dial, high);
  await until(async () => (await time()) < before, "a shorter flow");
  assert.ok(coarse <= (await k(page)), "less noise, no fewer clusters");
});

test("plays the flow layer by layer", async ({ page, address }) => {
  await clusters(page, address);
  await flowed(page);
  const end = await pixels(page, "Tokens at this layer");
  const layer = page.getByRole("slider", { name: "Layer" });
  await move(layer, 0);
  const most = await k(page);
  await page.waitForTimeout(100);
  assert.notEqual(await pixels(page, "Tokens at this layer"), end);
  await page.getByRole("button", { name: "Play" }).click();
  const last = await layer.getAttribute("max");
  await until(async () => (await layer.inputValue()) === last, "the last layer");
  await page.getByRole("button", { name: "Play" }).waitFor();
  assert.ok((await k(page)) <= most);
  await page.waitForTimeout(200);
  assert.equal(await pixels(page, "Tokens at this layer"), end);
});

test("any two columns, principal axes and other columns", async ({ page, address }) => {
  await clusters(page, address);
  await page.locator('[data-example="penguins"]').click();
  await until(async () => /344 rows/.test(await page.locator(".drop").innerText()), "the penguins");
  await flowed(page);
  const before = await pixels(page, "Tokens at this layer");
  await page.getByRole("combobox", { name: "Across" }).selectOption({ label: "bill_length_mm" });
  await page.getByRole("combobox", { name: "Up" }).selectOption({ label: "flipper_length_mm" });
  await flowed(page);
  await until(async () => (await pixels(page, "Tokens at this layer")) !== before, "other axes");
  await page.getByRole("checkbox", { name: "body_mass_g" }).uncheck();
  await flowed(page);
  assert.equal(await page.locator("fieldset input:checked").count(), 3);
});

test("saves labels and a picture", async ({ page, address }) => {
  await clusters(page, address);
  await upload(page, "words.csv", "name,x,y\n" + Array.from({ length: 40 }, (_, i) => `=${i},${i % 2 ? 9 : 0}.${i},${i}`).join("\n"));
  await until(async () => (await page.locator(".drop strong").innerText()) === "words.csv", "the table");
  await flowed(page);
  const [labels] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save labels" }).click()]);
  const text = readFileSync(await labels.path(), "utf8");
  const [header, first] = text.split("\n");
  assert.equal(header, "name,x,y,cluster");
  assert.match(first, /^'=0,0\.0,0,\d+$/, "a cell that looks like a formula is defused");
  assert.equal(text.trim().split("\n").length, 41);
  const [picture] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save picture" }).click()]);
  assert.equal(readFileSync(await picture.path()).subarray(1, 4).toString(), "PNG");
});

test("garbage is refused in plain words, and the page goes on", async ({ page, address }) => {
  await clusters(page, address);
  const trouble = page.locator(".notice.bad");
  await upload(page, "photo.csv", Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 1, 2, 0x80]));
  await trouble.getByText("photo.csv is not text").waitFor();
  await upload(page, "words.csv", "a,b\nx,y\nz,w\nu,v\n");
  await trouble.getByText("No column of words.csv holds numbers").waitFor();
  await upload(page, "empty.csv", "");
  await trouble.getByText("fewer than three lines").waitFor();
  await page.screenshot({ path: join(SHOTS, "cluster-garbage.png") });
  await upload(page, "good.csv", groups(60));
  await until(async () => (await page.locator(".drop strong").innerText()) === "good.csv", "a good table");
  assert.equal(await trouble.count(), 0);
});

test("takes ten megabytes", async ({ page, address }) => {
  await clusters(page, address);
  const file = join(mkdtempSync(join(tmpdir(), "measureflow-")), "large.csv");
  const text = groups(750_000);
  assert.ok(text.length > 10 * 2 ** 20, `${text.length} bytes`);
  writeFileSync(file, text);
  await page.setInputFiles('input[type="file"]', file);
  await until(async () => /750,000 rows/.test(await page.locator(".drop").innerText()), "the table", 120);
  await until(async () => /sample of 1,500 rows/.test(await page.locator(".panel [role=status]").innerText()), "the sample", 120);
  await until(async () => (await k(page)) === 3, "K = 3");
  rmSync(file);
});

test("fits on the server, or says why not", async ({ page, address }) => {
  await clusters(page, address);
  await upload(page, "groups.csv", groups(240));
  await until(async () => (await page.locator(".drop strong").innerText()) === "groups.csv", "the table");
  const note = page.locator('[data-note="server"]');
  page.ignore(/503/); // an installation without the estimator answers so
  await page.getByRole("button", { name: "Fit on this machine" }).click();
  await until(async () => /K = 3,|no FlowMixture/.test(await note.innerText()), "an answer", 120);
});

test("every attention flows, and its variants differ", async ({ page, address }) => {
  await page.goto(`${address}/#dynamics`);
  const attention = page.getByRole("combobox", { name: "Attention" });
  const seen = new Set();
  const clock = async () => parseFloat((await page.locator("header small[role=status]").innerText()).slice(4));
  await page.getByRole("button", { name: "Pause" }).click();
  for (const name of await attention.locator("option").evaluateAll((options) => options.map((option) => option.value))) {
    await attention.selectOption(name);
    assert.equal(await clock(), 0);
    for (let i = 0; i < 3; i++) await page.getByRole("button", { name: "Step" }).click();
    assert.ok((await clock()) > 0, `${name} does not flow`);
    await page.waitForTimeout(100);
    seen.add(await pixels(page, "Paths of covariances in the cone"));
  }
  assert.equal(seen.size, 8);
});

test("a blow-up ends in words", async ({ page, address }) => {
  await page.goto(`${address}/#dynamics`);
  await page.getByLabel("Minus the token itself").uncheck();
  await page.getByRole("combobox", { name: "Attention" }).selectOption("linear");
  await page.getByText("The tokens left for infinity").waitFor();
  assert.match(await page.locator("main").innerText(), /24 leave for infinity/);
});

test("the server simulates with progress, and can be told to stop", async ({ page, address }) => {
  await page.goto(`${address}/#dynamics`);
  await page.getByRole("button", { name: "Run it" }).click();
  await page.locator('[data-job="done"]').waitFor({ timeout: 120_000 });
  await page.getByText("This is the end of the run.").waitFor();
  await page.getByRole("combobox", { name: "Attention" }).selectOption("sinkhorn");
  await page.getByRole("button", { name: "Run it" }).click();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.locator('[data-job="cancelled"]').waitFor();
});

test("a circuit is stepped through head by head", async ({ page, address }) => {
  await page.goto(`${address}/#circuits`);
  const next = page.getByRole("button", { name: "Next head" });
  await next.waitFor();
  const seen = new Set();
  for (let i = 0; i < 5; i++) {
    await next.click();
    seen.add(await page.locator('.heads [aria-pressed="true"]').innerText());
  }
  assert.deepEqual([...seen].sort(), ["Dec-CA", "Dec-SA", "Enc-CA", "Enc-SA"]);
  assert.match(await page.getByRole("slider", { name: "Layer" }).getAttribute("aria-valuetext"), /^2 of/);
  await page.getByRole("combobox", { name: "Algorithm" }).selectOption("robust");
  await page.getByRole("heading", { name: "robust k-means" }).waitFor();
});

test("printed numbers without results, and the command that makes them", async ({ page, address }) => {
  await page.goto(`${address}/#papers`);
  await page.getByText("Figure 5").first().click();
  await page.getByText("measureflow reproduce he2025 fig5 --size tiny").waitFor();
  await page.getByRole("region", { name: "Printed numbers" }).first().getByText("0.0441").waitFor();
});

test("results on this machine are shown", async ({ page, made }) => {
  await page.goto(`${made}/#papers`);
  await page.getByText("All is well with figure one.").waitFor();
  await until(() => page.locator(".artefact img").evaluate((image) => image.complete && image.naturalWidth > 100), "the picture");
  await page.getByRole("cell", { name: "0.125" }).waitFor();
  await page.screenshot({ path: join(SHOTS, "papers-made.png"), fullPage: false });
});

test("the keyboard reaches everything", async ({ page, address }) => {
  await clusters(page, address);
  const reached = [];
  for (let i = 0; i < 40; i++) {
    await page.keyboard.press("Tab");
    reached.push(await page.evaluate(() => document.activeElement?.getAttribute("aria-label") || document.activeElement?.textContent?.trim()));
  }
  for (const name of ["Cluster", "Papers", "Dark colours", "Choose a CSV file", "Signal to noise", "Play", "Layer", "Save labels", "Fit on this machine"])
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
  const light = await paper();
  await page.getByRole("button", { name: "Dark colours" }).click();
  assert.notEqual(await paper(), light);
  await page.reload();
  await page.getByRole("button", { name: "Light colours" }).click();
  assert.equal(await paper(), light);
});

for (const width of [1280, 390])
  for (const dark of [false, true])
    test(`every view fits ${width} pixels, ${dark ? "dark" : "light"}`, async ({ page, address }) => {
      for (const view of ["cluster", "dynamics", "circuits", "papers"]) {
        await page.goto(`${address}/#${view}`);
        await page.locator(".panel canvas, details").first().waitFor();
        if (view === "cluster") await flowed(page);
        await page.waitForTimeout(view === "dynamics" ? 2500 : 900);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= width, `${view} is ${wide} pixels wide`);
        await page.screenshot({ path: join(SHOTS, `${view}-${width}-${dark ? "dark" : "light"}.png`), fullPage: true });
      }
    });

/** A folder of results as `measureflow reproduce` leaves them. */
function results() {
  const folder = mkdtempSync(join(tmpdir(), "measureflow-results-"));
  const home = join(folder, "castin2025", "fig1");
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, "findings.md"), "Castin 2025, Figure 1: covariances\n\nAll is well with figure one.\n");
  writeFileSync(join(home, "limits.csv"), "run,rank,value\n0,1,0.125\n1,1,\n");
  copyFileSync(join(ROOT, "docs", "images", "demo.png"), join(home, "fig1.png"));
  return folder;
}

const wanted = new RegExp(process.argv[2] ?? "");
const folder = results();
const empty = mkdtempSync(join(tmpdir(), "measureflow-empty-"));
const [plain, withResults] = await Promise.all([serve("--results", empty), serve("--results", folder)]);
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
  const { page, faults, close } = await open(await contextOf(size), [plain.address, withResults.address]);
  const began = Date.now();
  try {
    await run({ page, address: plain.address, made: withResults.address });
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
withResults.close();
for (const one of [folder, empty]) rmSync(one, { recursive: true, force: true });
console.log(failed ? `${failed} browser tests failed` : "Every browser test passed; screenshots are in out/screenshots.");
process.exitCode = failed ? 1 : 0;
