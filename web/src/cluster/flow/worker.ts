/** Runs the exported model off the page's own thread: points and an SNR in, the tokens of every layer and their atoms out. */
import wasm from "onnxruntime-web/ort-wasm-simd-threaded.wasm?url";
import * as ort from "onnxruntime-web/wasm";
import { variance } from "../../numbers";
import { atoms } from "./merge";

export interface Asked {
  id: number;
  model: string;
  points: Float32Array;
  n: number;
  d: number;
  snr: number;
}

export type Answered = { id: number; path: Float32Array; times: Float32Array; layers: number; labels: Int32Array } | { id: number; error: string };

ort.env.wasm.numThreads = 1;
ort.env.wasm.wasmPaths = { wasm };
ort.env.logLevel = "error";

const sessions = new Map<string, Promise<ort.InferenceSession>>();

async function run({ id, model, points, n, d, snr }: Asked): Promise<Answered> {
  if (!sessions.has(model)) sessions.set(model, ort.InferenceSession.create(model, { executionProviders: ["wasm"] }));
  const session = await sessions.get(model)!;
  const out = await session.run({
    points: new ort.Tensor("float32", points, [n, d]),
    snr_db: new ort.Tensor("float32", Float32Array.of(snr), [1]),
  });
  const [path, times] = [out.path, out.times].map((tensor) => tensor.data as Float32Array);
  const layers = times.length - 1;
  const noise = Math.sqrt(variance({ n, d, x: Float64Array.from(points) }) / (1 + 10 ** (snr / 10)));
  const labels = atoms(path.subarray(layers * n * d), n, d, 2 * noise * Math.sqrt(d / 2));
  return { id, path, times, layers, labels };
}

onmessage = async (event: MessageEvent<Asked>) => {
  const { id } = event.data;
  const answer: Answered = await run(event.data).catch((error) => ({ id, error: String(error?.message ?? error) }));
  postMessage(answer, "path" in answer ? { transfer: [answer.path.buffer, answer.times.buffer] } : {});
};
