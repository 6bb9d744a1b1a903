// The shelf of papers.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT, SHOTS } from "./harness.mjs";
import { test, until } from "./support.mjs";

test("the shelf has thumbnails, the verdict first, printed numbers, a command to copy", async ({ page, address }) => {
  await page.goto(`${address}/#papers`);
  const fig5 = page.locator('[data-artefact="he2025-fig5"]');
  await fig5.scrollIntoViewIfNeeded();
  await until(() => fig5.locator("summary img").evaluate((image) => image.complete && image.naturalWidth > 100), "the thumbnail");
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
  await page.screenshot({ path: join(SHOTS, "papers-verdicts.png") });
});

test("Run makes a figure here", async ({ page, address }) => {
  await page.goto(`${address}/#papers`);
  const fig = page.locator('[data-artefact="castin2025-fig4"]');
  await fig.locator("summary").click();
  await fig.getByRole("button", { name: "Run fig4" }).click();
  await fig.locator("summary .badge.made").waitFor({ timeout: 240_000 });
  await fig.getByText("As made on this machine.").waitFor();
});

test("results on this machine are shown, ten rows of a table with the whole to download", async ({ page, made }) => {
  await page.goto(`${await made()}/#papers`);
  const fig = page.locator('[data-artefact="castin2025-fig1"]');
  await fig.locator("summary").click();
  await fig.locator(".verdict-line").getByText("all is well with figure one.").waitFor();
  await until(() => fig.locator(".artefact-body img").first().evaluate((image) => image.complete && image.naturalWidth > 100), "the picture");
  await page.getByRole("cell", { name: "0.125" }).waitFor();
  await fig.getByText("The first 10 of 12 rows.").waitFor();
  const [file] = await Promise.all([page.waitForEvent("download"), fig.getByRole("link", { name: "Download limits.csv" }).click()]);
  assert.equal(readFileSync(await file.path(), "utf8").trim().split("\n").length, 13);
  await page.screenshot({ path: join(SHOTS, "papers-made.png"), fullPage: false });
});
