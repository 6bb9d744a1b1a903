/** How stable the answer is: parts of the rows are fitted again in the background, to see which clusters come back. */
import { button } from "../../dom";
import { Asker, type Fitted, type Question, type Stability } from "./answers";

const REFITS = 10; // parts of the rows, where the reader asks
const REST = 500; // milliseconds without a new answer before the first part is fitted

interface Host {
  question: Question;
  fitted: Fitted | null;
  say: () => void; // all that is said of the answer
  sayAgain: () => void; // only how stable it is
  complain: (words: string) => void;
}

export class Refits {
  found: Stability | null = null; // of the parts fitted so far
  numbers: number[] = []; // of clusters in each of them
  asked = 0; // parts to fit in all
  private asker = new Asker();
  turn = 0; // how often measuring was stopped: another question has been asked since
  button = button("How stable?", () => void this.measure(REFITS), { class: "chip", title: "fits ten parts of the rows again" });

  get done(): boolean {
    return this.asked > 0 && this.numbers.length === this.asked;
  }

  constructor(private host: Host) {
    this.button.hidden = true;
  }

  /** Another answer: what was measured is out of date, and what is being measured is dropped. */
  clear() {
    this.stop();
    this.found = null;
    this.numbers = [];
    this.asked = 0;
    this.button.hidden = !this.host.fitted || this.host.fitted.refits > 0;
  }

  /** Measure without being asked, where the library says that it takes little time and the answer stays for a moment. */
  async follow(fitted: Fitted, turn: number) {
    await new Promise((done) => setTimeout(done, REST));
    if (turn === this.turn && fitted.refits && !this.asked) await this.measure(fitted.refits);
  }

  /** One part after another, telling of each; a new answer ends it. */
  private async measure(parts: number) {
    const { host, host: { fitted, question } } = this;
    if (!fitted) return;
    const mine = this.turn;
    this.button.hidden = true;
    this.asked = parts;
    if (fitted.refits) host.sayAgain();
    else host.say(); // its lines are not there yet
    try {
      for (let n = 1; n <= parts; n++) {
        const stable = await this.asker.stability(question, n);
        if (!stable || mine !== this.turn) return;
        this.numbers.push(newest(this.found, this.numbers.length, stable, n));
        this.found = stable;
        host.sayAgain();
      }
    } catch (error) {
      this.clear();
      host.complain(`How stable the answer is could not be measured: ${(error as Error).message}`);
    }
  }

  stop() {
    this.turn++;
    this.asker.stop();
  }
}

/** The number of clusters in the part that was fitted last: the one that was found more often than before. */
function newest(before: Stability | null, m: number, now: Stability, n: number): number {
  const times = (stable: Stability | null, K: string, fits: number) => Math.round((stable?.n_clusters[K] ?? 0) * fits);
  return +Object.keys(now.n_clusters).find((K) => times(now, K, n) > times(before, K, m))!;
}
