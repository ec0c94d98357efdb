// A page that follows its run: it asks its server for new data, and can ask the run to stop.

import type { Curves } from "./curves";
import { appendHistograms, appendLayers, lastStep } from "./append";
import { curveOf, type Changing, type Histograms, type Layers, type Run } from "./data";
import { clear, h } from "./dom";
import type { State } from "./state";

export class Live {
  readonly root: HTMLElement;
  private readonly said = h("output", { "aria-live": "polite" });
  private readonly button = h("button", { type: "button", class: "small", click: () => void this.stop() }, "stop the run");
  private asked = false;
  /** The last watched step when layers were first shown: histograms keep their width from then on. */
  private first = 0;

  constructor(
    private readonly state: State,
    private readonly curves: Curves,
    private readonly tiles: (run: Run | undefined) => HTMLElement,
    private shown: HTMLElement,
    private readonly seconds: number,
  ) {
    this.root = h("div", { class: "live", role: "region", "aria-label": "The run" }, this.said, this.button,
      h("span", { class: "note" }, "Layers follow with each checkpoint."));
    if (this.run?.layers) this.first = lastStep(this.run.layers);
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
      const watched = run.layers ? `&first=${this.first}&last=${lastStep(run.layers)}` : "";
      const answer = await fetch(`data?after=${run.records}${watched}`, { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.statusText);
      this.take(run, (await answer.json()) as Changing);
    } catch {
      this.said.textContent = "The server does not answer; the page shows its last data.";
    }
    this.later();
  }

  private take(run: Run, news: Changing): void {
    if (news.records < run.records) {
      location.reload(); // the run was resumed from an earlier step
      return;
    }
    const { curves, layers, histograms, ...rest } = news;
    Object.assign(run, rest);
    this.watch(run, layers, histograms);
    const shown = this.state.runs[0];
    if (shown && curves.length) this.curves.extend(shown, curves.map(curveOf));
    const tiles = this.tiles(run);
    this.shown.replaceWith(tiles);
    this.shown = tiles;
    this.state.changed();
    this.tell();
  }

  /** Append the new samples; the very first ones are taken as they are. */
  private watch(run: Run, layers: Layers | null | undefined, histograms: Histograms | null | undefined): void {
    if (!layers) return;
    if (!run.layers) {
      run.layers = layers;
      run.histograms = histograms ?? null;
      this.first = lastStep(layers);
      return;
    }
    appendLayers(run.layers, layers);
    if (run.histograms && histograms) appendHistograms(run.histograms, histograms);
    this.state.layersGrew();
  }

  private tell(): void {
    const running = this.run?.state === "running";
    if (!running) this.asked = false; // it may be resumed
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
      this.said.textContent = "The request to stop did not reach the run.";
    }
  }
}
