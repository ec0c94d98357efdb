// The playground: a program at the left, what becomes of it at the right.

import "uplot/dist/uPlot.min.css";
import "../style.css";
import "../step.css";
import "./playground.css";
import { add, clear, h } from "../dom";
import { sentence } from "../format";
import { toggleTheme } from "../theme";
import { Editor, type Change } from "./editor";
import { Gallery, Questions } from "./gallery";
import { KeptText } from "./kept";
import { Links } from "./links";
import { addressed, Panes } from "./panes";
import { Runs } from "./runs";
import { saveMenu } from "./saving";
import { Server } from "./server";
import { Training } from "./training";
import { PANES, type Failure, type PaneName, type Recording, type RunEvent, type ServerState } from "./types";

/** What stands around editor and panes in either page. */
class Frame {
  readonly links = new Links();
  readonly status = h("output", { class: "note status", role: "status" });
  readonly notice = h("div", { class: "notice", role: "alert", hidden: true });
  readonly banner = h("div", { class: "banner", role: "alert", hidden: true });

  build(page: HTMLElement, title: string, tools: (HTMLElement | null)[], left: (HTMLElement | null)[], right: HTMLElement[]): void {
    clear(page);
    page.className = "playground";
    add(page,
      h("a", { class: "skip", href: "#results", click: (event) => this.skip(event) }, "Skip to the results"),
      h("header", {}, h("h1", {}, title), this.status, h("div", { class: "tools" }, ...tools,
        h("button", { type: "button", class: "small", click: toggleTheme, "aria-label": "Change between light and dark" }, "◐"))),
      this.banner,
      h("main", {}, 
        h("section", { class: "left" }, h("h2", { class: "offscreen" }, "Program"), ...left),
        h("section", { class: "right", id: "results" }, h("h2", { class: "offscreen" }, "Results"), this.notice, ...right)));
  }

  private skip(event: Event): void {
    event.preventDefault();
    document.querySelector<HTMLElement>('[role="tab"][aria-selected="true"]')?.focus();
  }

  note(text: string): void {
    this.notice.textContent = text;
    this.notice.hidden = !text;
  }
}

class Playground {
  private readonly frame = new Frame();
  private readonly server = new Server((alive, reason) => this.heard(alive, reason));
  private readonly runs: Runs;
  private readonly editor: Editor;
  private readonly panes: Panes;
  private readonly training = new Training(this.server);
  private readonly gallery: Gallery;
  private readonly questions: Questions;
  private readonly stopButton = h("button", { type: "button", class: "small", disabled: true, click: () => void this.runs.stop() }, "Stop");
  private cleared = true;
  private asked: PaneName[] = [];
  private failure: Failure | null = null;
  private example: string | null;

  constructor(
    page: HTMLElement,
    private readonly kept: KeptText,
    private readonly state: ServerState,
  ) {
    const before = kept.read();
    const wanted = addressed(location.hash).example;
    const mine = before !== null && before.file === state.file && (wanted === null || wanted === before.example) ? before : null;
    this.example = mine?.example ?? null;
    this.runs = new Runs(this.server, {
      text: () => this.editor.text, panes: () => this.wanted(), began: () => this.began(), event: (event) => this.take(event),
      failed: (failure) => this.failed(failure), ended: (how, ms) => this.ended(how, ms),
    });
    this.editor = new Editor({
      text: mine?.text ?? state.text, server: this.server, links: this.frame.links, changed: (how) => this.changed(how), run: () => this.runs.now(), save: () => void this.save(),
    });
    this.panes = new Panes({ links: this.frame.links, go: (line) => this.editor.go(line) }, () => this.turned());
    this.gallery = new Gallery((name) => void this.load(name));
    this.gallery.fill(state.examples);
    this.questions = new Questions(this.server, () => this.editor.text);
    this.build(page);
    if (wanted !== null && mine === null) void this.load(wanted);
    else {
      if (this.example) void this.ask(this.example);
      this.runs.now();
    }
  }

  private build(page: HTMLElement): void {
    const run = h("button", { type: "button", class: "small main", title: "Ctrl+Enter", click: () => this.runs.now() }, "▶ Run");
    const save = saveMenu(this.server, () => this.editor.text, () => this.name(), [`${this.file()} (Ctrl+S)`, () => void this.save()], (text) => (this.frame.status.textContent = text));
    this.frame.build(page, this.state.file ? this.file() : "glassgrad playground",
      [h("button", { type: "button", class: "small", click: () => this.gallery.open() }, "Examples"), run, this.stopButton, save],
      [this.editor.root, this.editor.bar.root, this.questions.root], [this.training.root, this.panes.root]);
    add(page, this.gallery.dialog);
  }

  private file(): string {
    return this.state.file?.replace(/^.*[\\/]/, "") ?? "~/.glassgrad/playground.py";
  }

  private async save(): Promise<void> {
    try {
      await this.server.send("save", { text: this.editor.text });
      this.frame.status.textContent = `saved in ${this.file()}`;
    } catch (error) {
      this.frame.status.textContent = `not saved: ${error instanceof Error ? error.message : String(error)}`;
    }
  }

  private name(): string {
    return this.example ?? this.file().replace(/^.*\//, "").replace(/\.py$/, "");
  }

  // --- text -------------------------------------------------------------------------------------------------

  private changed(how: Change): void {
    this.kept.write(this.editor.text, this.state.file, this.example);
    this.panes.stale();
    this.runs.changed(how);
  }

  private async load(name: string): Promise<void> {
    const example = await this.ask(name);
    if (!example) return;
    this.example = name;
    const hash = `#${this.panes.current}&example=${encodeURIComponent(name)}`;
    if (location.hash !== hash) location.replace(hash);
    if (example.text === this.editor.text) this.runs.now();
    else this.editor.load(example.text);
    this.frame.status.textContent = `${example.title} is open; undo brings back the text before.`;
  }

  /** Ask for an example, and show its questions. */
  private async ask(name: string): Promise<{ title: string; text: string } | null> {
    try {
      const example = await this.server.example(name);
      this.questions.show(example);
      return example;
    } catch (error) {
      this.frame.note(`The example ${name} was not found: ${error instanceof Error ? error.message : String(error)}`);
      return null;
    }
  }

  // --- runs -------------------------------------------------------------------------------------------------

  /** The pane that is looked at comes first; values are always there. */
  private wanted(): PaneName[] {
    this.asked = [...new Set<PaneName>([this.panes.current, "values"])].filter((name) => name !== "output");
    return this.asked;
  }

  private turned(): void {
    if (!this.panes) return; // it is being made
    const { example } = addressed(location.hash);
    if (example !== null && example !== this.example) void this.load(example);
    else if (!this.panes.isFresh(this.panes.current)) this.runs.afterLoop();
  }

  private began(): void {
    this.cleared = false;
    this.failure = null;
    this.frame.status.textContent = "running …";
    this.stopButton.disabled = false;
    this.training.begin();
    this.kept.write(this.editor.text, this.state.file, this.example);
  }

  private take(event: RunEvent): void {
    switch (event.event) {
      case "output":
        this.clear();
        this.panes.output.print(event.text, event.stream);
        return this.panes.badge("output", "•");
      case "error":
        this.failure = event;
        return;
      case "pane":
        return this.panes.take(event);
      case "progress":
        return this.training.progress(event.loop);
      case "stopped":
        return this.frame.note(sentence(event.message || `stopped: ${event.reason}`));
    }
  }

  /** What was printed before goes when something new is printed, or when the run is over. */
  private clear(): void {
    if (this.cleared) return;
    this.cleared = true;
    this.panes.output.clear();
    this.panes.badge("output", "");
  }

  private failed(failure: Failure | null): void {
    this.editor.fail(failure);
    this.panes.output.fail(failure);
    if (failure) {
      this.panes.badge("output", "!", true);
      this.frame.status.textContent = failure.line ? `${failure.kind} in line ${failure.line}` : failure.kind;
    }
  }

  private ended(how: "done" | "stopped" | "lost", ms: number): void {
    this.clear();
    this.stopButton.disabled = true;
    this.training.end();
    if (how === "done") this.frame.note("");
    const took = ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
    if (!this.failure) this.frame.status.textContent = how === "done" ? `ran in ${took}` : how === "stopped" ? `stopped after ${took}` : "no answer";
    const turned = !this.panes.isFresh(this.panes.current) && !this.asked.includes(this.panes.current);
    if (how === "done" && turned) this.runs.now(); // another pane was turned to meanwhile
  }

  private heard(alive: boolean, reason: string): void {
    this.frame.banner.hidden = alive;
    this.frame.banner.textContent = reason || "The server does not answer. Your text is kept in this browser; the page goes on trying.";
    if (alive) this.runs.now();
  }
}

/** A page that was saved: the same panes from what was recorded, without a server. */
function replay(page: HTMLElement, recording: Recording): void {
  const frame = new Frame();
  const editor = new Editor({ text: recording.text, server: null, links: frame.links, changed: () => undefined, run: () => undefined, save: () => undefined });
  const panes = new Panes({ links: frame.links, go: (line) => editor.go(line) }, () => undefined);
  const training = new Training(null);
  frame.build(page, recording.title ?? "glassgrad playground", [], [editor.root], [training.root, panes.root]);
  frame.status.textContent = "a recording: nothing runs here";
  for (const event of recording.events) {
    if (event.event === "output") panes.output.print(event.text, event.stream);
    else if (event.event === "pane") panes.take(event);
    else if (event.event === "stopped") frame.note(sentence(event.message));
    else if (event.event === "error") {
      editor.fail(event);
      panes.output.fail(event);
    }
  }
  for (const name of PANES) if (!panes.isFresh(name)) panes.fail(name, "This pane was not recorded.", null);
}

async function main(): Promise<void> {
  const page = document.getElementById("page");
  if (!page) return;
  const recorded = document.getElementById("data")?.textContent;
  if (recorded) return replay(page, JSON.parse(recorded) as Recording);
  KeptText.prune();
  const kept = KeptText.open(); // meanwhile the server is asked
  for (;;) {
    try {
      const state = await new Server(() => undefined).state();
      new Playground(page, await kept, state);
      return;
    } catch (error) {
      page.textContent = `The server does not answer (${error instanceof Error ? error.message : String(error)}); the page goes on trying.`;
      await new Promise((resolve) => setTimeout(resolve, 1500));
    }
  }
}

void main();
