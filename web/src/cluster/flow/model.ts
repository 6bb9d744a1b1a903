/** The model in its worker: of many questions only the last one matters. */
import type { Points } from "../../numbers";
import type { Answered, Asked } from "./worker";

export interface Model {
  name: string;
  d: number | null;
  layers: number;
  snr_low: number;
  snr_high: number;
  max_flow: number;
}

/** Whether a model flows such points. */
export const takes = (model: Model, { n, d }: Points) => n > 1 && (model.d === null || model.d === d);

/** Tokens at every layer, (layers + 1, n, d) row after row, and the atom that each ends in. */
export interface Path {
  n: number;
  d: number;
  layers: number;
  x: Float32Array;
  times: Float32Array;
  labels: Int32Array;
}

/** Points and an SNR, and the rows of the table that the points are. */
type Question = Omit<Asked, "id"> & { rows: Uint32Array };

export class Runner {
  private worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  private running: (Asked & Question) | null = null;
  private next: Question | null = null;
  private count = 0;

  constructor(
    private done: (path: Path, asked: Question) => void,
    private failed: (reason: string) => void,
  ) {
    this.worker.onmessage = (event: MessageEvent<Answered>) => this.answered(event.data);
    this.worker.onerror = (event) => {
      this.running = null;
      this.failed(event.message || "the worker that runs the model did not start");
    };
  }

  get busy(): boolean {
    return this.running !== null;
  }

  ask(question: Question) {
    if (this.running) {
      this.next = question;
      return;
    }
    this.running = { ...question, id: ++this.count };
    this.worker.postMessage(this.running);
  }

  /** Flow some rows of the table at a signal-to-noise ratio, or at the nearest that the model knows. */
  flow({ name, snr_low, snr_high }: Model, { input, rows }: { input: Points; rows: Uint32Array }, db: number) {
    const snr = Math.max(snr_low, Math.min(snr_high, db));
    this.ask({ model: `/models/${name}.onnx`, points: Float32Array.from(input.x), n: input.n, d: input.d, snr, rows });
  }

  private answered(answer: Answered) {
    const asked = this.running!;
    this.running = null;
    if ("error" in answer) this.failed(answer.error);
    else this.done({ n: asked.n, d: asked.d, layers: answer.layers, x: answer.path, times: answer.times, labels: answer.labels }, asked);
    const next = this.next;
    this.next = null;
    if (next) this.ask(next);
  }

  close() {
    this.worker.terminate();
  }
}
