/** How stable the answer is: parts of the rows are fitted again, to see which clusters come back. */
import { button } from "../../dom";
import { Asker, type Fitted, type Question, type Stability } from "./answers";

export const REFITS = 10; // parts of the rows

interface Host {
  question: Question;
  fitted: Fitted | null;
  status: HTMLElement;
  say: () => void;
}

export class Refits {
  found: Stability | null = null;
  private asker = new Asker();
  button = button("How stable?", () => void this.measure(), { class: "chip", title: "fits ten parts of the rows again" });

  constructor(private host: Host) {}

  /** Another answer: what was measured is out of date. */
  clear() {
    this.found = null;
    this.button.disabled = false;
  }

  async measure() {
    const { host } = this;
    const { fitted } = host;
    if (!fitted) return;
    this.button.disabled = true;
    host.status.textContent = `fitting ${REFITS} parts…`;
    try {
      const stable = await this.asker.stability(host.question, REFITS);
      if (!stable || host.fitted !== fitted) return;
      this.found = stable;
      host.status.textContent = `${REFITS} refits`;
      host.say();
    } catch (error) {
      host.status.textContent = (error as Error).message;
      this.button.disabled = false;
    }
  }

  stop() {
    this.asker.stop();
  }
}
