// Finding nodes and modules by their names, ops, formulas and lines.

import { add, clear, h } from "./dom";
import { named, type Node, type Step } from "./step_data";
import type { Layouts } from "./step_layout";

const SHOWN = 30;

export class Search {
  readonly root: HTMLElement;
  private readonly field = h("input", { type: "search", placeholder: "op, name, module, line", "aria-label": "Search ops and modules" });
  private readonly list = h("ul", { class: "found" });
  private readonly count = h("span", { class: "note", role: "status" });

  constructor(
    private readonly step: Step,
    private readonly layouts: Layouts,
    private readonly acts: { select: (node: Node) => void; open: (path: string[]) => void; mark: (nodes: number[]) => void },
  ) {
    this.field.addEventListener("input", () => this.look());
    this.field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.list.querySelector("button")?.click();
      if (event.key === "Escape") this.empty();
    });
    this.list.hidden = true;
    this.list.addEventListener("keydown", (event) => event.key === "Escape" && this.empty());
    this.root = h("div", { class: "search", role: "search" }, this.field, this.count, this.list);
  }

  focus(): void {
    this.field.focus();
  }

  private empty(): void {
    this.field.value = "";
    this.look();
    this.field.focus();
  }

  private look(): void {
    clear(this.list);
    const wanted = this.field.value.trim().toLowerCase();
    this.list.hidden = !wanted;
    this.count.textContent = "";
    if (!wanted) {
      this.acts.mark([]);
      return;
    }
    const modules = this.layouts.modules().filter((path) => path.join(".").toLowerCase().includes(wanted) && path.at(-1)?.toLowerCase().includes(wanted.split(".").at(-1) ?? ""));
    const nodes = this.step.nodes.filter((node) => text(node).includes(wanted));
    this.count.textContent = ` ${nodes.length} nodes, ${modules.length} modules`;
    for (const path of modules.slice(0, SHOWN / 3)) this.entry(`${path.join(" › ")}`, "module", () => this.acts.open(path));
    for (const node of nodes.slice(0, SHOWN)) this.entry(`${named(node)}${node.op ? ` = ${node.op}` : ""}`, node.module.join(" › ") || node.kind, () => this.acts.select(node));
    this.acts.mark(nodes.map((node) => node.id));
  }

  private entry(title: string, about: string, act: () => void): void {
    const choose = (): void => {
      act();
      this.list.hidden = true;
    };
    add(this.list, h("li", {}, h("button", { type: "button", class: "link", click: choose }, title), h("span", { class: "note" }, ` ${about}`)));
  }
}

function text(node: Node): string {
  return [node.name, node.op, node.formula, node.source, node.where, node.module.join(".")].join("\n").toLowerCase();
}
