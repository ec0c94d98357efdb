// The page of a step: its graph, its passes node by node, the program beside it and its kernels.

import "./style.css";
import "./step.css";
import { add, clear, h, labelled, select } from "./dom";
import { Details } from "./step_details";
import { Layouts } from "./step_layout";
import { KernelsView } from "./step_kernels";
import { Player, type Moment } from "./step_player";
import { Search } from "./step_search";
import { SourceView } from "./step_source";
import { isLeaf, Step, type Node, type StepData, type Table } from "./step_data";
import { View } from "./step_view";
import { onTheme, ramp, series, toggleTheme } from "./theme";

const COLOURS = ["kind", "kernel", "cost of the kernel", "size of the gradient", "size of the value"];

/** Milliseconds of work at a time. */
const SLICE = 40;

class Page {
  readonly step: Step;
  private readonly layouts: Layouts;
  private readonly view: View;
  private readonly source: SourceView;
  private readonly details: Details;
  private readonly kernels: KernelsView;
  private readonly player: Player;
  private readonly search: Search;
  private chosen: Node | null = null;
  private readonly said = h("output", { class: "note", "aria-live": "polite" });
  private turn = 0;

  constructor(private readonly data: StepData) {
    this.step = new Step(data);
    this.layouts = new Layouts(this.step);
    this.view = new View(this.step, this.layouts, { select: (node) => this.select(node), toggle: (path) => this.toggle(path) });
    this.source = new SourceView(this.step, (nodes, line) => this.chooseLine(nodes, line));
    this.details = new Details(this.step, { select: (node) => this.select(node, true), kernel: (at) => this.chooseKernel(at) });
    this.kernels = new KernelsView(this.step, (at) => this.chooseKernel(at));
    this.player = new Player(this.step, (moment) => this.play(moment));
    this.search = new Search(this.step, this.layouts, {
      select: (node) => this.select(node, true),
      open: (path) => this.openModule(path),
      mark: (nodes) => this.mark(nodes.map((id) => this.step.node(id)), "found"),
    });
    onTheme(() => this.redraw());
  }

  build(page: HTMLElement): void {
    const colours = select(this.colours(), "kind", (value) => this.colourBy(value));
    const button = (text: string, name: string, act: () => void): HTMLElement =>
      h("button", { type: "button", class: "small", "aria-label": name, click: act }, text);
    const frame = h("div", {
      class: "frame", tabindex: 0, role: "group", keydown: (event) => this.key(event as KeyboardEvent),
      "aria-label": "Graph. Arrow keys go from box to box, Enter opens and shuts a module, plus and minus zoom, 0 shows all, Shift with arrows moves.",
    }, this.view.root);
    const tools = h("div", { class: "controls tools" },
      button("+", "Larger", () => this.view.zoom(1.3)), button("−", "Smaller", () => this.view.zoom(1 / 1.3)), button("fit", "Fit all of it", () => this.view.fit()),
      button("open all", "Open all modules", () => void this.openAll(true)), button("shut all", "Shut all modules", () => void this.openAll(false)),
      labelled("colour by", colours), this.said);
    add(page,
      h("a", { class: "skip", href: "#main" }, "Skip to the content"),
      h("header", {}, h("h1", {}, this.data.title), this.search.root,
        h("button", { type: "button", class: "small", click: toggleTheme, "aria-label": "Change between light and dark" }, "◐")),
      h("main", { id: "main", class: "step" },
        h("div", { class: "left" }, tools, frame, this.player.root),
        h("div", { class: "right" }, this.details.root, this.source.root),
        h("div", { class: "below" }, this.kernels.root, ...this.notes(), ...(this.data.tables ?? []).map(table), this.data.cost ? h("p", { class: "note" }, this.data.cost) : null)),
      h("footer", {}, `Written by glassgrad ${this.data.version} on ${this.data.made.replace("T", " ").replace("+00:00", " UTC")}.`));
    this.openFew();
    this.view.draw();
    this.view.begin();
    this.source.begin();
  }

  private colours(): string[] {
    const kernels = Boolean(this.data.kernels?.length);
    const values = this.step.nodes.some((node) => node.value && !isLeaf(node));
    return COLOURS.filter((name) => (name.includes("kernel") ? kernels : name.startsWith("size") ? values : true));
  }

  private notes(): HTMLElement[] {
    return (this.data.notes ?? []).map((note) => h("p", { class: "note" }, note));
  }

  /** Open modules as long as the whole graph stays readable. */
  private openFew(): void {
    for (let depth = 1; depth < 4; depth++) {
      const paths = this.layouts.modules().filter((path) => path.length === depth && !this.step.node(this.layouts.nodesIn(path)[0] ?? 0).late);
      const more = paths.reduce((sum, path) => sum + this.children(path), 0);
      const shown = this.layouts.level([]).boxes.reduce((sum, box) => sum + (box.inside ? box.inside.boxes.length : 1), 0);
      if (!paths.length || shown + more > 36) return;
      for (const path of paths) this.layouts.set(path, true);
    }
  }

  private children(path: string[]): number {
    const found = new Set(this.layouts.nodesIn(path).map((id) => this.step.node(id).module[path.length] ?? id));
    return found.size;
  }

  // --- choosing ---------------------------------------------------------------------------------------------

  private select(node: Node, open = false): void {
    if (open) this.openTo(node);
    this.chosen = node;
    this.mark([node], "chosen");
    this.details.show(node);
    this.source.mark(node);
    this.kernels.mark([...node.kernels, ...node.backKernels]);
    const box = this.view.boxOf(node);
    if (open && box) this.view.reveal(box, true);
  }

  private openTo(node: Node): void {
    let changed = false;
    for (let length = 1; length <= node.module.length; length++) {
      const path = node.module.slice(0, length);
      if (this.layouts.isOpen(path)) continue;
      this.layouts.set(path, true);
      changed = true;
    }
    if (changed) this.redraw();
  }

  private openModule(path: string[]): void {
    const inside = this.step.node(this.layouts.nodesIn(path)[0] ?? 0);
    for (let length = 1; length <= path.length; length++) this.layouts.set(path.slice(0, length), true);
    this.redraw();
    const box = this.view.boxOf(inside);
    if (box) this.view.reveal(box, true);
  }

  private chooseLine(ids: number[], line: number): void {
    const nodes = ids.map((id) => this.step.node(id));
    const last = nodes.at(-1);
    if (!last) return;
    this.select(last, true);
    this.source.markLine(line);
    this.mark(nodes, "chosen");
  }

  private chooseKernel(at: number): void {
    const kernel = this.data.kernels?.[at];
    if (!kernel) return;
    const forward = (kernel.nodes ?? []).map((id) => this.step.node(id));
    const backward = (kernel.gradients ?? []).map((id) => this.step.node(id));
    const first = forward[0] ?? backward[0];
    if (first) this.select(first, true);
    this.mark(forward, "chosen");
    this.mark(backward, "rule");
    this.kernels.mark([at]);
  }

  private mark(nodes: Node[], name: "chosen" | "found" | "rule" | "lit"): void {
    for (const element of this.view.elements()) element.classList.remove(...(name === "chosen" ? ["chosen", "rule", "lit"] : [name]));
    for (const node of nodes) for (const element of this.view.boxesOf(node)) element.classList.add(name);
  }

  // --- playing ----------------------------------------------------------------------------------------------

  private play({ node, phase, at }: Moment): void {
    if (this.player.follow.checked) this.openTo(node);
    this.chosen = node;
    this.details.show(node);
    this.source.mark(node, phase);
    this.kernels.mark(phase === "backward" ? node.backKernels : node.kernels);
    this.paintPast(at);
    const active = new Set((phase === "backward" ? node.from.filter((edge) => edge.sent) : node.from).map((edge) => `${edge.tail}-${edge.head}`));
    for (const wire of this.view.wires()) {
      const on = (wire.dataset["edges"] ?? "").split(" ").some((edge) => active.has(edge));
      wire.classList.toggle("on", on && phase !== "backward");
      wire.classList.toggle("returning", on && phase === "backward");
    }
    this.mark([node], "chosen");
    const box = this.view.boxOf(node);
    box?.classList.add("lit");
    if (box) this.view.reveal(box);
  }

  /** Tint the boxes whose value, or whose gradient, is computed by now. */
  private paintPast(at: number): void {
    const known = new Set<Element>();
    const graded = new Set<Element>();
    this.step.moments.slice(0, at + 1).forEach((moment) => {
      const box = this.view.boxOf(this.step.node(moment.node));
      if (box) (moment.phase === "backward" ? graded : known).add(box);
    });
    for (const element of this.view.elements()) {
      element.classList.toggle("known", known.has(element));
      element.classList.toggle("graded", graded.has(element));
    }
  }

  // --- modules and keys -------------------------------------------------------------------------------------

  private toggle(path: string[]): void {
    const first = this.step.node(this.layouts.nodesIn(path)[0] ?? 0);
    this.view.holding(() => this.view.boxOf(first), () => {
      this.layouts.set(path, !this.layouts.isOpen(path));
      this.redraw();
    });
  }

  /** Open or shut every module. The layout begins at the innermost levels, and pauses often so that the page responds. */
  private async openAll(open: boolean): Promise<void> {
    const turn = ++this.turn;
    const paths = this.layouts.modules().sort((a, b) => b.length - a.length);
    for (const path of paths) this.layouts.set(path, open);
    let rest = performance.now() + SLICE;
    for (const [at, path] of open ? paths.entries() : []) {
      this.layouts.level(path);
      if (performance.now() < rest) continue;
      this.said.textContent = `opening ${at + 1} of ${paths.length} …`;
      await new Promise((resolve) => setTimeout(resolve));
      if (turn !== this.turn) return;
      rest = performance.now() + SLICE;
    }
    this.said.textContent = "";
    this.redraw();
    this.view.begin();
  }

  private redraw(): void {
    this.view.draw();
    this.kernels.retint();
    if (this.chosen) this.mark([this.chosen], "chosen");
  }

  private colourBy(name: string): void {
    this.view.paint = name === "kind" ? {} : { stripe: this.stripe(name) };
    this.redraw();
  }

  private stripe(name: string): (nodes: number[]) => string | null {
    const costs = this.kernels.costs;
    if (name === "kernel") {
      return (nodes) => {
        const kernels = new Set(nodes.flatMap((id) => this.step.node(id).kernels));
        const [only] = kernels;
        return kernels.size === 1 && only !== undefined ? series(only) : null;
      };
    }
    const size = (id: number): number => {
      const node = this.step.node(id);
      if (name.includes("kernel")) return Math.max(0, ...[...node.kernels, ...node.backKernels].map((at) => costs[at] ?? 0));
      const numbers = name.includes("gradient") ? node.gradient : node.value;
      const count = (node.shape ?? []).reduce((product, extent) => product * extent, 1) || 1;
      const norm = numbers?.norm ?? (numbers?.text ? Math.abs(Number(numbers.text)) : 0);
      return Number.isFinite(norm) ? norm / Math.sqrt(count) : 0;
    };
    const logs = this.step.nodes.map((node) => Math.log10(size(node.id))).filter(Number.isFinite);
    const [low, high] = [Math.min(...logs), Math.max(...logs)];
    return (nodes) => {
      const most = Math.max(...nodes.map(size), 0);
      return most > 0 ? ramp(high > low ? (Math.log10(most) - low) / (high - low) : 1) : null;
    };
  }

  private key(event: KeyboardEvent): void {
    const moves: Record<string, [number, number]> = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    const move = moves[event.key];
    if (move && event.shiftKey) this.view.pan(...move);
    else if (move) this.walk(event.key);
    else if (event.key === "+" || event.key === "=") this.view.zoom(1.3);
    else if (event.key === "-") this.view.zoom(1 / 1.3);
    else if (event.key === "0") this.view.fit();
    else if (event.key === "/") this.search.focus();
    else if (event.key === "Enter") this.enter();
    else return;
    event.preventDefault();
  }

  /** Up and down follow the wires, left and right the order in which things are computed. */
  private walk(name: string): void {
    const node = this.chosen;
    const ops = this.step.nodes.filter((one) => !isLeaf(one));
    if (!node) {
      if (ops[0]) this.select(ops[0], false);
      return;
    }
    const at = ops.findIndex((one) => one.id >= node.id);
    const next =
      name === "ArrowUp" ? node.from[0] && this.step.node(node.from[0].tail)
      : name === "ArrowDown" ? node.to[0] && this.step.node(node.to[0].head)
      : ops[at + (name === "ArrowLeft" ? -1 : 1)];
    if (!next) return;
    this.select(next);
    const box = this.view.boxOf(next);
    if (box) this.view.reveal(box);
  }

  private enter(): void {
    const node = this.chosen;
    if (!node) return;
    const { level, id } = this.layouts.seenAt(node);
    if (id.startsWith("m")) this.toggle(node.module.slice(0, level.length + 1));
    else if (node.module.length) this.toggle(node.module);
  }
}

function table({ title, heads, rows }: Table): HTMLElement {
  return h("section", {}, h("h2", {}, title),
    h("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": title },
      h("table", {}, h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))),
        h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((cell) => h("td", {}, h("code", {}, cell)))))))));
}

function main(): void {
  const page = document.getElementById("page");
  if (!page) return;
  clear(page);
  new Page(JSON.parse(document.getElementById("data")?.textContent ?? "{}") as StepData).build(page);
}

main();
