// A chart of lines: uPlot, with a legend, values and zoom that can be used from a keyboard.

import uPlot from "uplot";
import { add, clear, freshId, h } from "./dom";
import { axisNumbers, duration, short, whole } from "./format";
import { colour, onTheme } from "./theme";

export interface Line {
  label: string;
  colour: () => string;
  x: number[];
  y: number[];
  dash?: number[];
  dots?: boolean;
  /** Smooth the line, and show the original behind it. */
  smooth?: boolean;
}

export interface View {
  log: boolean;
  smoothing: number;
  time: boolean;
}

const HEIGHT = 220;
/** Steps between the numbers of an axis, up to the largest that a loss reaches: uPlot knows none above 1e32. */
const STEPS = Array.from({ length: 341 }, (_, at) => [1, 2, 2.5, 5].map((one) => Number(`${one}e${at - 32}`))).flat();

export class Plot {
  readonly root: HTMLElement;
  private readonly host: HTMLElement;
  private readonly legend: HTMLElement;
  private readonly readout: HTMLElement;
  private readonly numbers: HTMLElement;
  private readonly hidden = new Set<string>();
  private chart: uPlot | undefined;
  private lines: Line[] = [];
  private view: View = { log: false, smoothing: 0, time: false };
  private cursor = -1;
  private width = 0;

  constructor(
    private readonly title: string,
    private readonly options: { note?: string; log?: boolean | undefined; height?: number; sync?: string; unit?: (v: number) => string } = {},
  ) {
    const id = freshId("chart");
    this.legend = h("div", { class: "legend" });
    this.readout = h("div", { class: "readout", "aria-live": "polite", id });
    this.host = h("div", {
      class: "plot",
      tabindex: 0,
      role: "group",
      "aria-describedby": id,
      keydown: (event) => this.key(event as KeyboardEvent),
    });
    this.numbers = h("div", { class: "scroll", tabindex: 0 });
    const details = h("details", { class: "numbers" }, h("summary", {}, "numbers"), this.numbers);
    details.addEventListener("toggle", () => details.open && this.tabulate());
    this.root = h(
      "figure",
      { class: "chart" },
      h("figcaption", {}, h("h3", {}, title), options.note ? h("span", { class: "note" }, options.note) : null),
      this.legend,
      this.host,
      this.readout,
      details,
    );
    new ResizeObserver(() => this.resize()).observe(this.host);
    onTheme(() => this.draw());
  }

  show(lines: Line[], view: View): void {
    this.lines = lines;
    if (this.time !== view.time) this.zoomed = false;
    this.time = view.time;
    this.view = view;
    this.draw();
  }

  private get log(): boolean {
    return this.options.log ?? this.view.log;
  }

  private resize(): void {
    const width = Math.floor(this.host.clientWidth);
    if (!width || width === this.width) return;
    this.width = width;
    if (this.chart) this.chart.setSize({ width, height: this.options.height ?? HEIGHT });
    else this.draw();
  }

  private shown(): Line[] {
    return this.lines.filter((line) => !this.hidden.has(line.label));
  }

  private draw(): void {
    if (!this.width) return;
    const focused = this.chart?.scales["x"];
    const zoom = focused && this.zoomed ? { min: focused.min ?? 0, max: focused.max ?? 1 } : undefined;
    this.chart?.destroy();
    this.chart = undefined;
    this.cursor = -1;
    this.drawLegend();
    const lines = this.shown();
    this.host.setAttribute("aria-label", this.summary(lines));
    clear(this.host);
    if (!lines.some((line) => line.y.some((value) => this.drawable(value)))) {
      add(this.host, h("p", { class: "empty" }, this.lines.length ? "nothing to draw here" : "nothing was recorded"));
      return;
    }
    const tables: uPlot.AlignedData[] = [];
    const series: uPlot.Series[] = [{}];
    for (const line of lines) {
      const smoothed = line.smooth === true && this.view.smoothing > 0;
      const kept = collapse(line.x, line.y.map((value) => (this.drawable(value) ? value : null)));
      if (smoothed) {
        tables.push([kept.x, kept.y]);
        series.push(this.series(line, `${line.label} as recorded`, true));
      }
      tables.push([kept.x, smoothed ? smooth(kept.y, this.view.smoothing) : kept.y]);
      series.push(this.series(line, line.label, false));
    }
    this.chart = new uPlot(this.config(series), uPlot.join(tables), this.host);
    if (zoom) this.chart.setScale("x", zoom);
  }

  private zoomed = false;
  private time = false;

  private drawable(value: number): boolean {
    return Number.isFinite(value) && (!this.log || value > 0);
  }

  private series(line: Line, label: string, pale: boolean): uPlot.Series {
    const ink = line.colour();
    return {
      label,
      stroke: pale ? `${ink}55` : ink,
      width: pale ? 1 : 1.6,
      ...(line.dash ? { dash: line.dash } : {}),
      spanGaps: false,
      points: { show: line.dots === true || line.y.length < 2, size: 5, fill: ink },
    };
  }

  private config(series: uPlot.Series[]): uPlot.Options {
    const ink = colour("muted");
    const grid = { stroke: colour("line"), width: 1 };
    const axis = { stroke: ink, grid, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    return {
      width: this.width,
      height: this.options.height ?? HEIGHT,
      legend: { show: false },
      padding: [8, 22, 0, 0],
      scales: { x: { time: false }, y: this.log ? { distr: 3 } : {} },
      cursor: { drag: { x: true, y: false }, ...(this.options.sync ? { sync: { key: this.options.sync } } : {}) },
      series,
      axes: [
        { ...axis, values: (_, splits) => splits.map((v) => (this.time || Number.isInteger(v) ? this.place(v) : "")), size: 28, space: 70 },
        { ...axis, values: axisNumbers, size: 58, incrs: STEPS, ...(this.log ? { splits: powers, filter: (_, found) => found } : {}) },
      ],
      hooks: {
        setCursor: [(chart) => this.read(chart)],
        setScale: [
          (chart, key) => {
            if (key !== "x") return;
            const xs = chart.data[0];
            const { min, max } = chart.scales["x"] ?? {};
            // Around a single point the scale is wider than the data.
            this.zoomed = (min ?? 0) > (xs[0] ?? 0) || (max ?? 0) < (xs[xs.length - 1] ?? 0);
          },
        ],
      },
    };
  }

  private place(value: number): string {
    return this.view.time ? duration(value) : whole(value);
  }

  private value(value: number): string {
    return this.options.unit ? this.options.unit(value) : short(value);
  }

  private read(chart: uPlot): void {
    const at = chart.cursor.idx;
    if (at === null || at === undefined) {
      this.readout.textContent = "";
      return;
    }
    const x = chart.data[0][at];
    if (x === undefined) return;
    const parts = [this.view.time ? `after ${duration(x)}` : `step ${whole(x)}`];
    chart.series.forEach((one, place) => {
      if (!place || String(one.label).endsWith(" as recorded")) return;
      const near = nearest(chart.data[place] ?? [], at);
      if (near !== null) parts.push(`${String(one.label)} ${this.value(near)}`);
    });
    const rest = parts.length - 9;
    this.readout.textContent = parts.slice(0, 9).join("  ·  ") + (rest > 0 ? `  and ${rest} more` : "");
  }

  /** Arrow keys move from point to point, Home and End to the ends, Escape undoes a zoom. */
  private key(event: KeyboardEvent): void {
    const chart = this.chart;
    if (!chart || event.target !== this.host) return;
    const last = chart.data[0].length - 1;
    const jump = event.shiftKey ? Math.max(Math.round(last / 20), 1) : 1;
    const now = this.cursor < 0 ? last : this.cursor;
    const moves: Record<string, number> = { ArrowLeft: now - jump, ArrowRight: now + jump, Home: 0, End: last };
    if (event.key === "Escape") {
      chart.setScale("x", { min: chart.data[0][0] ?? 0, max: chart.data[0][last] ?? 1 });
    } else if (event.key in moves) {
      this.cursor = Math.min(Math.max(moves[event.key] ?? 0, 0), last);
      chart.setCursor({ left: chart.valToPos(chart.data[0][this.cursor] ?? 0, "x"), top: 10 });
    } else return;
    event.preventDefault();
  }

  private drawLegend(): void {
    clear(this.legend);
    if (this.lines.length < 2 && !this.hidden.size) return;
    for (const line of this.lines) {
      const mark = h("span", { class: line.dash ? "mark dashed" : "mark", "aria-hidden": "true" });
      mark.style.borderColor = line.colour();
      const button = h(
        "button",
        { type: "button", class: "key", "aria-pressed": this.hidden.has(line.label) ? "false" : "true" },
        mark,
        line.label,
      );
      button.addEventListener("click", () => {
        if (!this.hidden.delete(line.label)) this.hidden.add(line.label);
        const place = this.lines.indexOf(line);
        this.draw();
        (this.legend.children[place] as HTMLElement | undefined)?.focus();
      });
      this.legend.appendChild(button);
    }
  }

  private summary(lines: Line[]): string {
    const parts = lines.slice(0, 8).map((line) => {
      const known = line.y.filter(Number.isFinite);
      if (!known.length) return `${line.label}: nothing`;
      const low = known.reduce((a, b) => Math.min(a, b));
      const high = known.reduce((a, b) => Math.max(a, b));
      return `${line.label}: from ${this.value(known[0] ?? NaN)} to ${this.value(known[known.length - 1] ?? NaN)}, between ${this.value(low)} and ${this.value(high)}`;
    });
    return `Chart of ${this.title}. ${parts.join("; ")}. Arrow keys read values.`;
  }

  private tabulate(): void {
    clear(this.numbers);
    const body = h("tbody", {});
    for (const line of this.shown()) {
      const stride = Math.max(Math.ceil(line.x.length / 25), 1);
      for (let i = 0; i < line.x.length; i += stride) {
        const cells = [line.label, this.place(line.x[i] ?? NaN), this.value(line.y[i] ?? NaN)];
        body.appendChild(h("tr", {}, ...cells.map((cell) => h("td", {}, cell))));
      }
    }
    const head = ["line", this.view.time ? "time" : "step", "value"].map((text) => h("th", { scope: "col" }, text));
    add(this.numbers, h("table", {}, h("thead", {}, h("tr", {}, ...head)), body));
    this.numbers.setAttribute("role", "region");
    this.numbers.setAttribute("aria-label", `Numbers of ${this.title}`);
  }
}

/** The grid lines of a log axis: powers of ten, and 2 and 5 times them if there are few. */
function powers(chart: uPlot, _axis: number, low: number, high: number): number[] {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const room = Math.max(Math.floor(chart.height / 40), 3);
  const every = Math.max(Math.ceil((last - first) / room), 1);
  const between = last - first <= 2 ? [1, 2, 5] : [1];
  const found: number[] = [];
  for (let power = first; power <= last; power += every) {
    for (const factor of between) found.push(Number(`${factor}e${power}`));
  }
  return found.filter((value) => value >= low && value <= high);
}

/** Keep the last of several points at one place; uPlot needs places that rise. */
function collapse(x: number[], y: (number | null)[]): { x: number[]; y: (number | null)[] } {
  const found = { x: [] as number[], y: [] as (number | null)[] };
  for (let i = 0; i < x.length; i++) {
    const place = x[i] ?? NaN;
    if (Number.isNaN(place)) continue;
    if (found.x.length && found.x[found.x.length - 1] === place) found.y[found.y.length - 1] = y[i] ?? null;
    else {
      found.x.push(place);
      found.y.push(y[i] ?? null);
    }
  }
  return found;
}

/** An exponential average that begins without a bias towards zero. */
export function smooth(values: (number | null)[], weight: number): (number | null)[] {
  let mean = 0;
  let known = 0;
  return values.map((value) => {
    if (value === null) return null;
    mean = weight * mean + (1 - weight) * value;
    known = weight * known + (1 - weight);
    return mean / known;
  });
}

/** The value at a place, or the one before it: lines have points at different steps. */
function nearest(ys: ArrayLike<number | null | undefined>, at: number): number | null {
  for (let i = at; i >= 0 && i > at - 400; i--) {
    const value = ys[i];
    if (value !== undefined) return value;
  }
  return null;
}
