// The transformer that is k-means.
import assert from "node:assert/strict";
import { drawn, move, pixels, test, until } from "../tools/support.mjs";

test("a circuit is stepped through head by head, from the first, and plays", async ({ page, address }) => {
  await page.goto(`${address}/#circuits`);
  const lit = page.locator('.pipeline [aria-pressed="true"] strong');
  await lit.waitFor();
  const seen = [await lit.innerText()];
  for (let i = 0; i < 4; i++) {
    await page.getByRole("button", { name: "Next head" }).click();
    seen.push(await lit.innerText());
  }
  assert.deepEqual(seen, ["Erase", "Assign", "Clear", "Update", "Erase"]);
  assert.match(await page.locator(".pipeline button").nth(1).getAttribute("title"), /^Enc-CA/);
  assert.match(await page.getByRole("slider", { name: "Layer" }).getAttribute("aria-valuetext"), /^2 of/);
  await page.getByRole("button", { name: "Play" }).click();
  await until(async () => (await lit.innerText()) === "Assign", "the next head by itself");
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("combobox", { name: "Algorithm" }).selectOption("robust");
  await page.getByRole("heading", { name: "robust k-means" }).waitFor();
  assert.match(page.url(), /algorithm=robust/);
});

test("rows of a circuit's matrices are linked to its points, which can be moved", async ({ page, address }) => {
  await page.goto(`${address}/#circuits?head=enc_ca`);
  const canvas = page.locator('canvas[aria-label="Points and centres"]');
  await canvas.waitFor();
  await page.waitForTimeout(300);
  const before = await pixels(page, "Points and centres");
  await page.locator('canvas[aria-label="Attention"]').hover({ position: { x: 20, y: 30 } });
  await until(async () => (await pixels(page, "Points and centres")) !== before, "the linked point");
  await page.mouse.move(2, 2);
  await until(async () => (await pixels(page, "Points and centres")) === before, "nothing linked");
  const { x, y, width, height } = await canvas.boundingBox();
  let point = null;
  for (let a = 40; a < width - 10 && !point; a += 9)
    for (let b = 10; b < height - 30 && !point; b += 9) {
      const marked = await pixels(page, "Attention");
      await page.mouse.move(x + a, y + b);
      await drawn(page);
      if ((await pixels(page, "Attention")) !== marked) point = [x + a, y + b];
    }
  const asked = page.waitForRequest((request) => request.url().endsWith("/api/circuit") && request.postDataJSON().points !== null);
  await page.mouse.down();
  await page.mouse.move(point[0] + 30, point[1] + 20, { steps: 3 });
  await page.mouse.up();
  assert.equal((await asked).postDataJSON().points.length, 24);
});
