/** Cluster: bring a table, and watch its rows flow into the clusters that the library found. */
import { readAddress, writeAddress } from "../address";
import { ask, h, replace } from "../dom";
import { picture, type Picture } from "../draw/canvas";
import { takeFiles } from "../dropped";
import type { Table } from "../table/table";
import { Asker, type Fitted, type Question } from "./answer/answers";
import { Dial } from "./answer/dial";
import { Misleads } from "./answer/misleads";
import { Peers } from "./answer/peers";
import { Refits } from "./answer/refits";
import { waiting } from "./answer/verdict";
import { drawer, type Choices } from "./drawer";
import { Runner, takes, type Model, type Path } from "./flow/model";
import { lay, words } from "./layout";
import { Player } from "./picture/player";
import { listen } from "./picture/pointer";
import { saves } from "./picture/save";
import { sceneOf, type Preview } from "./picture/scene";
import { drawScene, tall, type Scene } from "./picture/stage";
import { axisNames, prepare, tokens, type Data } from "./rows/data";
import { Source, type Example } from "./rows/source";
import { askedOf, named, state } from "./state";
import { tell, tellAgain } from "./tell";

const PAUSE = 220; // milliseconds of rest before the library is asked about a dial that moves

/** What is remembered while another view is open. */
const memory: { table: Table | null; address: string; played: Table | null } = { table: null, address: "", played: null };

export default async function cluster(place: HTMLElement): Promise<() => void> {
  const [models, examples] = await Promise.all([ask<Model[]>("/api/models"), ask<Example[]>("/api/examples")]);
  return new Cluster(place, models, examples).start();
}

class Cluster {
  table: Table | null = null;
  chosen: Choices = { columns: [], axes: ["", ""], n_clusters: null, model: "" };
  db: number | null = null; // of the dial, null while the library sets it
  data: Data | null = null;
  scene: Scene | null = null;
  fitted: Fitted | null = null;
  outliers = new Set<number>();
  isolated: number | null = null; // the cluster that an address asks to see alone, until the answer is there
  path: Preview | null = null; // the browser's own flow
  wanted = new URLSearchParams(); // what an address asks of the table that is being opened
  timer = 0;
  fits = new Asker();
  refits = new Refits(this);
  runner = new Runner(
    (path, { rows }) => this.previewed(path, rows),
    (reason) => this.complain(`The preview could not run: ${reason}`),
  );

  words = words();
  stage: Picture = picture("Rows and tokens", tall, (c, w, t) => this.scene && drawScene(c, w, t, this.scene));
  player = new Player((t) => this.seek(t));
  dial = new Dial((db) => this.turn(db), () => this.turn(null));
  peers = new Peers();
  misleads = new Misleads();
  source: Source;

  constructor(
    private place: HTMLElement,
    private models: Model[],
    examples: Example[],
  ) {
    this.source = new Source(examples, (table) => this.open(table), (reason) => this.complain(reason));
  }

  async start(): Promise<() => void> {
    lay(this.place, this, saves(this, this.refits.button));
    listen(this.stage.element, this.words.tip, this);
    const { state: asked } = readAddress();
    this.source.show(null);
    waiting(this.words.verdict);
    const files = takeFiles((file) => void this.source.take(file, file.name));
    if (!files.waited && memory.table && (!location.hash.includes("?") || location.hash === memory.address)) {
      this.wanted = new URLSearchParams(memory.address.split("?")[1] ?? "");
      this.source.name = this.wanted.get("data")?.replace(/^drawn-.*/, "drawn") ?? "file";
      this.open(memory.table);
    } else if (!files.waited) {
      this.wanted = asked;
      this.source.noise = +(asked.get("noise") ?? this.source.noise);
      await this.source.open(asked.get("data") ?? "");
    }
    return () => {
      files.end();
      this.close();
    };
  }

  // the table ------------------------------------------------------------------------------------------------------

  open(table: Table) {
    const again = this.table?.columns.length === table.columns.length && this.source.drawn;
    memory.table = this.table = table;
    this.complain("");
    const { chosen, db, focus, layer } = askedOf(table, this.wanted);
    this.wanted = new URLSearchParams();
    this.chosen = chosen;
    if (!again) this.db = db;
    this.isolated = focus;
    this.source.show(table);
    this.refresh(again);
    if (layer !== null) {
      memory.played = table;
      this.player.seek(layer);
    }
  }

  /** After a change of the rows or columns: the picture, the preview, the answer. */
  refresh(again = false) {
    const { table, chosen } = this;
    if (!table) return;
    if (!again) {
      this.player.stop();
      this.fitted = null;
      this.outliers = new Set();
      this.refits.clear();
      const { notes, list, odds, heat, verdict } = this.words;
      for (const part of [notes, list, odds, heat]) replace(part);
      waiting(verdict);
    }
    this.path = null;
    this.dial.clear();
    try {
      this.data = prepare(table, chosen.columns);
    } catch (error) {
      this.complain((error as Error).message);
      return;
    }
    const offered = axisNames(this.data.names);
    chosen.axes = chosen.axes.map((name, i) => (offered.includes(name) ? name : (offered[i] ?? ""))) as [string, string];
    drawer(this.words.columns, table, chosen, this.models, (next) => this.choose(next));
    this.frame();
    this.preview();
    void this.fit();
  }

  choose(next: Partial<Choices>) {
    Object.assign(this.chosen, next);
    if (next.axes) {
      this.frame();
      drawer(this.words.columns, this.table!, this.chosen, this.models, (again) => this.choose(again));
      this.write();
    } else if (next.model !== undefined) {
      this.frame();
      this.preview();
      this.write();
    } else this.refresh();
  }

  get question(): Question {
    return { body: this.table!.body, columns: named(this.chosen, this.table!), snr_db: this.db, n_clusters: this.chosen.n_clusters };
  }

  // the flow and the answer --------------------------------------------------------------------------------------

  preview() {
    const model = this.models.find((m) => m.name === (this.chosen.model || "any-dimension"));
    if (model && this.data && takes(model, this.data.values)) this.runner.flow(model, tokens(this.data), this.db ?? this.fitted?.snr_db ?? 10);
  }

  previewed(path: Path, rows: Uint32Array) {
    if (!this.data || path.d !== this.data.names.length) return;
    this.path = { path, rows };
    const waiting = !this.fitted || this.timer !== 0 || this.source.drawn;
    if (waiting || this.chosen.model) this.frame();
    if (!this.fitted) this.say();
  }

  async fit() {
    clearTimeout(this.timer);
    this.timer = 0;
    this.refits.stop();
    const began = performance.now();
    this.words.status.textContent = "fitting…";
    this.words.verdict.classList.add("waiting");
    try {
      const fitted = await this.fits.fit(this.question);
      if (!fitted || !this.table) return;
      this.answered(fitted, (performance.now() - began) / 1000);
    } catch (error) {
      this.words.status.textContent = "";
      this.complain(`The library gave no answer, so this is a preview: ${(error as Error).message}`);
    }
  }

  answered(fitted: Fitted, seconds: number) {
    this.fitted = fitted;
    this.outliers = new Set(fitted.outliers);
    this.refits.clear();
    this.words.verdict.classList.remove("waiting");
    this.words.status.textContent = `FlowMixture, ${seconds.toFixed(1)} s`;
    if (this.db === null) {
      const db = fitted.snr_db ?? 24;
      this.dial.found = { db, K: fitted.n_clusters };
      this.dial.set(db, true);
    } else this.dial.set(this.db, false);
    if (this.scene) {
      const focus = this.isolated ?? this.scene.focus;
      this.scene.focus = focus !== null && focus < fitted.n_clusters ? focus : null;
    }
    this.isolated = null;
    this.frame();
    this.say();
    const { question } = this;
    this.peers.about(question, fitted.n_clusters, () => this.scene);
    this.misleads.about(question, () => this.scene);
    if (memory.played !== this.table && !this.source.drawn && !matchMedia("(prefers-reduced-motion: reduce)").matches) this.player.start(0);
    memory.played = this.table;
    this.write();
    void this.follow(fitted, question);
  }

  /** What is measured in the background once there is an answer; the reader's next question comes before it. */
  async follow(fitted: Fitted, question: Question) {
    const { turn } = this.refits;
    if (this.db !== null) await this.dial.explore(question); // whoever turns the dial looks at its curve
    await this.refits.follow(fitted, turn);
    if (turn === this.refits.turn) await this.dial.explore(question);
  }

  /** The dial was moved (null: given back to the library). */
  turn(db: number | null) {
    this.db = db;
    clearTimeout(this.timer);
    this.refits.stop();
    if (db === null) return void this.fit();
    this.preview();
    this.timer = window.setTimeout(() => void this.fit(), PAUSE);
  }

  // the picture ----------------------------------------------------------------------------------------------------

  /** Everything the picture needs, from the rows, the axes, the flow and the answer as they are now. */
  frame() {
    const { data, fitted, path, chosen, outliers } = this;
    if (!data) return;
    const newer = this.timer !== 0 || (this.source.drawn && path !== null && path.path.n !== fitted?.flow.n);
    const focus = this.scene?.focus ?? null;
    this.scene = { ...sceneOf({ data, rows: this.table!.rows, axes: chosen.axes, fitted, path, outliers, drawn: this.source.drawn, preview: !!chosen.model || newer }), focus };
    if (this.scene.flow) this.player.fit(this.scene.flow.layers.length - 1);
    this.scene.t = this.player.t;
    this.redraw();
  }

  seek(t: number) {
    if (!this.scene) return;
    this.scene.t = t;
    this.stage.redraw();
    if (!this.player.playing) this.write();
  }

  focusOn(k: number | null) {
    if (!this.scene || !this.fitted) return;
    this.scene.focus = k;
    this.say();
    this.redraw();
    this.write();
  }

  redraw() {
    this.stage.redraw();
    this.peers.redraw();
  }

  // words ----------------------------------------------------------------------------------------------------------

  say() {
    tell(this);
  }

  sayAgain() {
    tellAgain(this);
  }

  complain(reason: string) {
    replace(this.words.trouble, reason && h("p", { class: "notice bad" }, reason));
    if (reason && !this.fitted && !this.path) replace(this.words.verdict);
  }

  write() {
    const { chosen, table, data, source, db, player, scene } = this;
    if (!table || readAddress().view.replace(/^$/, "cluster") !== "cluster") return;
    writeAddress("cluster", state({ chosen, table, data, source, db, player, focus: scene?.focus ?? null }));
    memory.address = location.hash;
  }

  close() {
    clearTimeout(this.timer);
    for (const asked of [this.fits, this.refits]) asked.stop();
    for (const part of [this.player, this.runner, this.stage, this.dial, this.peers, this.misleads]) part.close();
  }
}
