// The page's attention against the numbers of the library: node tests/browser/tools/fields.mjs
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { moduleOf } from "./reader.mjs";

const CASES = JSON.parse(readFileSync(fileURLToPath(new URL("../../explorer/fields.json", import.meta.url)), "utf8"));

/** Velocities, diagnostics and the first steps of a covariance, for every attention. */
export async function checkFields() {
  const page = await moduleOf(join("dynamics", "attention.ts"));
  assert.deepEqual([...new Set(CASES.map((one) => one.attention))].sort(), page.ATTENTIONS.map(([name]) => name).sort());
  for (const one of CASES) {
    const name = `${one.attention}${one.relative ? ", relative" : ""}`;
    const near = (found, expected, tolerance = 1e-9) =>
      [...found].forEach((value, i) => assert.ok(Math.abs(value - expected[i]) <= tolerance * (1 + Math.abs(expected[i])), `${name}: ${value}, not ${expected[i]}`));
    const set = { ...one, Q: one.Q.flat(), K: one.K.flat(), V: one.V.flat() };
    const x = Float64Array.from(one.points.flat());
    near(page.velocity(set, x), one.velocities.flat(), one.attention === "sinkhorn" ? 1e-4 : 1e-9); // the page stops after thirty rounds
    near([page.entropy(x), page.energy(set, x)], [one.entropy, one.log_energy]);
    near(page.covariance(x), one.covariance.flat());
    assert.equal(page.hasClosedForm(one.attention), one.moved !== null, name);
    if (one.moved) near(page.covariancePath(set, one.start.flat()).path[1], one.moved.flat());
  }
}

/** Marks of an axis: round numbers, each with words of its own, however narrow the axis is. */
export async function checkTicks() {
  const { short, ticks } = await moduleOf("numbers.ts");
  for (const [low, high] of [[0, 1], [1.1801, 1.1812], [-2.2004, -2.1997], [99_990, 100_010], [1e6, 1e6 + 40], [1e-5, 3e-5], [0, 1e7]]) {
    const marks = ticks(low, high, 4);
    assert.ok(marks.length > 1, `${low} to ${high}`);
    const words = marks.map((mark) => short(mark, marks[1] - marks[0]));
    assert.equal(new Set(words).size, marks.length, words.join(", "));
    words.forEach((one, i) => assert.ok(Math.abs(Number(one) - marks[i]) < 0.5 * (marks[1] - marks[0]), `${one} is not ${marks[i]}`));
  }
  assert.equal(short(0.5, NaN), "0.5"); // a mark alone
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await checkFields();
  console.log("The page's attention gives the numbers of the library.");
}
