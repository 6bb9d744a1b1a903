// The picture of the page in the README: node tests/browser/picture.mjs writes docs/images/page.png.
import { join } from "node:path";
import { browse, ROOT, serve, watch } from "./tools/harness.mjs";
import { answered, drawn, until } from "./tools/support.mjs";

const STATE = "data=penguins&columns=bill_length_mm|bill_depth_mm|flipper_length_mm|body_mass_g&x=flipper_length_mm&y=bill_length_mm&layer=2.6";

const server = await serve();
const browser = await browse();
try {
  const page = await (await watch(browser, { width: 1180, height: 850 })).newPage();
  await page.goto(`${server.address}/#cluster?${STATE}`);
  await answered(page);
  await until(async () => /finer/.test(await page.locator(".dial-words").innerText()), "the curve of the dial", 300);
  await page.addStyleTag({ content: ".list [role=status] { visibility: hidden }" }); // how long the fit took tells of the machine
  await drawn(page);
  await page.screenshot({ path: join(ROOT, "docs", "images", "page.png") });
  console.log("Wrote docs/images/page.png");
} finally {
  await browser.close();
  server.close();
}
