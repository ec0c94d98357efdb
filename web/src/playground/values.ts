// Pane Values: each variable with its value and its gradient.

import { add, clear, h } from "../dom";
import { ArrayBox } from "./arrays";
import { linkedTo, markLinked, Pane, type Around } from "./pane";
import type { PaneData, Variable } from "./types";

class Card {
  readonly root = h("section", { class: "variable" });
  private readonly value = new ArrayBox();
  private readonly grad = new ArrayBox();

  constructor(private readonly around: Around) {}

  show(found: Variable): void {
    clear(this.root);
    this.root.setAttribute("aria-label", found.name);
    const type = found.kind === "tensor" && found.shape ? `${found.dtype ?? ""}[${found.shape.join(", ")}]` : (found.dtype ?? "");
    const line = found.line;
    add(this.root, h("div", { class: "variable-head" },
      h("h3", {}, found.name), h("span", { class: "note" }, type), found.requires_grad ? h("span", { class: "chip" }, "requires grad") : null,
      line ? h("button", { type: "button", class: "link line-link", click: () => this.around.go(line) }, `line ${line}`) : null));
    const parts = h("div", { class: found.grad ? "pair" : "" });
    if (found.value) add(parts, this.part("value", this.value, found.value, found.name, Boolean(found.grad)));
    else if (found.text) add(parts, h("pre", { class: "text", tabindex: 0 }, found.text));
    if (found.grad) add(parts, this.part("gradient", this.grad, found.grad, `the gradient of ${found.name}`, true));
    add(this.root, parts);
  }

  private part(name: string, box: ArrayBox, array: NonNullable<Variable["value"]>, what: string, titled: boolean): HTMLElement {
    box.show(array, what);
    return h("div", { class: name }, titled ? h("h4", {}, name) : null, box.root);
  }
}

export class ValuesPane extends Pane<PaneData["values"]> {
  private cards = new Map<string, Card>();

  constructor(around: Around) {
    super(around, "The program has no variables yet.");
    markLinked(this.body, around.links);
  }

  protected draw({ variables }: PaneData["values"]): boolean {
    const before = this.cards;
    this.cards = new Map();
    const roots = variables.map((found) => {
      const card = before.get(found.name) ?? new Card(this.around);
      this.cards.set(found.name, card);
      card.show(found);
      linkOnce(card.root, found.line, this.around);
      return card.root;
    });
    // Elements that stay are not taken out: a map in one keeps its size, and the reader his place.
    if (roots.length !== this.body.children.length || roots.some((root, at) => root !== this.body.children[at])) {
      clear(this.body);
      add(this.body, ...roots);
    }
    return roots.length > 0;
  }

  protected override forget(): void {
    this.cards = new Map();
  }
}

function linkOnce(root: HTMLElement, line: number | null, around: Around): void {
  if (root.dataset["lines"] === String(line ?? "")) return;
  linkedTo(root, [line], around.links);
}
