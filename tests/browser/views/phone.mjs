// What a finger does on a phone, view by view.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { clusters, groups, k, library, move, once, opened, still, until, upload } from "../tools/support.mjs";

/** Nothing sticks out to the side, whatever was opened. */
async function fits(page) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 390, `${wide} pixels wide`);
}

/** Whether one part stands above another. */
async function above(page, first, second) {
  const [a, b] = await Promise.all([first, second].map((part) => part.boundingBox()));
  assert.ok(a.y + a.height <= b.y + 1, "the order of the parts");
}

for (const theme of ["light", "dark"]) {
  once(`a phone clusters a file, at 390 pixels, ${theme}`, async ({ page, address }) => {
    await clusters(page, address);
    await upload(page, "groups.csv", groups(150));
    await opened(page, "groups.csv");
    await still(page);
    await above(page, page.locator(".verdict"), page.locator('canvas[aria-label="Rows and tokens"]'));
    await page.getByRole("button", { name: "One layer back" }).click();
    await page.locator(".card").first().click();
    assert.equal(await page.locator('.card[aria-pressed="true"]').count(), 1);
    await page.getByText("Columns, axes and model").click();
    await page.getByRole("combobox", { name: "Across" }).selectOption("height");
    await page.getByRole("spinbutton", { name: "Number of clusters" }).fill("5");
    await page.keyboard.press("Enter");
    await until(async () => (await k(page)) === 5, "five clusters");
    await move(page.getByRole("slider", { name: "Signal to noise" }), 2);
    await until(async () => /db=2/.test(page.url()), "the dial in the address");
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save labels" }).click()]);
    const labels = readFileSync(await file.path(), "utf8").trim().split("\n").slice(1).map((line) => Number(line.split(",").at(-2)));
    assert.deepEqual(labels, (await library(address, groups(150), "n_clusters=5&snr_db=2")).labels);
    await fits(page);
  });

  once(`a phone plays attention, steps through a circuit and reads a paper, at 390 pixels, ${theme}`, async ({ page, address }) => {
    await page.goto(`${address}/#dynamics`);
    await page.locator('[data-preset="collapse"]').click();
    await above(page, page.locator(".stage"), page.getByRole("combobox", { name: "Attention" }));
    await above(page, page.getByRole("combobox", { name: "Attention" }), page.locator('canvas[aria-label="Paths of covariances in the cone"]'));
    await page.getByRole("combobox", { name: "Compare with" }).selectOption("softmax");
    assert.equal(await page.locator(".worlds canvas").count(), 2);
    await fits(page);
    await page.getByRole("link", { name: "Circuits" }).click();
    await page.getByRole("button", { name: "Next head" }).click();
    assert.equal(await page.locator('.pipeline [aria-pressed="true"] strong').innerText(), "Assign");
    await above(page, page.locator('canvas[aria-label="Points and centres"]'), page.getByRole("combobox", { name: "Algorithm" }));
    await fits(page);
    await page.getByRole("link", { name: "Papers" }).click();
    for (const name of ["zimin2025-table1", "castin2025-fig1"]) {
      await page.locator(`[data-artefact="${name}"] summary`).click();
      await page.locator(`[data-artefact="${name}"]`).getByText("Found.").waitFor();
    }
    await fits(page);
  });
}
