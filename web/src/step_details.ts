// The facts about one node: formula, shape, value and gradient with their spread, the user's line, neighbours, kernels.

import { add, clear, h } from "./dom";
import { short, whole } from "./format";
import { micro } from "./step_kernels";
import { brief, isLeaf, named, typed, type Edge, type Node, type Numbers, type Step } from "./step_data";

const SVG = "http://www.w3.org/2000/svg";

export class Details {
  readonly root: HTMLElement;
  private readonly body = h("div", {});

  constructor(
    private readonly step: Step,
    private readonly acts: { select: (node: Node) => void; kernel: (at: number) => void },
  ) {
    this.root = h("section", { id: "node", "aria-labelledby": "node-title" }, h("h2", { id: "node-title" }, "Node"), this.body);
    this.show(null);
  }

  show(node: Node | null): void {
    clear(this.body);
    if (!node) {
      add(this.body, h("p", { class: "empty" }, "Choose a box, a line of the program or a kernel. Arrow keys go from box to box."));
      return;
    }
    const facts = h("dl", { class: "facts" });
    const fact = (name: string, ...content: (globalThis.Node | string)[]): void => {
      if (content.some((one) => one !== "")) add(facts, h("dt", {}, name), h("dd", {}, ...content));
    };
    add(this.body, h("h3", {}, isLeaf(node) || !node.op ? `${named(node)} (${node.kind})` : `${node.name} = ${node.op}`), facts);
    fact("formula", node.formula ? h("code", {}, node.formula) : "");
    fact("shape", typed(node));
    fact("value", statistics(node.value));
    fact("gradient", statistics(node.gradient));
    fact("line", node.where ? h("code", {}, node.source || node.where) : "", node.source ? h("div", { class: "note" }, node.where) : "");
    fact("module", node.module.join(" › "));
    fact("made of", this.list(node.from, (edge) => edge.tail, true));
    fact("read by", this.list(node.to, (edge) => edge.head, false));
    fact("kernels", this.kernels(node));
  }

  private list(edges: Edge[], end: (edge: Edge) => number, incoming: boolean): HTMLElement | string {
    if (!edges.length) return "";
    const list = h("ul", { class: "plain" });
    for (const edge of edges.slice(0, 40)) {
      const other = this.step.node(end(edge));
      const local = incoming && edge.local ? ` · derivative ${edge.local}${edge.number === undefined || edge.local === short(edge.number) ? "" : ` = ${short(edge.number)}`}` : "";
      const sent = edge.sent ? ` · ${incoming ? "gets" : "sends back"} ${brief(edge.sent)}` : "";
      list.appendChild(h("li", {},
        h("button", { type: "button", class: "link", click: () => this.acts.select(other) }, edge.gradient && incoming ? `gradient of ${named(other)}` : named(other)),
        h("span", { class: "note" }, `${local}${sent}`)));
    }
    if (edges.length > 40) list.appendChild(h("li", { class: "note" }, `${edges.length - 40} more`));
    return list;
  }

  private kernels(node: Node): HTMLElement | string {
    const all = this.step.data.kernels ?? [];
    if (!all.length || isLeaf(node)) return "";
    if (!node.kernels.length && !node.backKernels.length) return "none of its own: folded into others, or a view";
    const list = h("ul", { class: "plain" });
    const entry = (at: number, what: string): void => {
      const kernel = all[at];
      if (!kernel) return;
      const cost = kernel.seconds !== undefined ? micro(kernel.seconds) : `${whole(kernel.bytes)} bytes`;
      list.appendChild(h("li", {}, `${what} in `, h("button", { type: "button", class: "link", click: () => this.acts.kernel(at) }, `kernel ${at + 1}`),
        h("span", { class: "note" }, ` · ${kernel.kind} of ${kernel.ops.length} ops · ${cost}`)));
    };
    for (const at of node.kernels) entry(at, node.late ? "update" : "forward");
    for (const at of node.backKernels) entry(at, "backward");
    return list;
  }
}

function statistics(numbers: Numbers | undefined): HTMLElement | string {
  if (!numbers) return "";
  const few = numbers.text !== undefined && numbers.text !== "";
  const text = few ? brief(numbers)
    : `${brief(numbers)}; mean ${short(numbers.mean ?? 0)}, deviation ${short(numbers.std ?? 0)}, from ${short(numbers.low ?? 0)} to ${short(numbers.high ?? 0)}`;
  return h("div", {}, text, numbers.bins?.length ? histogram(numbers.bins, numbers.low ?? 0, numbers.high ?? 0) : null);
}

function histogram(bins: number[], low: number, high: number): SVGElement {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${bins.length * 6} 30`);
  svg.setAttribute("class", "spark");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `Histogram from ${short(low)} to ${short(high)}`);
  const top = Math.max(...bins, 1);
  bins.forEach((count, at) => {
    const bar = document.createElementNS(SVG, "rect");
    const tall = count ? Math.max((count / top) * 28, 1) : 0;
    const middle = low + ((at + 0.5) / bins.length) * (high - low);
    for (const [name, value] of Object.entries({ x: at * 6, y: 30 - tall, width: 5, height: tall })) bar.setAttribute(name, String(value));
    bar.setAttribute("class", middle < 0 ? "below" : "above");
    svg.appendChild(bar);
  });
  return svg;
}
