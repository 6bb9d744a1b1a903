// The one-page report of `measureflow cluster`, on a screen and on a phone.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { pythonPath, ROOT, shoot } from "../tools/harness.mjs";
import { once } from "../tools/support.mjs";

/** Wine, with thirteen columns of long names, and what the command writes about it. */
function report() {
  const folder = mkdtempSync(join(tmpdir(), "measureflow-report-"));
  const table = "from sklearn.datasets import load_wine; import sys; load_wine(as_frame=True).data.to_csv(sys.argv[1], index=False)";
  execFileSync(pythonPath(), ["-c", table, join(folder, "wine.csv")], { cwd: ROOT });
  execFileSync(pythonPath(), ["-m", "measureflow.cli", "cluster", join(folder, "wine.csv"), "--out", folder, "--stability", "2"], { cwd: ROOT });
  return folder;
}

once("the report of a table with many columns fits a screen and a phone, light and dark", async ({ page }) => {
  const folder = report();
  try {
    for (const [width, colorScheme] of [1280, 390].flatMap((wide) => ["light", "dark"].map((theme) => [wide, theme]))) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      await page.goto(pathToFileURL(join(folder, "report.html")).href);
      assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width, `wider than ${width} pixels`);
      const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      assert.equal(paper === "rgb(255, 255, 255)", colorScheme === "light");
      assert.equal(await page.locator(".pictures img").count(), 4);
      assert.equal(await page.locator(".pictures figcaption strong").count(), 4);
      assert.ok((await page.locator(".sure li").count()) > 2, "how sure it is, a sentence each");
      if (width > 500) await page.getByRole("columnheader", { name: "comes back in" }).waitFor();
      else {
        assert.equal(await page.getByRole("columnheader", { name: "comes back in" }).isVisible(), false); // each number has its name beside it
        const said = await page.locator(".words td[data-name]").evaluateAll((all) => all.slice(0, 4).map((one) => ["::before", "::after"].map((part) => getComputedStyle(one, part).content)));
        assert.deepEqual(said.slice(1), [["none", '" rows"'], ["none", "none"], ['"came back in "', "none"]]);
      }
      await page.locator(".foot").getByText("A cluster comes back if a fit to 80% of the rows").waitFor();
      assert.ok((await page.locator(".heat tr").count()) > 2);
      await shoot(page, "report", { fullPage: true });
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});
