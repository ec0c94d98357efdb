// Pane Graph: the ops as boxes, played one by one forward and backward, linked with the lines that they come from.

import { add, clear, h } from "../dom";
import { Step, type Edge, type Node, type Numbers, type PlainNode, type StepData } from "../step_data";
import { Layouts } from "../step_layout";
import { Player, type Moment } from "../step_player";
import { View } from "../step_view";
import { onTheme } from "../theme";
import { ArrayBox, inWords } from "./arrays";
import { Pane, type Around } from "./pane";
import type { ArrayData, GraphData, GraphNode } from "./types";

const LEAVES = new Set(["input", "parameter", "constant", "state"]);
/** Modules of a graph with more ops than this begin shut. */
const READABLE = 40;

function wires(edges: GraphData["edges"], given: GraphNode[], known: (id: number | string) => number): Edge[] {
  const readers = new Map<number | string, number>();
  for (const { from } of edges) readers.set(from, (readers.get(from) ?? 0) + 1);
  const found = edges.map((edge) => {
    const text = inWords(given[known(edge.from)]?.grad);
    // Of a value that several ops read, the gradient that is known is the sum of what they send.
    const sent = text && (readers.get(edge.from) ?? 0) > 1 ? `a part of ${text}` : text;
    return { tail: known(edge.from), head: known(edge.to), ...(sent ? { sent: { text: sent } } : {}) };
  });
  return found.filter((edge) => edge.tail >= 0 && edge.head >= 0);
}

/** The graph in the form of the page of a step, whose view and player show it. */
function asStep({ nodes, edges, order, backward }: GraphData): { data: StepData; given: GraphNode[] } {
  const place = new Map(order.map((id, at) => [id, at]));
  const given = [...nodes].sort((a, b) => (place.get(a.id) ?? -1) - (place.get(b.id) ?? -1));
  const at = new Map(given.map((node, index) => [node.id, index]));
  const made = new Set(edges.map((edge) => edge.to));
  // A group is a path of modules, or what the op's line says; a line of one op needs no frame.
  const members = new Map<string, number>();
  for (const { group } of nodes) if (group) members.set(group, (members.get(group) ?? 0) + 1);
  const isPath = (group: string): boolean => /^[\w.]+$/.test(group);
  const paths = new Map<string, number>([["", 0]]);
  const plain = given.map((node): PlainNode => {
    const group = node.group ?? "";
    const path = isPath(group) || (members.get(group) ?? 0) > 1 ? group : "";
    if (!paths.has(path)) paths.set(path, paths.size);
    const leaf = LEAVES.has(node.op) ? node.op : made.has(node.id) ? "" : "input";
    return {
      kind: leaf || "op", name: node.label, shape: node.shape ?? [], dtype: node.dtype ?? "", path: paths.get(path) ?? 0,
      ...(leaf ? {} : { op: node.op }), ...(node.formula ? { formula: node.formula } : {}),
      ...optional("value", node.value), ...optional("gradient", node.grad),
      root: node.id === order.at(-1),
    };
  });
  const known = (id: number | string): number => at.get(id) ?? -1;
  const isOp = (index: number): boolean => plain[index]?.kind === "op";
  return {
    given,
    data: {
      title: "", version: "", made: "", nodes: plain, edges: wires(edges, given, known),
      places: [["", ""]], paths: [...paths.keys()].map((path) => (path === "" ? [] : isPath(path) ? path.split(".") : [path])), modules: [],
      backward: backward.map(known).filter(isOp),
    },
  };
}

function optional<K extends string>(name: K, array: ArrayData | null | undefined): Partial<Record<K, Numbers>> {
  const text = inWords(array);
  return text ? ({ [name]: { text } } as Partial<Record<K, Numbers>>) : {};
}

export class GraphPane extends Pane<GraphData> {
  private view: View | null = null;
  private step: Step | null = null;
  private layouts: Layouts | null = null;
  private player: Player | null = null;
  private given: GraphNode[] = [];
  private shape = "";
  private chosen = -1;
  private readonly value = new ArrayBox();
  private readonly grad = new ArrayBox();
  private readonly facts = h("div", { class: "node-facts", role: "status" });

  constructor(around: Around) {
    super(around, "Nothing is computed with tensors that require gradients.");
    around.links.listen((lines, from) => from !== this && this.lit(lines));
    onTheme(() => this.redraw());
    new ResizeObserver(() => this.body.clientWidth && !this.seen && this.begin()).observe(this.body);
  }

  private seen = false;

  protected draw(data: GraphData): boolean {
    const at = this.player?.now ?? 0;
    const { data: plain, given } = asStep(data);
    const shape = JSON.stringify([plain.edges.map(({ tail, head }) => [tail, head]), plain.nodes.map(({ name, op }) => [name, op])]);
    const same = shape === this.shape && this.view !== null;
    const open = same ? this.layouts?.open : undefined;
    const place = same ? this.view?.place : undefined;
    this.player?.stop();
    this.shape = shape;
    this.given = given;
    if (!given.length) {
      clear(this.body);
      this.forget();
      return false;
    }
    this.build(new Step(plain), open);
    if (place) this.view?.put(place);
    else this.begin();
    if (same && this.chosen >= 0) this.choose(this.step?.node(this.chosen), false);
    if (same && at > 0) this.player?.go(at);
    return true;
  }

  private build(step: Step, open: ReadonlySet<string> | undefined): void {
    const layouts = new Layouts(step);
    const modules = layouts.modules();
    for (const path of modules) if (open ? open.has(path.join("\u001f")) : step.nodes.length <= READABLE) layouts.set(path, true);
    const view = new View(step, layouts, {
      select: (node) => this.choose(node, true),
      toggle: (path) => {
        layouts.set(path, !layouts.isOpen(path));
        this.redraw();
      },
    });
    [this.step, this.layouts, this.view] = [step, layouts, view];
    this.player = new Player(step, (moment) => this.play(moment));
    if (!step.moments.length) this.player.root.hidden = true;
    view.root.addEventListener("pointermove", (event) => this.over(event.target as Element));
    view.root.addEventListener("pointerleave", () => this.around.links.leave());
    const frame = h("div", {
      class: "frame", tabindex: 0, role: "group", keydown: (event) => this.key(event as KeyboardEvent),
      "aria-label": "Graph. Left and right go from op to op, plus and minus zoom, 0 shows all, Shift with arrows moves.",
    }, view.root);
    const button = (text: string, name: string, act: () => void): HTMLElement =>
      h("button", { type: "button", class: "small", "aria-label": name, click: act }, text);
    const zoom = h("div", { class: "zoom" }, button("+", "Larger", () => view.zoom(1.3)), button("−", "Smaller", () => view.zoom(1 / 1.3)),
      button("fit", "Fit all of it", () => view.fit()));
    clear(this.body);
    clear(this.facts);
    add(this.body, h("div", { class: "graph-frame" }, frame, zoom), this.player.root, this.facts);
    view.draw();
    for (const node of step.nodes) for (const box of view.boxesOf(node)) (box as SVGElement).dataset["node"] = String(node.id);
  }

  private begin(): void {
    this.seen = this.body.clientWidth > 0;
    if (this.seen) this.view?.begin();
  }

  private redraw(): void {
    if (!this.view || !this.step) return;
    this.view.draw();
    for (const node of this.step.nodes) for (const box of this.view.boxesOf(node)) box.dataset["node"] = String(node.id);
  }

  // --- choosing ---------------------------------------------------------------------------------------------

  private choose(node: Node | undefined, point: boolean): void {
    if (!node) return;
    this.chosen = node.id;
    this.mark([node], "chosen");
    this.tell(node);
    if (point) this.around.links.point([this.given[node.id]?.line ?? null], this);
  }

  private tell(node: Node): void {
    const given = this.given[node.id];
    clear(this.facts);
    if (!given) return;
    const list = h("dl", { class: "facts" });
    const fact = (name: string, ...content: (globalThis.Node | string | null | undefined)[]): void => {
      if (content.some(Boolean)) add(list, h("dt", {}, name), h("dd", {}, ...content));
    };
    fact("line", given.line ? this.lineButton(given.line) : null);
    fact("formula", given.formula ? h("code", {}, given.formula) : null);
    fact("saved for backward", given.saved);
    if (given.value) fact("value", this.shown(this.value, given.value, given.label));
    if (given.grad) fact("gradient", this.shown(this.grad, given.grad, `the gradient of ${given.label}`));
    add(this.facts, h("h3", {}, given.op && given.op !== given.label ? `${given.label} = ${given.op}` : given.label), list);
  }

  private shown(box: ArrayBox, array: ArrayData, what: string): HTMLElement {
    box.show(array, what);
    return box.root;
  }

  private over(target: Element): void {
    const box = target.closest<SVGElement>("g.box");
    const id = Number(box?.dataset["node"] ?? -1);
    this.around.links.point([this.given[id]?.line ?? null], this);
  }

  private lit(lines: ReadonlySet<number>): void {
    const found = this.step?.nodes.filter((node) => lines.has(this.given[node.id]?.line ?? -1)) ?? [];
    this.mark(found, "found");
  }

  private mark(nodes: Node[], name: "chosen" | "found"): void {
    if (!this.view) return;
    for (const element of this.view.elements()) element.classList.remove(name);
    for (const node of nodes) for (const box of this.view.boxesOf(node)) box.classList.add(name);
  }

  // --- playing ----------------------------------------------------------------------------------------------

  private play({ node, phase, at }: Moment): void {
    if (!this.view || !this.step || !this.layouts) return;
    if (this.player?.follow.checked) this.openTo(node);
    const past = this.step.moments.slice(0, at + 1);
    const boxes = (backward: boolean): Set<Element | undefined> =>
      new Set(past.filter((moment) => (moment.phase === "backward") === backward).map((moment) => this.view?.boxOf(this.step?.node(moment.node) as Node)));
    const [known, graded] = [boxes(false), boxes(true)];
    for (const element of this.view.elements()) {
      element.classList.toggle("known", known.has(element));
      element.classList.toggle("graded", graded.has(element));
    }
    const active = new Set(node.from.map((edge) => `${edge.tail}-${edge.head}`));
    for (const wire of this.view.wires()) {
      const on = (wire.dataset["edges"] ?? "").split(" ").some((edge) => active.has(edge));
      wire.classList.toggle("on", on && phase !== "backward");
      wire.classList.toggle("returning", on && phase === "backward");
    }
    this.choose(node, true);
    const box = this.view.boxOf(node);
    if (box) this.view.reveal(box);
  }

  private openTo(node: Node): void {
    const shut = node.module.map((_, at) => node.module.slice(0, at + 1)).filter((path) => !this.layouts?.isOpen(path));
    for (const path of shut) this.layouts?.set(path, true);
    if (shut.length) this.redraw();
  }

  private key(event: KeyboardEvent): void {
    const view = this.view;
    const moves: Record<string, [number, number]> = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    const move = moves[event.key];
    if (!view || !this.player) return;
    if (move && (event.shiftKey || event.key === "ArrowUp" || event.key === "ArrowDown")) view.pan(...move);
    else if (move) this.player.go(this.player.now + (event.key === "ArrowLeft" ? -1 : 1));
    else if (event.key === "+" || event.key === "=") view.zoom(1.3);
    else if (event.key === "-") view.zoom(1 / 1.3);
    else if (event.key === "0") view.fit();
    else return;
    event.preventDefault();
  }

  protected override forget(): void {
    this.player?.stop();
    [this.view, this.step, this.layouts, this.player] = [null, null, null, null];
    this.shape = "";
    this.chosen = -1;
  }
}
