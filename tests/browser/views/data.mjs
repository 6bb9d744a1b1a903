// Where the rows come from: files of every kind, shapes, points drawn by hand.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT, shoot } from "../tools/harness.mjs";
import { answered, clusters, groups, k, move, once, opened, table, test, told, until, upload } from "../tools/support.mjs";

test("rows with gaps are counted, and columns left out have a reason", async ({ page, address }) => {
  await clusters(page, address, "?data=penguins");
  await page.locator(".notes").getByText("344 rows, 2 of them with gaps left out.").waitFor();
  await page.getByText("Columns, axes and model").click();
  await page.getByText("species (text)").waitFor();
});

test("what is odd about a table is said beneath the picture: repeated rows, codes, identifiers, clusters without a gap", async ({ page, address }) => {
  await clusters(page, address);
  const said = async () => (await page.locator(".notes p").allInnerTexts()).join(" ");
  const numbered = `number,width\n${Array.from({ length: 60 }, (_, i) => `${(i * 7919) % 100003},${i % 2 ? 9 : 0}.${i}`).join("\n")}\n`;
  const file = (name) => readFileSync(join(ROOT, "tests/files", name));
  for (const [name, content, words] of [
    ["duplicates.csv", file("duplicates.csv"), /rows repeat another one/],
    ["ids.csv", file("ids.csv"), /Column 'zip' looks like a code, not a quantity, and is left out/],
    ["numbered.csv", numbered, /Column 'number' has another whole number in every row\. Is it an identifier\?/],
  ]) {
    await upload(page, name, content);
    await opened(page, name);
    await until(async () => words.test(await said()), `${words} of ${name}`);
    assert.doesNotMatch(await said(), /\?\./, "a question ends in its mark");
  }
  await page.getByRole("combobox", { name: "A shape" }).selectOption("uniform");
  await page.getByText("Columns, axes and model").click();
  await page.getByRole("spinbutton", { name: "Number of clusters" }).fill("6");
  await page.keyboard.press("Enter");
  await until(async () => (await k(page)) === 6, "six pieces");
  assert.match(await said(), /meet without a gap: they may be pieces of one shape, not groups\./);
  for (const words of (await told(page)).diagnosis) assert.ok((await said()).includes(words), words);
});

test("a file stays, though an example that was asked for before it comes later", async ({ page, address }) => {
  let [asked, release] = [0, null];
  const held = new Promise((done) => (release = done));
  await page.route("**/api/examples/*", async (route) => {
    asked++;
    await held;
    await route.continue();
  });
  await page.goto(`${address}/#cluster?data=faithful`);
  await until(() => asked === 1, "the example to be asked for");
  await upload(page, "mine.csv", groups(90));
  await opened(page, "mine.csv");
  const arrived = page.waitForResponse("**/api/examples/faithful");
  release();
  await (await arrived).finished();
  await page.waitForTimeout(1000);
  assert.equal(await table(page), "mine.csv");
  assert.equal((await told(page)).labels.length, 90);
});

test("points drawn by hand flow at once, and travel in the address", async ({ page, address }) => {
  await clusters(page, address);
  await page.getByRole("button", { name: "Draw points" }).click();
  await opened(page, "Drawn by hand");
  const rows = async () => Number(/(\d+) rows/.exec(await page.locator("[data-table]").innerText())[1]);
  const before = await rows();
  const { x, y, width, height } = await page.locator('canvas[aria-label="Rows and tokens"]').boundingBox();
  await page.mouse.move(x + 0.8 * width, y + 0.75 * height);
  await page.mouse.down();
  for (let i = 0; i < 12; i++) {
    await page.mouse.move(x + 0.8 * width + 3 * i, y + 0.75 * height + (i % 3) * 8);
    await page.waitForTimeout(60);
  }
  await page.mouse.up();
  await until(async () => (await rows()) > before + 5, "more points");
  await answered(page);
  const settled = async () => {  // a busy machine writes the last points a moment after the first ones
    const now = page.url();
    await page.waitForTimeout(800);
    return /data=drawn-\w{60}/.test(now) && now === page.url();
  };
  await until(settled, "the points in the address");
  const [count, url] = [await rows(), page.url()];
  await page.goto("about:blank");
  await page.goto(url);
  await answered(page);
  assert.equal(await rows(), count);
  await shoot(page, "cluster-drawn");
});

test("shapes with a known answer, and their noise", async ({ page, address }) => {
  await clusters(page, address);
  await page.getByRole("combobox", { name: "A shape" }).selectOption("blobs");
  await opened(page, "Four groups");
  await page.getByText("In truth: four round groups.").waitFor();
  const sure = await told(page);
  assert.equal(await k(page), sure.n_clusters);
  await move(page.getByRole("slider", { name: "Noise", exact: true }), 1);
  await until(async () => /noise=1/.test(page.url()), "the noise in the address");
  await answered(page);
  const noisy = await told(page);
  assert.equal(await k(page), noisy.n_clusters);
  assert.notDeepEqual(noisy.centres, sure.centres);
});

test("garbage is refused in plain words, and the page goes on", async ({ page, address }) => {
  await clusters(page, address);
  const trouble = page.locator(".notice.bad");
  page.ignore(/422/);
  for (const [name, content, words] of [
    ["photo.csv", Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 1, 2, 0x80]), "photo.csv cannot be used: the file is neither a table"],
    ["words.csv", "a,b\nx,y\nz,w\nu,v\n", "no column holds numbers to cluster (a: text, b: text)"],
    ["empty.csv", "", "the file is empty"],
    ["broken.parquet", "PAR1 but not really", "cannot be read as Parquet"],
  ]) {
    await upload(page, name, content);
    await trouble.getByText(words).waitFor();
    assert.match(await trouble.innerText(), /[^.]\.$/, "one stop at the end");
  }
  await shoot(page, "cluster-garbage");
  await upload(page, "good.csv", groups(60));
  await opened(page, "good.csv");
  assert.equal(await trouble.count(), 0);
});

test("two rows and one row are tables too", async ({ page, address }) => {
  await clusters(page, address);
  for (const name of ["two-rows.csv", "one-row.csv"]) {
    await upload(page, name, readFileSync(join(ROOT, "tests/files", name)));
    await opened(page, name);
    assert.equal(await page.locator(".notice.bad").count(), 0, name);
  }
});

once("every file of tests/files is read on the page as the library reads it", async ({ page, address }) => {
  await clusters(page, address);
  await page.getByText("Columns, axes and model").click();
  page.ignore(/422/);
  const cases = JSON.parse(readFileSync(join(ROOT, "tests/files/cases.json"), "utf8"));
  assert.ok(cases.filter((one) => !one.refused).length >= 30);
  for (const one of cases) {
    await upload(page, one.file, readFileSync(join(ROOT, "tests/files", one.file)));
    if (one.refused) {
      await page.locator(".notice.bad").getByText(one.refused).waitFor();
      continue;
    }
    await until(async () => (await page.locator(".drop strong").innerText()) === one.file, one.file);
    assert.ok((await page.locator("[data-table]").innerText()).startsWith(`${one.rows} row`), one.file);
    assert.deepEqual(await page.locator(".ticks .tick:has(input:checked)").allInnerTexts(), one.columns, one.file);
  }
});

test("a point drawn by hand can be taken hold of and moved", async ({ page, address }) => {
  await clusters(page, address);
  await page.getByRole("button", { name: "Draw points" }).click();
  await opened(page, "Drawn by hand");
  const drawing = () => /data=drawn-(\w+)/.exec(page.url())?.[1];
  await until(async () => drawing(), "the points in the address");
  const before = drawing();
  const { x, y, width, height } = await page.locator('canvas[aria-label="Rows and tokens"]').boundingBox();
  let point = null;
  for (let a = 50; a < width - 20 && !point; a += 18)
    for (let b = 80; b < height - 40 && !point; b += 18) {
      await page.mouse.move(x + a, y + b);
      if (await page.locator(".tip").isVisible()) point = [x + a, y + b];
    }
  await page.mouse.down();
  for (let i = 1; i < 8; i++) {
    await page.mouse.move(point[0] + 9 * i, point[1] + 5 * i);
    await page.waitForTimeout(60);
  }
  await page.mouse.up();
  await until(async () => drawing() !== before, "another address");
  const moved = drawing();
  assert.equal(moved.length, before.length, "as many points as before");
  const points = (code) => code.match(/.{4}/g);
  assert.equal(points(moved).filter((one, i) => one !== points(before)[i]).length, 1, "one of them elsewhere");
});

once("takes ten megabytes", async ({ page, address }) => {
  await clusters(page, address);
  const file = join(mkdtempSync(join(tmpdir(), "measureflow-")), "large.csv");
  const text = groups(750_000);
  assert.ok(text.length > 10 * 2 ** 20, `${text.length} bytes`);
  writeFileSync(file, text);
  await page.setInputFiles('input[type="file"]', file);
  await until(async () => /750,000 rows/.test(await page.locator(".drop").innerText()), "the table", 120);
  await page.locator(".notes").getByText("The picture shows 4,000 of 750,000 rows.").waitFor({ timeout: 120_000 });
  const sizes = await page.locator(".card-size").allInnerTexts();
  assert.equal(sizes.length, await k(page));
  assert.equal(sizes.reduce((sum, words) => sum + Number(words.split(" row")[0].replaceAll(",", "")), 0), 750_000);
  rmSync(file);
});
