// The picture of a clustering: layers, pointer, columns, colours, files to keep.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { shoot, SHOTS } from "../tools/harness.mjs";
import { answered, clusters, groups, k, library, move, opened, pixels, still, test, told, until, upload } from "../tools/support.mjs";

test("plays layer by layer, by button, step and space, in the same colours throughout", async ({ page, address }) => {
  await clusters(page, address);
  await still(page);
  const layer = page.getByRole("slider", { name: "Layer" });
  const last = Number(await layer.getAttribute("max"));
  await page.getByRole("button", { name: "One layer back" }).click();
  assert.equal(Number(await layer.inputValue()), last - 1);
  const end = await pixels(page, "Rows and tokens");
  const list = await page.locator(".cards").innerHTML();
  await move(layer, 0);
  await page.waitForTimeout(100);
  assert.notEqual(await pixels(page, "Rows and tokens"), end);
  assert.equal(await page.locator(".cards").innerHTML(), list, "the clusters and their colours do not change with the layer");
  const height = (await page.locator(".stage").boundingBox()).height;
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press(" ");
  const halfway = new Set();
  await until(async () => {
    halfway.add(await layer.inputValue());
    return Number(await layer.inputValue()) === last;
  }, "the last layer");
  assert.ok([...halfway].some((value) => Number(value) % 1), "the motion goes between layers");
  assert.equal((await page.locator(".stage").boundingBox()).height, height, "the panel keeps its height");
});

test("hover tells the row, its probability and its rival; a click isolates its cluster", async ({ page, address }) => {
  await clusters(page, address);
  await upload(page, "groups.csv", groups(300));
  await opened(page, "groups.csv");
  await still(page);
  const canvas = page.locator('canvas[aria-label="Rows and tokens"]');
  const { width, height } = await canvas.boundingBox();
  let found = null;
  for (let x = 60; x < width && !found; x += 12)
    for (let y = height - 150; y < height - 30 && !found; y += 12) {
      await canvas.hover({ position: { x, y } });
      if (await page.locator(".tip").isVisible()) found = { x, y };
    }
  assert.match(await page.locator(".tip").innerText(), /row \d+[\s\S]*cluster \d, probability [\d.]+[\s\S]*next most likely: \d[\s\S]*width/);
  const [, row, width_] = /row (\d+)[\s\S]*width\s+(-?[\d.]+)/.exec(await page.locator(".tip").innerText());
  const line = groups(300).split("\n")[Number(row)]; // rows are counted from 1, below the line of names
  assert.ok(Math.abs(Number(line.split(",")[0]) - Number(width_)) <= 0.005 * Math.max(1, Math.abs(Number(width_))), `${line}: ${width_}`);
  await shoot(page, "cluster-hover");
  await canvas.click({ position: found });
  assert.equal(await page.locator('.card[aria-pressed="true"]').count(), 1);
  await page.locator('.card[aria-pressed="true"]').click();
  assert.equal(await page.locator('.card[aria-pressed="true"]').count(), 0);
});

test("cards, heat map and typical rows tell the clusters apart as the library does", async ({ page, address }) => {
  await clusters(page, address);
  await upload(page, "groups.csv", groups(150));
  await opened(page, "groups.csv");
  const { clusters: found, columns, centres, typical } = await told(page);
  const traits = found.map((one) => one.traits.map((trait) => trait.replace(/ \(.*\)$/, "")).join(" · ") || "near the mean in every column");
  assert.deepEqual(await page.locator(".card .card-traits").allTextContents(), traits);
  const map = page.getByRole("region", { name: "Cluster by column" });
  assert.deepEqual(await map.locator("thead th").allTextContents(), ["", ...columns, "a typical row"]);
  const rows = await map.locator("tbody tr").evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
  rows.forEach(([name, ...cells], i) => {
    assert.equal(Number(name), i);
    centres[i].forEach((centre, j) => assert.ok(Math.abs(Number(cells[j]) - centre) <= 0.01 * Math.max(1, Math.abs(centre)), `${cells[j]}, not ${centre}`));
    assert.ok(cells.at(-1).startsWith(`row ${typical[i][0] + 1}: `), cells.at(-1));
  });
  assert.equal(rows.length, found.length);
});

test("any columns: search, all, none, beyond the twenty-fourth, and axes with whole names", async ({ page, address }) => {
  await clusters(page, address);
  const names = Array.from({ length: 30 }, (_, j) => `measure_${j}`);
  const rows = groups(60).trim().split("\n").slice(1);
  await upload(page, "wide.csv", `${names.join()}\n${rows.map((row, i) => names.map((_, j) => (Number(row.split(",")[j % 2]) + ((i * 7 + j * 13) % 10) / 40).toFixed(3)).join()).join("\n")}\n`);
  await opened(page, "wide.csv");
  await page.getByText("Columns, axes and model").click();
  assert.match(await page.locator("legend").innerText(), /30 of 30/);
  await page.getByRole("searchbox", { name: "Search columns" }).fill("_29");
  assert.equal(await page.locator(".ticks .tick:visible").count(), 1);
  await page.getByRole("checkbox", { name: "measure_29" }).uncheck();
  await answered(page);
  assert.match(await page.locator("legend").innerText(), /29 of 30/);
  await page.getByRole("button", { name: "None", exact: true }).click();
  await answered(page);
  assert.match(await page.locator("legend").innerText(), /1 of 30/);
  await shoot(page, "cluster-one-column", { fullPage: true });
  await page.getByRole("button", { name: "All", exact: true }).click();
  await answered(page);
  const across = page.getByRole("combobox", { name: "Across" });
  assert.deepEqual((await across.locator("option").allInnerTexts()).slice(0, 4), ["principal 1", "principal 2", "principal 3", "measure_0"]);
  const cut = await across.evaluate((select) => {
    const pen = new OffscreenCanvas(1, 1).getContext("2d");
    pen.font = getComputedStyle(select).font;
    return [...select.options].filter((option) => pen.measureText(option.text).width > select.clientWidth - 28).map((option) => option.text);
  });
  assert.deepEqual(cut, [], "names that are cut off");
  const before = await pixels(page, "Rows and tokens");
  await across.selectOption("measure_3");
  await until(async () => (await pixels(page, "Rows and tokens")) !== before, "other axes");
  assert.match(page.url(), /x=measure_3/);
});

test("the address holds the whole state, and settings survive a visit to another view", async ({ page, address }) => {
  const state = "?data=penguins&columns=bill_length_mm%7Cbody_mass_g&x=body_mass_g&db=8&k=4&only=1&layer=2.5";
  await clusters(page, address, state);
  const same = async () => {
    await answered(page);
    assert.equal(await k(page), 4);
    assert.equal(await page.getByRole("slider", { name: "Signal to noise" }).inputValue(), "8");
    assert.equal(await page.getByRole("slider", { name: "Layer" }).inputValue(), "2.5");
    assert.equal(await page.getByRole("combobox", { name: "Across", includeHidden: true }).inputValue(), "body_mass_g");
    assert.equal(await page.locator('.card[aria-pressed="true"]').getAttribute("data-cluster"), "1");
    for (const part of ["data=penguins", "db=8", "k=4", "only=1", "layer=2.5", "x=body_mass_g"]) assert.ok(page.url().includes(part), `${part} in ${page.url()}`);
  };
  await same();
  await page.getByRole("link", { name: "Circuits" }).click();
  await page.getByRole("heading", { name: /k.means/ }).first().waitFor();
  await page.getByRole("link", { name: "Cluster" }).click();
  await same();
});

test("a far row does not flatten the picture, nor what tells the clusters apart", async ({ page, address }) => {
  await clusters(page, address);
  await upload(page, "far.csv", groups(200) + "5000,5000\n");
  await opened(page, "far.csv");
  await page.locator(".notes").getByText("1 row lies outside the picture").waitFor();
  await still(page);
  await shoot(page, "cluster-far");
  const { clusters: found, outliers } = await told(page);
  if (!outliers.includes(200)) return; // the library counts it among its clusters
  assert.ok(found.filter(({ rows }) => rows > 50).every(({ traits }) => traits.length), "clusters that differ in nothing");
});

test("more than ten clusters have colours of their own", async ({ page, address }) => {
  await clusters(page, address);
  await upload(page, "many.csv", groups(480, Array.from({ length: 16 }, (_, i) => [12 * (i % 4), 12 * Math.floor(i / 4)])));
  await opened(page, "many.csv");
  await page.getByText("Columns, axes and model").click();
  await page.getByRole("spinbutton", { name: "Number of clusters" }).fill("16");
  await page.keyboard.press("Enter");
  await until(async () => (await page.locator(".card").count()) === 16, "sixteen clusters");
  assert.equal(await k(page), 16);
  const colours = await page.locator(".card .disc").evaluateAll((discs) => discs.map((disc) => disc.style.background));
  assert.equal(new Set(colours).size, 16);
});

test("saves labels and pictures", async ({ page, address }) => {
  await clusters(page, address);
  const words = "name,x,y\n" + Array.from({ length: 40 }, (_, i) => `=${i},${i % 2 ? 9 : 0}.${i},${(i * 7) % 11}`).join("\n");
  await upload(page, "words.csv", words);
  await opened(page, "words.csv");
  const save = async (name) => (await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name }).click()]))[0];
  const text = readFileSync(await (await save("Save labels")).path(), "utf8");
  const [header, first] = text.split("\n");
  assert.equal(header, "name,x,y,cluster,probability");
  assert.match(first, /^'=0,0\.0,0,\d+,[\d.]+$/, "a cell that looks like a formula is defused");
  assert.equal(text.trim().split("\n").length, 41);
  const png = readFileSync(await (await save("Save picture as PNG")).path());
  assert.equal(png.subarray(1, 4).toString(), "PNG");
  assert.equal(png.readUInt32BE(16), 1920);
  const svg = readFileSync(await (await save("Save picture as SVG")).path(), "utf8");
  assert.match(svg, /^<svg[\s\S]*<\/svg>\s*$/);
  assert.ok(svg.includes(`>words.csv: ${(await library(address, words)).headline}<`), "the title is the library's own");
  assert.equal((svg.match(/<g[ >]/g) ?? []).length, (svg.match(/<\/g>/g) ?? []).length);
  writeFileSync(join(SHOTS, "clusters.svg"), svg);
});
