// A walk of five minutes by someone who knows only the README: every door opens, every button answers, nothing is a dead end.
import assert from "node:assert/strict";
import { shoot } from "../tools/harness.mjs";
import { answered, clusters, everywhere, groups, k, library, move, once, opened, still, test, until, upload } from "../tools/support.mjs";

test("a walk through all views, and back to the table as it was left", async ({ page, address }) => {
  await clusters(page, address);
  await upload(page, "mine.csv", groups(150));
  await opened(page, "mine.csv");
  await page.locator(".verdict [data-stable]").waitFor({ timeout: 300_000 }); // how sure it is, without being asked
  await move(page.getByRole("slider", { name: "Signal to noise" }), 20);
  const finer = (await library(address, groups(150), "snr_db=20")).n_clusters;
  await until(async () => (await k(page)) === finer, "a finer answer", 120);
  await page.locator(".card").nth(1).click();
  const left = page.url();
  await page.getByRole("link", { name: "Dynamics" }).click();
  await page.locator('[data-preset="blowup"]').click();
  await page.locator(".says").getByText(/\w/).first().waitFor();
  await page.getByRole("link", { name: "Circuits" }).click();
  await page.getByRole("button", { name: "Play" }).click();
  await until(async () => (await page.locator('.pipeline [aria-pressed="true"] strong').innerText()) !== "Erase", "the next head");
  await page.getByRole("link", { name: "Papers" }).click();
  await page.locator('[data-artefact="castin2025-fig1"] summary').click();
  await page.locator('[data-artefact="castin2025-fig1"]').getByText("Found.").waitFor();
  await page.getByRole("link", { name: "Cluster" }).click();
  await opened(page, "mine.csv");
  await until(() => page.url() === left, "the address as it was left");
  assert.equal(await k(page), finer);
  assert.equal(await page.locator('.card[aria-pressed="true"]').getAttribute("data-cluster"), "1");
});

/** Note everything that changes on the page from now on. */
const stirred = (page) =>
  page.evaluate(() => {
    window.stirs = 0;
    window.stirring ??= new MutationObserver(() => window.stirs++);
    window.stirring.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
  });

/** Press every button that is there or comes to be there, once; the names of those that changed nothing. */
async function pressAll(page) {
  const [seen, dead] = [new Set(), []];
  let saved = 0;
  page.on("download", () => saved++);
  for (;;) {
    const buttons = await page.locator("main button:visible:enabled").all();
    const names = await Promise.all(buttons.map((one) => one.evaluate((b) => b.getAttribute("aria-label") ?? b.textContent).catch(() => null)));
    const at = names.findIndex((name) => name !== null && !seen.has(name));
    if (at < 0) return { seen, dead };
    seen.add(names[at]);
    await page.evaluate(() => [...document.querySelectorAll("main button")].find((one) => one.textContent === "Pause")?.click()); // what plays changes by itself
    await stirred(page);
    const before = saved;
    await buttons[at].click({ timeout: 20_000 });
    await until(async () => saved > before || (await page.evaluate(() => window.stirs)) > 0, "", 30).catch(() => dead.push(names[at]));
  }
}

for (const [view, least] of [["cluster", 12], ["dynamics", 8], ["circuits", 6], ["papers", 4]])
  once(`every button of the ${view} view does something`, async ({ page, address }) => {
    await page.goto(`${address}/#${view}${view === "cluster" ? "?data=faithful" : ""}`);
    if (view === "cluster") await answered(page).then(() => still(page));
    else await page.locator("main button:visible").first().waitFor();
    const { seen, dead } = await pressAll(page);
    assert.deepEqual(dead, []);
    assert.ok(seen.size >= least, `only ${[...seen].join(", ")}`);
  });

everywhere("the first screen says what this is, shows the answer, and has what plays it", async ({ page, address, width }) => {
  await page.setViewportSize({ width, height: width > 500 ? 680 : 844 }); // a laptop's, below its browser's own bars
  await clusters(page, address);
  const inside = async (part) => {
    const { y, height } = await part.boundingBox();
    return y >= 0 && y + height <= (width > 500 ? 680 : 844);
  };
  assert.match(await page.locator("h1").innerText(), /transformer find the clusters/);
  assert.ok(await inside(page.locator("h1")));
  assert.ok(await inside(page.locator(".verdict .big")));
  if (width > 500) assert.ok(await inside(page.getByRole("slider", { name: "Layer" })), "what plays the layers");
  await shoot(page, "walk-first-screen");
});

once("no view is wider than a small phone, at 360 pixels", async ({ page, address }) => {
  await page.setViewportSize({ width: 360, height: 740 });
  for (const view of ["cluster", "dynamics", "circuits", "papers"]) {
    await page.goto(`${address}/#${view}`);
    if (view === "cluster") await page.locator(".verdict [data-stable]").waitFor({ timeout: 300_000 });
    else await page.locator("main button:visible").first().waitFor();
    const wide = await page.evaluate(() => Math.max(document.documentElement.scrollWidth, ...[...document.querySelectorAll("header.top *")].map((one) => one.getBoundingClientRect().right)));
    assert.ok(wide <= 360, `${view} is ${wide} pixels wide`);
  }
});
