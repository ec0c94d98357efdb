// Layer by layer: a map of any quantity, lines of the three that matter most, and histograms.

import { add, clear, h, labelled, select } from "./dom";
import { unpack, type Histograms, type Layers, type Quantity } from "./data";
import { heading, percent, roundNumbers, short, whole } from "./format";
import { HeatMap } from "./heatmap";
import { Plot, type Line } from "./plot";
import type { State } from "./state";
import { colour, depth, onTheme } from "./theme";

const LINES: [string, string, string][] = [
  ["update ratio", "Update ratio of each layer", "how far a step moves the weights, over their norm: healthy near 0.001"],
  ["gradient norm", "Gradient norm of each layer", ""],
  ["parameter norm", "Weight norm of each layer", ""],
];
const MOST = 12;
const SIGNED = new Set(["gradient mean", "parameter mean", "activation mean"]);
const LINEAR = new Set(["gradient zeros", "activation dead", "activation saturated", "gradient nonfinite", "activation nonfinite"]);

export class LayersView {
  readonly root: HTMLElement;
  private readonly body = h("div", {});
  private readonly map = new HeatMap((row, column) => this.picked(row, column));
  private readonly plots = LINES.map(([, title, note]) => new Plot(title, { log: true, ...(note ? { note } : {}) }));
  private readonly histograms = new HistogramsView();
  private quantity = "update ratio";
  private filter = "";
  private rows: number[] = [];

  constructor(private readonly state: State) {
    this.root = h("section", { id: "layers", "aria-labelledby": "layers-title" });
    add(this.root, h("h2", { id: "layers-title" }, "Layers"), this.body);
    state.onChange(() => this.build());
    state.layerShown = (name) => this.showOnly(name);
    state.layersGrew = () => this.grew();
    this.build();
  }

  private built: unknown;

  private showOnly(name: string): void {
    this.filter = name;
    const layers = this.state.focus?.data.layers;
    const fits = layers?.quantities.find((one) => one.name === this.quantity && this.names(layers, one).includes(name));
    const other = layers?.quantities.find((one) => this.names(layers, one).includes(name));
    if (!fits && other) this.quantity = other.name;
    this.built = undefined;
    this.build();
  }

  private grew(): void {
    const layers = this.state.focus?.data.layers;
    if (!layers) return;
    this.draw(layers);
    if (this.state.focus?.data.histograms) this.histograms.redraw();
  }

  private build(): void {
    const layers = this.state.focus?.data.layers ?? null;
    if (this.built === (layers ?? this.state.focus)) return;
    this.built = layers ?? this.state.focus;
    clear(this.body);
    if (!layers?.quantities.length) {
      add(this.body, h("p", { class: "empty" }, "Gradients and weights were not recorded. Train with ",
        h("code", {}, "--monitor"), " or ", h("code", {}, "--doctor"), ", or give the trainer a GradientMonitor, to see them here."));
      return;
    }
    if (!layers.quantities.some((one) => one.name === this.quantity)) this.quantity = layers.quantities[0]?.name ?? "";
    const filter = h("input", { type: "search", placeholder: "part of a name", value: this.filter });
    filter.addEventListener("input", () => {
      this.filter = filter.value;
      this.draw(layers);
    });
    const quantity = select(layers.quantities.map((one) => one.name), this.quantity, (value) => {
      this.quantity = value;
      this.draw(layers);
    });
    const note = h("p", { class: "note", id: "quantity-note" });
    add(this.body, h("div", { class: "controls" }, labelled("quantity", quantity), labelled("layers", filter)), note, this.map.root);
    if (layers.left_out) add(this.body, h("p", { class: "note" }, `${layers.left_out} layers are left out of this page, evenly chosen.`));
    add(this.body, h("div", { class: "grid" }, ...this.plots.map((plot) => plot.root)));
    const histograms = this.state.focus?.data.histograms;
    if (histograms) {
      this.histograms.build(histograms);
      add(this.body, this.histograms.root);
    }
    this.draw(layers);
  }

  private names(layers: Layers, quantity: Quantity): string[] {
    return quantity.of === "parameter" ? layers.parameters : layers.activations;
  }

  private draw(layers: Layers): void {
    const quantity = layers.quantities.find((one) => one.name === this.quantity);
    if (!quantity) return;
    const names = this.names(layers, quantity);
    const wanted = this.filter.toLowerCase();
    this.rows = names.flatMap((name, at) => (name.toLowerCase().includes(wanted) ? [at] : []));
    const steps = unpack(layers.steps);
    const values = unpack(quantity.values);
    const rows = this.rows;
    const note = this.body.querySelector("#quantity-note");
    if (note) note.textContent = rows.length ? heading(quantity.what) + "." : "No layer has this in its name.";
    this.map.root.hidden = !rows.length;
    if (rows.length) {
      this.map.show({
        title: quantity.name,
        rows: rows.map((at) => names[at] ?? ""),
        steps,
        value: (row, column) => values[(rows[row] ?? 0) * steps.length + column] ?? NaN,
        scale: SIGNED.has(quantity.name) ? "signed" : LINEAR.has(quantity.name) ? "linear" : "log",
        rowHeight: rows.length > 60 ? 13 : 18,
        ...(LINEAR.has(quantity.name) && !quantity.name.includes("nonfinite") ? { unit: percent, low: 0 } : {}),
      });
    }
    this.drawLines(layers, Array.from(steps), wanted);
  }

  private drawLines(layers: Layers, steps: number[], wanted: string): void {
    const fitting = layers.parameters.flatMap((name, at) => (name.toLowerCase().includes(wanted) ? [at] : []));
    const weights = fitting.filter((at) => !layers.parameters[at]?.endsWith("bias"));
    const chosen = evenly(fitting.length > MOST && weights.length ? weights : fitting, MOST);
    this.plots.forEach((plot, place) => {
      const quantity = layers.quantities.find((one) => one.name === LINES[place]?.[0]);
      const values = quantity ? unpack(quantity.values) : new Float32Array();
      const lines: Line[] = chosen.map((at, i) => ({
        label: layers.parameters[at] ?? "",
        colour: () => depth(chosen.length > 1 ? i / (chosen.length - 1) : 0.4),
        x: steps,
        y: Array.from(values.subarray(at * steps.length, (at + 1) * steps.length)),
        dots: steps.length < 40,
      }));
      plot.show(quantity ? lines : [], { log: true, smoothing: 0, time: false });
    });
  }

  private picked(row: number, _column: number): void {
    const layers = this.state.focus?.data.layers;
    const quantity = layers?.quantities.find((one) => one.name === this.quantity);
    if (!layers || !quantity) return;
    const name = this.names(layers, quantity)[this.rows[row] ?? 0];
    if (name !== undefined) this.histograms.choose(name);
  }
}

function evenly(places: number[], most: number): number[] {
  if (places.length <= most) return places;
  return Array.from({ length: most }, (_, i) => places[Math.round((i * (places.length - 1)) / (most - 1))] ?? 0);
}

class HistogramsView {
  readonly root = h("section", { "aria-labelledby": "histograms-title", id: "histograms" });
  private readonly map = new HeatMap((_, column) => {
    this.column = column;
    this.drawBars();
  });
  private readonly bars = h("canvas", { class: "bars", role: "img" });
  private readonly caption = h("p", { class: "note" });
  private kind: "gradient" | "parameter" = "gradient";
  private row = 0;
  private column = -1;
  private data: Histograms | undefined;
  private picker: HTMLSelectElement | undefined;

  constructor() {
    onTheme(() => this.drawBars());
    new ResizeObserver(() => this.drawBars()).observe(this.bars);
  }

  build(data: Histograms): void {
    this.data = data;
    this.row = Math.min(this.row, data.parameters.length - 1);
    if (!data[this.kind]) this.kind = data.gradient ? "gradient" : "parameter";
    clear(this.root);
    this.picker = select(data.parameters, data.parameters[this.row] ?? "", () => {
      this.row = this.picker?.selectedIndex ?? 0;
      this.draw();
    });
    const kinds = (["gradient", "parameter"] as const).filter((kind) => data[kind]);
    const kind = select(kinds.map((one) => (one === "gradient" ? "gradients" : "weights")),
      this.kind === "gradient" ? "gradients" : "weights", (value) => {
        this.kind = value === "gradients" ? "gradient" : "parameter";
        this.draw();
      });
    add(
      this.root,
      h("h3", { id: "histograms-title" }, "Histograms over the steps"),
      h("p", { class: "note" }, "The brighter, the larger the share of the entries. Click to choose the step that is drawn beside it."),
      h("div", { class: "controls" }, labelled("histograms of", kind), labelled("layer", this.picker)),
      h("div", { class: "grid wide" }, this.map.root, h("div", {}, this.bars, this.caption)),
    );
    this.draw();
  }

  redraw(): void {
    this.draw();
  }

  choose(name: string): void {
    const at = this.data?.parameters.indexOf(name) ?? -1;
    if (at < 0 || !this.picker) return;
    this.row = at;
    this.picker.selectedIndex = at;
    this.draw();
  }

  /** The largest magnitude that the bins of the chosen layer reach to. */
  private reach(data: Histograms): number {
    const found = data[this.kind];
    return (found ? unpack(found.reach)[this.row] : 0) || 1;
  }

  /** The lower edge of a bin; bins are even, from minus reach to reach. */
  private edge(data: Histograms, bin: number): number {
    const reach = this.reach(data);
    const value = reach * ((2 * bin) / data.bins - 1);
    return Math.abs(value) < 1e-9 * reach ? 0 : value;
  }

  /** Places of round numbers between both ends, as shares of the way from the lower one; none that would be cut off. */
  private ticks(data: Histograms, most: number): [number, string][] {
    const reach = this.reach(data);
    const numbers = roundNumbers(reach, most).filter((value) => Math.abs(value) < 0.95 * reach);
    return numbers.map((value) => [(value / reach + 1) / 2, short(value)]);
  }

  private draw(): void {
    const data = this.data;
    const found = data?.[this.kind];
    if (!data || !found) return;
    const steps = unpack(data.steps);
    const shares = unpack(found.shares);
    const { bins } = data;
    this.map.show({
      title: `${this.kind === "gradient" ? "gradients" : "weights"} of ${data.parameters[this.row] ?? ""}`,
      rows: Array.from({ length: bins }, (_, row) => {
        const bin = bins - 1 - row;
        return `${short(this.edge(data, bin))} to ${short(this.edge(data, bin + 1))}`;
      }),
      steps,
      value: (row, column) => {
        const share = shares[(this.row * bins + bins - 1 - row) * steps.length + column] ?? 0;
        return share > 0 ? Math.sqrt(share / 65535) : NaN;
      },
      scale: "linear",
      low: 0,
      rowHeight: 4,
      ticks: this.ticks(data, 4.5).map(([share, text]) => [(1 - share) * bins, text]),
      unit: (root) => percent(root * root),
    });
    this.column = steps.length - 1;
    this.drawBars();
  }

  private drawBars(): void {
    const data = this.data;
    const found = data?.[this.kind];
    const context = this.bars.getContext("2d");
    const width = this.bars.clientWidth;
    if (!data || !found || !context || !width) return;
    const height = 260;
    const ratio = window.devicePixelRatio || 1;
    this.bars.width = width * ratio;
    this.bars.height = height * ratio;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const { bins } = data;
    const steps = unpack(data.steps);
    const all = unpack(found.shares);
    const shown = Array.from({ length: bins }, (_, bin) => (all[(this.row * bins + bin) * steps.length + this.column] ?? 0) / 65535);
    const top = Math.max(...shown, 1e-9);
    const step = width / bins;
    shown.forEach((share, bin) => {
      context.fillStyle = colour(bin < bins / 2 ? "below" : "above");
      const tall = (share / top) * (height - 26);
      context.fillRect(bin * step, height - 22 - tall, Math.max(step - 0.5, 1), tall);
    });
    context.fillStyle = colour("muted");
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "top";
    context.textAlign = "center";
    for (const [share, text] of this.ticks(data, width < 420 ? 2.5 : 4.5)) context.fillText(text, share * width, height - 16);
    const below = shown.slice(0, bins / 2).reduce((sum, share) => sum + share, 0);
    const total = shown.reduce((sum, share) => sum + share, 0) || 1;
    const what = this.kind === "gradient" ? "Gradients" : "Weights";
    this.caption.textContent =
      `${what} of ${data.parameters[this.row] ?? ""} at step ${whole(steps[this.column] ?? 0)}, ${percent(below / total)} below zero`;
    this.bars.setAttribute("aria-label", this.caption.textContent);
  }
}
