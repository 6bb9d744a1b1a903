// What an earlier build left, except the exported models.
import { rmSync } from "node:fs";

rmSync(new URL("../src/measureflow/explorer/static/assets", import.meta.url), { recursive: true, force: true });
