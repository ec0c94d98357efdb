// A training loop while it runs: its loss, its values, its boundary or samples; it can be paused and stepped.

import { unpack } from "../data";
import { add, h } from "../dom";
import { short, whole } from "../format";
import { Plot, type Line } from "../plot";
import { colour, diverging, onTheme, series } from "../theme";
import type { Server } from "./server";
import type { Grid, LoopState } from "./types";

const MOST = 4000;
const SIDE = 200;

export class Training {
  readonly root = h("section", { class: "training", "aria-label": "The training loop" });
  private readonly plot = new Plot("Loss", { height: 150 });
  private readonly said = h("output", {});
  private readonly canvas = h("canvas", { class: "boundary", role: "img", "aria-label": "What the model says of each point" });
  private readonly samples = h("pre", { class: "samples", tabindex: 0, "aria-label": "Samples" });
  private readonly pauseButton = h("button", { type: "button", class: "small", click: () => this.pause(!this.paused) }, "pause");
  private readonly stepButton = h("button", { type: "button", class: "small", click: () => this.step() }, "one step");
  private steps: number[] = [];
  private losses: number[] = [];
  private waiting = 0;
  private paused = false;
  private grid: Grid | null = null;

  constructor(private readonly server: Server | null) {
    add(this.root,
      h("div", { class: "controls" }, h("h2", {}, "Training"), this.said, server ? this.pauseButton : null, server ? this.stepButton : null),
      h("div", { class: "training-parts" }, this.plot.root, this.canvas, this.samples));
    this.canvas.hidden = this.samples.hidden = this.root.hidden = true;
    onTheme(() => this.grid && this.boundary(this.grid));
  }

  /** A new run begins; what a loop before showed stays until the first step of another, or the end. */
  begin(): void {
    this.steps = [];
    this.losses = [];
    this.paused = false;
    this.state();
  }

  progress(loop: LoopState): void {
    const last = this.steps.at(-1);
    if (last !== undefined && loop.step < last) this.begin(); // a second loop of the same program
    this.root.hidden = false;
    const since = loop.since ?? (loop.loss === null ? [] : [[loop.step, loop.loss] as const]);
    for (const [step, loss] of since) {
      this.steps.push(step);
      this.losses.push(loss);
    }
    this.thin();
    const values = Object.entries(loop.values ?? {}).map(([name, value]) => `${name} ${value === null ? "NaN" : short(value)}`);
    const loss = loop.loss === null ? [] : [`loss ${short(loop.loss)}`];
    this.said.textContent = [`step ${whole(loop.step)}${loop.total ? ` of ${whole(loop.total)}` : ""}`, ...loss, ...values].join("  ·  ");
    if (loop.grid) this.picture(loop.grid);
    if (!this.waiting) this.waiting = requestAnimationFrame(() => this.draw());
  }

  /** The run is over: nothing can be paused any more. A run without steps has no loop to show. */
  end(): void {
    this.paused = false;
    if (!this.steps.length) this.root.hidden = true;
    this.state(true);
  }

  /** Of a long loop every second point of the older half goes. */
  private thin(): void {
    if (this.steps.length <= MOST) return;
    const keep = (_: number, at: number): boolean => at > MOST / 2 || at % 2 === 0;
    this.steps = this.steps.filter(keep);
    this.losses = this.losses.filter(keep);
  }

  private draw(): void {
    this.waiting = 0;
    const line: Line = { label: "loss", colour: () => series(0), x: this.steps, y: this.losses };
    const known = this.losses.filter((value) => value > 0 && Number.isFinite(value));
    const wide = known.length === this.losses.length && Math.max(...known) > 50 * Math.min(...known);
    this.plot.show([line], { log: wide, smoothing: 0, time: false });
  }

  private picture(grid: Grid): void {
    this.canvas.hidden = grid.data === undefined && !grid.points?.length;
    this.grid = grid;
    if (!this.canvas.hidden) this.boundary(grid);
    this.samples.hidden = !grid.samples?.length;
    this.samples.textContent = grid.samples?.join("\n") ?? "";
  }

  private boundary(grid: Grid): void {
    const context = this.canvas.getContext("2d");
    if (!context) return;
    this.canvas.width = this.canvas.height = SIDE * 2;
    context.scale(2, 2);
    context.fillStyle = colour("raised");
    context.fillRect(0, 0, SIDE, SIDE);
    const [rows, columns] = [grid.rows ?? 0, grid.columns ?? 0];
    const data = grid.data && rows * columns ? unpack({ f4: grid.data }) : new Float32Array();
    const [wide, tall] = [SIDE / columns, SIDE / rows];
    const scores = data.some((value: number) => value < 0 || value > 1); // else they are probabilities
    data.forEach((value: number, at: number) => {
      context.fillStyle = Number.isFinite(value) ? diverging(scores ? Math.tanh(value / 2) : 2 * value - 1) : colour("bad");
      context.fillRect((at % columns) * wide, Math.floor(at / columns) * tall, wide + 0.5, tall + 0.5);
    });
    const low = grid.low ?? [-1, -1];
    const high = grid.high ?? [1, 1];
    for (const [x, y, label] of grid.points ?? []) {
      context.beginPath();
      context.arc(((x - low[0]) / (high[0] - low[0])) * SIDE, (1 - (y - low[1]) / (high[1] - low[1])) * SIDE, 3, 0, 7);
      context.fillStyle = label > 0.5 ? colour("above") : colour("below");
      context.fill();
      context.strokeStyle = colour("ground");
      context.stroke();
    }
  }

  // --- pausing ----------------------------------------------------------------------------------------------

  private state(over = false): void {
    this.pauseButton.textContent = this.paused ? "go on" : "pause";
    this.pauseButton.disabled = over;
    this.stepButton.disabled = over || !this.paused;
  }

  private pause(paused: boolean): void {
    this.paused = paused;
    this.state();
    this.server?.send("pause", { paused }).catch(() => undefined); // the page says elsewhere that the server is gone
  }

  private step(): void {
    this.server?.send("step").catch(() => undefined);
  }
}
