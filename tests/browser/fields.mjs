// The page's attention against the numbers of the library: node tests/browser/fields.mjs
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { moduleOf } from "./reader.mjs";

const CASES = JSON.parse(readFileSync(fileURLToPath(new URL("../explorer/fields.json", import.meta.url)), "utf8"));

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

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await checkFields();
  console.log("The page's attention gives the numbers of the library.");
}
