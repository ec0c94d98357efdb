// The log over the steps: one chart for each quantity, with every run in it.

import { add, clear, h, labelled, select } from "./dom";
import { curveOf, type Curve } from "./data";
import { heading, percent, words } from "./format";
import { Plot, type Line, type View } from "./plot";
import type { Shown, State } from "./state";
import { series } from "./theme";

const FIRST = ["loss", "accuracy"];
const LAST = ["gradient norm", "rate", "steps_per_second"];
const TITLES: Record<string, string> = { rate: "Learning rate", steps_per_second: "Throughput, steps per second" };
const PHASES = "Where the time goes";

export class Curves {
  readonly root: HTMLElement;
  private readonly grid = h("div", { class: "grid" });
  private readonly plots = new Map<string, Plot>();
  private readonly view: View = { log: false, smoothing: 0, time: false };
  private readonly curves = new Map<Shown, Curve[]>();

  constructor(private readonly state: State) {
    this.root = h("section", { id: "curves", "aria-labelledby": "curves-title" });
    add(this.root, h("h2", { id: "curves-title" }, "Curves"), this.controls(), this.grid);
    for (const run of state.runs) this.curves.set(run, run.data.curves.map(curveOf));
    state.onChange(() => this.draw());
    this.draw();
  }

  /** Take over points of later steps. */
  extend(run: Shown, more: Curve[]): void {
    const known = this.curves.get(run) ?? [];
    for (const one of more) {
      const old = known.find((curve) => curve.event === one.event && curve.name === one.name);
      if (!old) {
        known.push(one);
        continue;
      }
      const last = old.steps[old.steps.length - 1] ?? -Infinity;
      one.steps.forEach((step, i) => {
        if (step <= last) return;
        old.steps.push(step);
        old.seconds.push(one.seconds[i] ?? NaN);
        old.values.push(one.values[i] ?? NaN);
      });
    }
    this.curves.set(run, known);
    this.draw();
  }

  private controls(): HTMLElement {
    const smoothing = h("input", { type: "range", min: 0, max: 0.99, step: 0.01, value: 0 });
    const amount = h("output", {}, "0");
    smoothing.addEventListener("input", () => {
      this.view.smoothing = Number(smoothing.value);
      amount.textContent = smoothing.value;
      this.draw();
    });
    const log = h("input", { type: "checkbox" });
    log.addEventListener("change", () => {
      this.view.log = log.checked;
      this.draw();
    });
    const axis = select(["steps", "time"], "steps", (value) => {
      this.view.time = value === "time";
      this.draw();
    });
    return h(
      "div",
      { class: "controls" },
      labelled("over", axis),
      labelled("log scale", log),
      labelled("smoothing", smoothing, amount),
      h("span", { class: "note" }, "drag to zoom, double click or Escape to undo"),
    );
  }

  private draw(): void {
    const groups = this.groups();
    for (const [name, lines] of groups) {
      let plot = this.plots.get(name);
      if (!plot) {
        const phases = name === PHASES;
        plot = new Plot(TITLES[name] ?? heading(name), {
          sync: "curves",
          log: phases ? false : undefined,
          ...(phases ? { unit: percent, note: "shares of the time between two records" } : {}),
        });
        this.plots.set(name, plot);
      }
      plot.show(lines, this.view);
    }
    const wanted = [...groups.keys()].map((name) => this.plots.get(name)?.root);
    if (wanted.some((root, i) => this.grid.children[i] !== root) || this.grid.children.length !== wanted.length) {
      clear(this.grid);
      add(this.grid, ...wanted);
    }
    if (!wanted.length) add(this.grid, h("p", { class: "empty" }, "This run has logged nothing yet."));
  }

  /** The lines of each chart, by its name, in the order in which people look at them. */
  private groups(): Map<string, Line[]> {
    const found = new Map<string, Line[]>();
    const runs = this.state.visible();
    for (const run of runs) {
      const curves = this.curves.get(run) ?? [];
      const names = [...new Set(curves.map((curve) => curve.name))].filter((name) => !name.endsWith("_seconds"));
      for (const name of names) {
        const same = curves.filter((curve) => curve.name === name);
        if (same.every((curve) => curve.values.length < 2)) continue;
        const lines = found.get(name) ?? [];
        same.forEach((curve, place) => lines.push(this.line(run, curve, place, same.length)));
        found.set(name, lines);
      }
      if (runs.length === 1) {
        const phases = this.phases(curves);
        if (phases.length > 1) found.set(PHASES, phases);
      }
    }
    const rank = (name: string): number => {
      if (FIRST.includes(name)) return FIRST.indexOf(name);
      if (name === PHASES) return 99;
      return LAST.includes(name) ? 50 + LAST.indexOf(name) : 10;
    };
    return new Map([...found].sort(([a], [b]) => rank(a) - rank(b)));
  }

  private line(run: Shown, curve: Curve, place: number, count: number): Line {
    const single = this.state.runs.length === 1;
    const what = words(curve.event);
    return {
      label: single ? what : count > 1 ? `${run.data.name} ${what}` : run.data.name,
      colour: () => series(single ? place : run.place),
      x: this.view.time ? curve.seconds : curve.steps,
      y: curve.values,
      smooth: curve.values.length > 60,
      dots: curve.values.length <= 60,
      ...(!single && place ? { dash: [5, 4] } : {}),
    };
  }

  private phases(curves: Curve[]): Line[] {
    const parts = curves.filter((curve) => curve.event === "train" && curve.name.endsWith("_seconds"));
    const first = parts[0];
    if (!first || parts.some((part) => part.values.length !== first.values.length)) return [];
    const totals = first.values.map((_, i) => parts.reduce((sum, part) => sum + (part.values[i] ?? 0), 0));
    return parts.map((part, place) => ({
      label: words(part.name.replace("_seconds", "")),
      colour: () => series(place),
      x: this.view.time ? part.seconds : part.steps,
      y: part.values.map((value, i) => value / (totals[i] || 1)),
      smooth: true,
    }));
  }
}
