/** A larger run of the same flow, by the library on this machine. */
import { ask, button, h, replace } from "../dom";
import { cloud, type Matrix, type Setting } from "./attention";
import { clock } from "./world";

export interface Result {
  times: number[];
  points: number[][][];
  ending: string; // in words
}

interface Job {
  id: string;
  state: string;
  progress: number;
  reason?: string;
  result?: Result;
}

const TOKENS = 1000;

export class Larger {
  private cancels = ""; // the run whose button to cancel is shown
  private job: { id: string; stopped: boolean } | null = null;
  element = h("div", { class: "stack", style: "gap: 10px" });

  constructor(
    private setting: () => { set: Setting; kind: string; seed: number },
    private done: (result: Result) => void,
  ) {
    this.show();
  }

  /** Where the run stands. While it goes on only the words change: a button that is being pressed stays. */
  private show(job?: Job) {
    const running = job !== undefined && !["done", "failed", "cancelled"].includes(job.state);
    const [said, bar] = [this.element.querySelector("p"), this.element.querySelector("progress")];
    if (running && said && bar && this.cancels === job.id) {
      said.textContent = words(job);
      said.dataset.job = job.state;
      bar.value = job.progress;
      return;
    }
    this.cancels = running ? job.id : "";
    replace(
      this.element,
      h("p", { class: "note", "data-job": job?.state ?? "none" }, words(job)),
      running && h("progress", { max: 1, value: job.progress, "aria-label": "Progress" }),
      running ? button("Cancel", () => void ask(`/api/simulate/${job.id}`, { method: "DELETE" }).catch(() => {})) : button("Run it", () => void this.run()),
    );
  }

  private async run() {
    if (this.job) this.job.stopped = true;
    const rows = (M: Matrix) => [M.slice(0, 2), M.slice(2)];
    const { set, kind, seed } = this.setting();
    const { attention, Q, K, V, epsilon, relative } = set;
    const x = cloud(kind, TOKENS, seed);
    const points = Array.from({ length: TOKENS }, (_, i) => [x[2 * i], x[2 * i + 1]]);
    const asked = { attention, Q: rows(Q), K: rows(K), V: rows(V), epsilon, relative, points, n: TOKENS, time: 4, layers: 40 };
    try {
      let job = await ask<Job>("/api/simulate", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(asked) });
      const mine = (this.job = { id: job.id, stopped: false });
      while (!mine.stopped && ["waiting", "running"].includes(job.state)) {
        this.show(job);
        await new Promise((resolve) => setTimeout(resolve, 250));
        job = await ask<Job>(`/api/simulate/${job.id}`);
      }
      if (mine.stopped) return;
      this.show(job);
      if (job.result) this.done(job.result);
    } catch (error) {
      this.show({ id: "", state: "failed", progress: 0, reason: (error as Error).message });
    }
  }

  close() {
    if (!this.job) return;
    this.job.stopped = true;
    void fetch(`/api/simulate/${this.job.id}`, { method: "DELETE" }).catch(() => {});
  }
}

function words(job?: Job): string {
  if (!job) return "Run 1,000 tokens of this cloud in the library: adaptive steps, and the time of a blow-up.";
  if (job.state === "failed") return `It could not run: ${job.reason}`;
  if (job.state === "cancelled") return "Cancelled.";
  if (job.state !== "done") return `${job.state}: ${(100 * job.progress).toFixed(0)} %`;
  const { ending, times } = job.result!;
  return `${ending} Shown above: ${times.length} states, up to t = ${clock(times.at(-1)!)}.`;
}
