// The page's reader of tables against the cases that Python's is held to: node tests/browser/tools/reader.mjs
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const FILES = join(ROOT, "tests", "files");

/** A module of the page, made into one that Node can import. */
export async function moduleOf(path) {
  const { build } = await import(pathToFileURL(createRequire(join(ROOT, "web", "package.json")).resolve("vite")).href);
  const folder = mkdtempSync(join(tmpdir(), "measureflow-module-"));
  const lib = { entry: join(ROOT, "web", "src", path), formats: ["es"], fileName: "module" };
  await build({ configFile: false, root: join(ROOT, "web"), logLevel: "error", publicDir: false, build: { lib, outDir: folder, emptyOutDir: false } });
  const found = await import(pathToFileURL(join(folder, "module.js")).href);
  rmSync(folder, { recursive: true });
  return found;
}

/** Every case that the page reads by itself; the names of those it leaves to the server. */
export async function checkReader() {
  const { decode, isGzip, needsServer, parse } = await moduleOf("table/parse.ts");
  const left = [];
  for (const one of JSON.parse(readFileSync(join(FILES, "cases.json"), "utf8"))) {
    let bytes = new Uint8Array(readFileSync(join(FILES, one.file)));
    if (isGzip(bytes)) bytes = new Uint8Array(gunzipSync(bytes));
    if (needsServer(bytes)) {
      left.push(one.file);
      continue;
    }
    if (one.refused) {
      assert.throws(() => parse(decode(bytes)), (error) => error.message.includes(one.refused), one.file);
      continue;
    }
    const { columns, rows } = parse(decode(bytes));
    assert.equal(rows.length, one.rows, one.file);
    const used = columns.filter((column) => !column.reason);
    assert.deepEqual(used.map((column) => column.name), one.columns, one.file);
    assert.deepEqual(Object.fromEntries(columns.filter((c) => c.reason).map((c) => [c.name, c.reason])), one.skipped, one.file);
    const complete = rows.map((_, i) => i).filter((i) => used.every((column) => Number.isFinite(column.values[i])));
    assert.equal(rows.length - complete.length, one.gaps, one.file);
    const total = complete.reduce((sum, i) => sum + used.reduce((s, column) => s + column.values[i], 0), 0);
    assert.ok(Math.abs(total - one.total) <= 1e-9 * Math.abs(one.total), `${one.file}: ${total}`);
  }
  assert.deepEqual(left, ["book.xlsx", "frame.parquet", "archive.zip"]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await checkReader();
  console.log("The page reads every table as the library does.");
}
