// Attention as a velocity field.
import assert from "node:assert/strict";
import { shoot } from "../tools/harness.mjs";
import { drawn, move, pixels, test, until } from "../tools/support.mjs";

const clock = async (page) => Number(await page.getByRole("slider", { name: "Time" }).inputValue());

test("every attention flows, has a sentence of its own, and its paths differ", async ({ page, address }) => {
  await page.goto(`${address}/#dynamics`);
  const attention = page.getByRole("combobox", { name: "Attention" });
  const [seen, said] = [new Set(), new Set()];
  await page.getByRole("button", { name: "Pause" }).click();
  for (const name of await attention.locator("option").evaluateAll((options) => options.map((option) => option.value))) {
    await attention.selectOption(name);
    assert.equal(await clock(page), 0);
    for (let i = 0; i < 3; i++) await page.getByRole("button", { name: "Step" }).click();
    await until(async () => (await clock(page)) > 0, `${name} to flow`); // a step is drawn with the next frame
    await page.waitForTimeout(100);
    seen.add(await pixels(page, "Paths of covariances in the cone"));
    said.add(await page.locator(".says").innerText());
  }
  assert.equal(seen.size, 8);
  assert.equal(said.size, 8);
});

test("after a blow-up another attention plays", async ({ page, address }) => {
  await page.goto(`${address}/#dynamics`);
  await page.locator('[data-preset="blowup"]').click();
  await page.getByText("The tokens left for infinity").waitFor();
  assert.match(await page.locator(".says").innerText(), /every Gaussian grows without limit/);
  await page.getByRole("combobox", { name: "Attention" }).selectOption("l2");
  await until(async () => (await clock(page)) > 0.3, "the next flow");
});

test("presets, arrows, a scrubber, two attentions side by side, and all of it in the address", async ({ page, address }) => {
  await page.goto(`${address}/#dynamics`);
  const lit = () => page.locator('[data-preset][aria-pressed="true"]').evaluateAll((all) => all.map((one) => one.dataset.preset));
  for (const preset of ["collapse", "rotate", "directions", "shift"]) {
    await page.locator(`[data-preset="${preset}"]`).click();
    assert.deepEqual(await lit(), [preset]);
  }
  await page.getByRole("combobox", { name: "Compare with" }).selectOption("softmax");
  assert.deepEqual(await lit(), [], "two attentions are no preset");
  await until(async () => (await clock(page)) > 1, "some flow");
  await page.getByRole("button", { name: "Pause" }).click();
  assert.equal(await page.locator(".worlds canvas").count(), 2);
  const end = await page.locator(".worlds canvas").first().evaluate((canvas) => canvas.toDataURL());
  await page.getByLabel("Show the field as arrows").uncheck();
  await page.waitForTimeout(100);
  assert.notEqual(await page.locator(".worlds canvas").first().evaluate((canvas) => canvas.toDataURL()), end);
  await page.getByLabel("Show the field as arrows").check();
  await page.waitForTimeout(100);
  assert.equal(await page.locator(".worlds canvas").first().evaluate((canvas) => canvas.toDataURL()), end);
  await move(page.getByRole("slider", { name: "Time" }), 0.4);
  await page.waitForTimeout(100);
  assert.notEqual(await page.locator(".worlds canvas").first().evaluate((canvas) => canvas.toDataURL()), end);
  await shoot(page, "dynamics-two");
  const url = page.url();
  assert.match(url, /scores=sharp/);
  await page.goto("about:blank");
  await page.goto(url);
  await page.locator(".worlds canvas").nth(1).waitFor();
  assert.equal(await page.getByRole("combobox", { name: "Compare with" }).inputValue(), "softmax");
});

test("a token under the pointer shows what it attends to", async ({ page, address }) => {
  await page.goto(`${address}/#dynamics`);
  await until(async () => (await clock(page)) > 0.2, "some flow");
  await page.getByRole("button", { name: "Pause" }).click();
  const canvas = page.locator(".worlds canvas").first();
  const seen = async () => {
    await drawn(page);
    return canvas.evaluate((one) => one.toDataURL());
  };
  await page.mouse.move(2, 2);
  const before = await seen();
  const { x, y, width, height } = await canvas.boundingBox();
  let lines = before;
  for (let a = 0.3 * width; a < 0.7 * width && lines === before; a += 17)
    for (let b = 0.2 * height; b < 0.8 * height && lines === before; b += 17) {
      await page.mouse.move(x + a, y + b);
      lines = await seen();
    }
  assert.notEqual(lines, before, "no lines from any token");
  await shoot(page, "dynamics-hover");
  await page.mouse.move(2, 2);
  assert.equal(await seen(), before);
});

test("the server flows the cloud that was chosen, and can be told to stop", async ({ page, address }) => {
  await page.goto(`${address}/#dynamics`);
  await page.getByRole("combobox", { name: "Starting cloud" }).selectOption("ring");
  const sent = page.waitForRequest((request) => request.url().endsWith("/api/simulate") && request.method() === "POST");
  await page.getByRole("button", { name: "Run it" }).click();
  const { points } = (await sent).postDataJSON();
  assert.equal(points.length, 1000);
  for (const [x, y] of points) assert.ok(Math.abs(Math.hypot(x, y) - 1.6) < 0.6, "a point off the ring");
  await page.locator('[data-job="done"]').waitFor({ timeout: 120_000 });
  await page.getByText("This is the end of the run.").waitFor({ timeout: 60_000 });
  await page.getByRole("combobox", { name: "Attention" }).selectOption("sinkhorn");
  await page.getByRole("button", { name: "Run it" }).click();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.locator('[data-job="cancelled"]').waitFor();
});

test("a larger run says how it ended, in the server's words", async ({ page, address }) => {
  await page.goto(`${address}/#dynamics`);
  await page.locator('[data-preset="blowup"]').click();
  const said = page.locator('[data-job="done"]');
  await page.getByRole("button", { name: "Run it" }).click();
  await said.waitFor({ timeout: 300_000 }); // as long as the library is waited for elsewhere
  assert.match(await said.innerText(), /^Blow-up in finite time, at t = 0\.\d+\. Shown above: \d+ states/);
  const result = { times: [0, 1], points: [[[0, 0], [1, 1], [0, 1], [1, 0]], [[0, 0], [2, 2], [0, 2], [2, 0]]], ending: "It outgrew the limit: divergence in infinite time." };
  await page.route("**/api/simulate/*", (route) => route.fulfill({ json: { id: "0", state: "done", progress: 1, result } }));
  await page.getByRole("button", { name: "Run it" }).click();
  await until(async () => (await said.innerText()) === `${result.ending} Shown above: 2 states, up to t = 1.00.`, "how it ended");
});

test("nothing jumps from preset to preset", async ({ page, address }) => {
  await page.goto(`${address}/#dynamics`);
  const tops = [];
  for (const preset of ["shift", "collapse", "blowup", "rotate", "directions"]) {
    await page.locator(`[data-preset="${preset}"]`).click();
    tops.push((await page.locator(".panel.stage").boundingBox()).y + (await page.evaluate(() => scrollY)));
  }
  assert.equal(new Set(tops).size, 1, `the picture is at ${tops.join(", ")}`);
});
