// The shelf of papers.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT, shoot } from "../tools/harness.mjs";
import { everywhere, once, test, until } from "../tools/support.mjs";

test("the shelf has pictures, the verdict first, printed numbers, a command to copy", async ({ page, address }) => {
  await page.goto(`${address}/#papers`);
  const fig5 = page.locator('[data-artefact="he2025-fig5"]');
  await fig5.scrollIntoViewIfNeeded();
  await until(() => fig5.locator("summary img").evaluate((image) => image.complete && image.naturalWidth > 100), "the picture");
  await fig5.locator("summary").click();
  await fig5.getByText("Found.").waitFor();
  assert.match(await fig5.locator(".artefact-body p").first().innerText(), /^Found\./);
  await fig5.getByText("measureflow reproduce he2025 fig5 --size tiny").waitFor();
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await fig5.getByRole("button", { name: "Copy the command" }).click();
  await fig5.getByText("copied").waitFor();
  const table1 = page.locator('[data-artefact="zimin2025-table1"]');
  await table1.locator("summary").click();
  await table1.getByRole("region", { name: "Printed numbers" }).getByText("0.0441").waitFor();
});

test("verdicts stand on the cards, and print stands beside what was found", async ({ page, address }) => {
  const shown = JSON.parse(readFileSync(join(ROOT, "src/measureflow/reproduce/published/shown.json"), "utf8"));
  const runs = Object.entries(shown).flatMap(([paper, all]) => Object.entries(all).map(([name, run]) => [`${paper}-${name}`, run.verdicts]));
  const [id, verdicts] = runs.find(([, all]) => all.length > 1);
  await page.goto(`${address}/#papers`);
  const card = page.locator(`[data-artefact="${id}"]`);
  const held = verdicts.filter((one) => one.verdict === "holds").length;
  const same = new Set(verdicts.map((one) => one.verdict)).size === 1;
  assert.equal(await card.locator("summary .badge").innerText(), same ? verdicts[0].verdict : `${held} of ${verdicts.length} hold`);
  await card.locator("summary").click();
  const rows = card.getByRole("region", { name: "Verdicts" }).locator("tbody tr");
  await rows.first().waitFor();
  const cells = await rows.evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
  assert.deepEqual(cells, verdicts.map(({ claim, printed, ours, verdict }) => [verdict, claim, printed, ours]));
  await shoot(page, "papers-verdicts");
});

everywhere("an open card shows its whole pictures and its table, as an address can ask for", async ({ page, address, width, theme }) => {
  await page.goto(`${address}/#papers?open=zimin2025-table1`);
  const card = page.locator('[data-artefact="zimin2025-table1"]');
  const image = card.locator(".artefact-body img");
  await until(() => image.first().evaluate((one) => one.complete && one.naturalWidth === 1000), "the whole picture");
  assert.ok((await image.first().boundingBox()).width > Math.min(900, width - 100), "as wide as there is room");
  assert.match(await card.locator("a.figure").first().getAttribute("href"), /table1\.png$/);
  const rows = card.getByRole("region", { name: "zimin2025/table1/table1.csv" }).locator("tbody tr");
  await rows.first().waitFor();
  const shipped = readFileSync(join(ROOT, "src/measureflow/explorer/static/papers/zimin2025/table1/table1.csv"), "utf8").trim().split("\n");
  assert.equal(await rows.count(), Math.min(10, shipped.length - 1));
  await card.getByText("In brackets what is printed.").waitFor();
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width);
  await shoot(page, "papers-open");
  await card.locator("summary").click();
  await until(async () => !page.url().includes("open="), "a closed card in the address");
  const two = page.locator('[data-artefact="castin2025-fig7"]');
  await two.locator("summary").click();
  await two.getByRole("region", { name: "Verdicts" }).waitFor();
  assert.equal(await two.locator(".artefact-body img").count(), 2, "every picture of a figure");
  assert.match(page.url(), /open=castin2025-fig7/);
});

everywhere("claims are chosen by their verdict", async ({ page, address }) => {
  const shown = JSON.parse(readFileSync(join(ROOT, "src/measureflow/reproduce/published/shown.json"), "utf8"));
  const runs = Object.values(shown).flatMap((all) => Object.values(all));
  const count = (verdict) => runs.flatMap((run) => run.verdicts).filter((one) => one.verdict === verdict).length;
  const without = runs.filter((run) => !run.verdicts.some((one) => one.verdict === "corrected")).length;
  await page.goto(`${address}/#papers`);
  const chosen = page.getByRole("group", { name: "Claims by verdict" });
  await chosen.getByRole("button", { name: `${count("holds")} hold` }).waitFor();
  await chosen.getByRole("button", { name: `${count("corrected")} corrected` }).click();
  const aside = () => page.locator("details.artefact.aside:has(.card-found)").count();
  assert.equal(await aside(), without);
  assert.match(page.url(), /with=corrected/);
  await page.reload();
  await until(async () => (await aside()) === without, "the same claims again");
  await chosen.getByRole("button", { name: "corrected" }).click();
  assert.equal(await aside(), 0);
});

once("cards of tables show numbers, not a picture of them", async ({ page, address }) => {
  await page.goto(`${address}/#papers`);
  const face = page.locator('[data-artefact="zimin2025-table2"] .face');
  await face.getByRole("columnheader", { name: "High SNR (printed)" }).waitFor();
  assert.ok((await face.locator("tbody tr").count()) > 4);
  const cut = await page.locator(".face table").evaluateAll((all) => all.filter((one) => one.scrollWidth > one.parentElement.clientWidth).length);
  assert.equal(cut, 0, "tables that are cut off at the side");
});

once("Run makes a figure here", async ({ page, address }) => {
  await page.goto(`${address}/#papers`);
  const fig = page.locator('[data-artefact="castin2025-fig4"]');
  await fig.locator("summary").click();
  await fig.getByRole("button", { name: "Run fig4" }).click();
  await fig.locator("summary .badge.made").waitFor({ timeout: 240_000 });
  await fig.getByText("As made on this machine.").waitFor();
});

once("results on this machine are shown, ten rows of a table with the whole to download", async ({ page, made }) => {
  await page.goto(`${await made()}/#papers`);
  const fig = page.locator('[data-artefact="castin2025-fig1"]');
  await fig.locator("summary").click();
  await fig.locator(".verdict-line").getByText("all is well with figure one.").waitFor();
  await until(() => fig.locator(".artefact-body img").first().evaluate((image) => image.complete && image.naturalWidth > 100), "the picture");
  await page.getByRole("cell", { name: "0.125" }).waitFor();
  await fig.getByText("The first 10 of 12 rows.").waitFor();
  const [file] = await Promise.all([page.waitForEvent("download"), fig.getByRole("link", { name: "Download limits.csv" }).click()]);
  assert.equal(readFileSync(await file.path(), "utf8").trim().split("\n").length, 13);
  await shoot(page, "papers-made");
});

once("what was found is told sentence by sentence, and nothing of it is lost", async ({ page, address }) => {
  const shelf = await (await fetch(`${address}/api/papers`)).json();
  const all = shelf.flatMap(({ paper, artefacts }) => artefacts.map(({ name, found }) => [`${paper}-${name}`, found]));
  const [id, found] = all.reduce((a, b) => (b[1].length > a[1].length ? b : a));
  await page.goto(`${address}/#papers?open=${id}`);
  const list = page.locator(`[data-artefact="${id}"] .verdict-list li`);
  await list.first().waitFor();
  const told = await list.allTextContents();
  assert.ok(told.length > 2);
  for (const one of told.slice(0, -1)) assert.match(one, /[.?!]$/);
  assert.equal(told.join(" ").toLowerCase(), found.replaceAll(/\s+/g, " ").trim().toLowerCase());
});
