// A page that follows its run: asks the server that it came from for what is new, and can ask the run to stop.

import type { Curves } from "./curves";
import { curveOf, type Changing, type Run } from "./data";
import { clear, h } from "./dom";
import type { State } from "./state";

export class Live {
  readonly root: HTMLElement;
  private readonly said = h("output", { "aria-live": "polite" });
  private readonly button = h("button", { type: "button", class: "small", click: () => void this.stop() }, "stop the run");
  private asked = false;

  constructor(
    private readonly state: State,
    private readonly curves: Curves,
    private readonly tiles: (run: Run | undefined) => HTMLElement,
    private shown: HTMLElement,
    private readonly seconds: number,
  ) {
    const again = h("button", { type: "button", class: "small", click: () => location.reload() }, "load again");
    this.root = h("div", { class: "live", role: "region", "aria-label": "The run" }, this.said, this.button,
      h("span", { class: "note" }, "Layers are as they were when the page was opened: ", again));
    this.tell();
    this.later();
  }

  private get run(): Run | undefined {
    return this.state.runs[0]?.data;
  }

  private later(): void {
    setTimeout(() => void this.look(), this.seconds * 1000);
  }

  private async look(): Promise<void> {
    const run = this.run;
    if (!run) return;
    try {
      const answer = await fetch(`data?after=${run.records}`, { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.statusText);
      this.take(run, (await answer.json()) as Changing);
    } catch {
      this.said.textContent = "The server does not answer: what is shown is the last that it said.";
    }
    this.later();
  }

  private take(run: Run, news: Changing): void {
    if (news.records < run.records) {
      location.reload(); // the run was resumed from an earlier step
      return;
    }
    const { curves, ...rest } = news;
    Object.assign(run, rest);
    const shown = this.state.runs[0];
    if (shown && curves.length) this.curves.extend(shown, curves.map(curveOf));
    const tiles = this.tiles(run);
    this.shown.replaceWith(tiles);
    this.shown = tiles;
    this.state.changed();
    this.tell();
  }

  private tell(): void {
    const running = this.run?.state === "running";
    this.button.hidden = !running || this.asked;
    const text = running
      ? this.asked ? "The run will stop after its step and save." : "The run goes on; this page follows it."
      : `The run is not running: ${this.run?.state ?? ""}.`;
    if (this.said.textContent !== text) this.said.textContent = text;
  }

  private async stop(): Promise<void> {
    try {
      const answer = await fetch("stop", { method: "POST" });
      this.asked = answer.ok;
    } catch {
      this.asked = false;
    }
    this.tell();
    if (!this.asked) {
      clear(this.said);
      this.said.textContent = "The run could not be asked to stop.";
    }
  }
}
