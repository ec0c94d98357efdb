// A map of rows and steps on a canvas; the pointer or the arrow keys choose a cell.

import { clear, freshId, h } from "./dom";
import { short, whole } from "./format";
import { colour, diverging, onTheme, ramp } from "./theme";

export interface Cells {
  title: string;
  rows: string[];
  steps: ArrayLike<number>;
  value: (row: number, column: number) => number;
  /** "log" and "linear" go from dark to bright; "signed" is pale at zero. */
  scale: "log" | "linear" | "signed";
  rowHeight: number;
  /** Labels of the axis, and their rows from the top; without them, each row shows its name. */
  ticks?: [number, string][];
  unit?: (value: number) => string;
  low?: number;
  /** What a column is called; "step" where nothing is given. */
  column?: string;
}

const FONT = "11px system-ui, sans-serif";
const FOOT = 20;
const LEVELS = 512;

export class HeatMap {
  readonly root: HTMLElement;
  private readonly canvas = h("canvas", {});
  private readonly host: HTMLElement;
  private readonly readout: HTMLElement;
  private readonly legend: HTMLElement;
  private cells: Cells | undefined;
  private low = 0;
  private high = 1;
  private left = 0;
  private width = 0;
  private zeros = false;
  private row = -1;
  private column = -1;
  private palette: string[] = [];
  private seen = true;
  private waits = false;

  /** Many maps of a long page are `lazy`: one is painted once it is near the window. */
  constructor(private readonly pick: (row: number, column: number) => void = () => undefined, lazy = false) {
    const id = freshId("map");
    this.host = h(
      "div",
      { class: "map", tabindex: 0, role: "group", "aria-describedby": id, keydown: (e) => this.key(e as KeyboardEvent) },
      this.canvas,
    );
    this.readout = h("div", { class: "readout", "aria-live": "polite", id });
    this.legend = h("div", { class: "scale" });
    this.root = h("div", { class: "mapframe" }, this.legend, this.host, this.readout);
    this.canvas.addEventListener("pointermove", (event) => this.point(event, false));
    this.canvas.addEventListener("click", (event) => this.point(event, true));
    new ResizeObserver(() => {
      const width = Math.floor(this.host.clientWidth);
      if (width && width !== this.width) {
        this.width = width;
        this.draw();
      }
    }).observe(this.host);
    onTheme(() => this.draw());
    if (!lazy) return;
    this.seen = false;
    new IntersectionObserver((entries) => {
      this.seen = entries.at(-1)?.isIntersecting ?? true;
      if (this.seen && this.waits) this.draw();
    }, { rootMargin: "300px" }).observe(this.host);
  }

  show(cells: Cells): void {
    this.cells = cells;
    this.row = this.column = -1;
    this.readout.textContent = "";
    this.range();
    this.host.setAttribute(
      "aria-label",
      `Map of ${cells.title}: ${cells.rows.length} rows, ${cells.steps.length} ${cells.column ?? "step"}s from ` +
        `${whole(cells.steps[0] ?? 0)} to ${whole(cells.steps[cells.steps.length - 1] ?? 0)}, ` +
        `from ${short(this.low)} to ${short(this.high)}. Arrow keys read cells, Enter chooses one.`,
    );
    this.drawLegend();
    this.draw();
  }

  private transform(value: number): number {
    return this.cells?.scale === "log" ? Math.log10(value) : value;
  }

  private range(): void {
    const cells = this.cells;
    if (!cells) return;
    let low = Infinity;
    let high = -Infinity;
    this.zeros = false;
    for (let row = 0; row < cells.rows.length; row++) {
      for (let column = 0; column < cells.steps.length; column++) {
        const value = cells.value(row, column);
        if (cells.scale === "log" && value === 0) this.zeros = true;
        if (!Number.isFinite(value) || (cells.scale === "log" && value <= 0)) continue;
        low = Math.min(low, value);
        high = Math.max(high, value);
      }
    }
    if (low > high) [low, high] = cells.scale === "log" ? [0.1, 1] : [0, 1];
    if (cells.low !== undefined) low = cells.low;
    if (cells.scale === "signed") {
      high = Math.max(Math.abs(low), Math.abs(high)) || 1;
      low = -high;
    }
    if (low === high) high = cells.scale === "log" ? low * 10 : low + 1;
    this.low = low;
    this.high = high;
  }

  private shade(value: number): string {
    const cells = this.cells;
    if (!cells || Number.isNaN(value)) return "";
    if (value === Infinity || value === -Infinity) return colour("bad");
    if (cells.scale === "signed") return this.level((1 + value / this.high) / 2);
    if (cells.scale === "log" && value <= 0) return colour("zero");
    const [low, high] = [this.transform(this.low), this.transform(this.high)];
    return this.level((this.transform(value) - low) / (high - low));
  }

  /** The colour of a place between 0 and 1: computing it for each of thousands of cells would take longer than the rest. */
  private level(share: number): string {
    return this.palette[Math.round(Math.min(Math.max(share, 0), 1) * LEVELS)] ?? "";
  }

  private drawLegend(): void {
    clear(this.legend);
    const cells = this.cells;
    if (!cells) return;
    const bar = h("canvas", { class: "bar", "aria-hidden": "true" });
    bar.width = 120;
    bar.height = 10;
    const context = bar.getContext("2d");
    for (let x = 0; x < 120; x++) {
      if (!context) break;
      context.fillStyle = cells.scale === "signed" ? diverging(x / 60 - 1) : ramp(x / 119);
      context.fillRect(x, 0, 1, 10);
    }
    const text = (value: number): string => (cells.unit ? cells.unit(value) : short(value));
    this.legend.append(h("span", {}, text(this.low)), bar, h("span", {}, text(this.high)));
    this.legend.append(h("span", { class: "note" }, cells.scale === "log" ? "powers of ten" : ""));
    if (this.zeros) this.legend.append(h("span", { class: "mark zero", "aria-hidden": "true" }), h("span", { class: "note" }, "exactly 0"));
  }

  private draw(): void {
    const cells = this.cells;
    const context = this.canvas.getContext("2d");
    if (!cells || !context || !this.width) return;
    this.waits = !this.seen;
    if (this.waits) {
      this.canvas.style.height = `${cells.rows.length * cells.rowHeight + FOOT}px`;
      return;
    }
    this.palette = Array.from({ length: LEVELS + 1 }, (_, at) => (cells.scale === "signed" ? diverging((2 * at) / LEVELS - 1) : ramp(at / LEVELS)));
    const ticks = cells.ticks ?? cells.rows.map((name, row): [number, string] => [row + 0.5, name]);
    context.font = FONT;
    let widest = 0;
    for (const [, text] of ticks) widest = Math.max(widest, context.measureText(text).width);
    this.left = Math.min(widest + 10, this.width * 0.4);
    const height = cells.rows.length * cells.rowHeight;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round((height + FOOT) * ratio);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${height + FOOT}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.paint(context, cells);
    context.font = FONT;
    context.textBaseline = "middle";
    context.textAlign = "right";
    context.fillStyle = colour("muted");
    for (const [place, text] of ticks) {
      context.fillText(fitted(context, text, this.left - 10), this.left - 6, Math.max(place * cells.rowHeight, 5));
    }
    this.drawSteps(context, cells, height);
    this.mark(context, cells);
  }

  private paint(context: CanvasRenderingContext2D, cells: Cells): void {
    const gap = cells.rowHeight > 8 ? 1 : 0;
    for (let row = 0; row < cells.rows.length; row++) {
      for (let column = 0; column < cells.steps.length; column++) {
        const shade = this.shade(cells.value(row, column));
        if (!shade) continue;
        const [from, to] = this.span(cells, column);
        context.fillStyle = shade;
        context.fillRect(from, row * cells.rowHeight, to - from + 0.5, cells.rowHeight - gap);
      }
    }
  }

  /** Columns reach halfway to their neighbours. */
  private span(cells: Cells, column: number): [number, number] {
    const { steps } = cells;
    const at = steps[column] ?? 0;
    const before = steps[column - 1] ?? at - ((steps[1] ?? at + 1) - (steps[0] ?? at));
    const after = steps[column + 1] ?? at + (at - before);
    return [this.x(cells, (before + at) / 2), this.x(cells, (at + after) / 2)];
  }

  private ends(cells: Cells): [number, number] {
    const { steps } = cells;
    const n = steps.length;
    const first = steps[0] ?? 0;
    const last = steps[n - 1] ?? 1;
    const head = n > 1 ? ((steps[1] ?? 0) - first) / 2 : 0.5;
    const tail = n > 1 ? (last - (steps[n - 2] ?? 0)) / 2 : 0.5;
    return [first - head, last + tail];
  }

  private x(cells: Cells, step: number): number {
    const [first, last] = this.ends(cells);
    return this.left + ((step - first) / (last - first)) * (this.width - this.left - 4);
  }

  private drawSteps(context: CanvasRenderingContext2D, cells: Cells, height: number): void {
    const n = cells.steps.length;
    const wanted = Math.max(Math.min(Math.floor((this.width - this.left) / 90), n), 2);
    context.textBaseline = "top";
    for (let i = 0; i < wanted; i++) {
      const step = cells.steps[Math.round((i * (n - 1)) / (wanted - 1))] ?? 0;
      context.textAlign = i === 0 ? "left" : i === wanted - 1 ? "right" : "center";
      context.fillText(whole(step), this.x(cells, step), height + 5);
      if (n === 1) break;
    }
  }

  private mark(context: CanvasRenderingContext2D, cells: Cells): void {
    if (this.row < 0 || this.column < 0) return;
    const [from, to] = this.span(cells, this.column);
    context.strokeStyle = colour("ink");
    context.lineWidth = 2;
    context.strokeRect(from, this.row * cells.rowHeight, Math.max(to - from, 3), cells.rowHeight - 1);
  }

  private choose(row: number, column: number, picked: boolean): void {
    const cells = this.cells;
    if (!cells) return;
    this.row = Math.min(Math.max(row, 0), cells.rows.length - 1);
    this.column = Math.min(Math.max(column, 0), cells.steps.length - 1);
    const value = cells.value(this.row, this.column);
    const text = Number.isNaN(value) ? "not known" : cells.unit ? cells.unit(value) : short(value);
    this.readout.textContent = `${cells.column ?? "step"} ${whole(cells.steps[this.column] ?? 0)}  ·  ${cells.rows[this.row] ?? ""}  ·  ${text}`;
    this.draw();
    if (picked) this.pick(this.row, this.column);
  }

  private point(event: MouseEvent, picked: boolean): void {
    const cells = this.cells;
    if (!cells) return;
    const box = this.canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top) / cells.rowHeight);
    const x = event.clientX - box.left;
    if (row < 0 || row >= cells.rows.length || x < this.left) return;
    let column = 0;
    while (column < cells.steps.length - 1 && this.span(cells, column)[1] < x) column += 1;
    if (picked || row !== this.row || column !== this.column) this.choose(row, column, picked);
  }

  private key(event: KeyboardEvent): void {
    const cells = this.cells;
    if (!cells) return;
    const row = Math.max(this.row, 0);
    const column = this.column < 0 ? cells.steps.length - 1 : this.column;
    const moves: Record<string, [number, number]> = {
      ArrowUp: [row - 1, column],
      ArrowDown: [this.row < 0 ? 0 : row + 1, column],
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      Home: [row, 0],
      End: [row, cells.steps.length - 1],
      Enter: [row, column],
    };
    const to = moves[event.key];
    if (!to) return;
    event.preventDefault();
    this.choose(to[0], to[1], event.key === "Enter");
  }
}

/** Names of layers differ at the end, so cut them at the front. */
function fitted(context: CanvasRenderingContext2D, text: string, room: number): string {
  if (context.measureText(text).width <= room) return text;
  let kept = text;
  while (kept.length > 1 && context.measureText(`…${kept}`).width > room) kept = kept.slice(1);
  return `…${kept}`;
}
