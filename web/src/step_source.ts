// The program of a step; each line links to the nodes whose values or gradients it computes.

import { add, copyButton, h } from "./dom";
import type { Line, Node, Step } from "./step_data";

/** Up to this many lines, a program is in the page as a whole; of a longer one, only the visible part and its surroundings. */
const WHOLE = 600;
const AROUND = 60;
const TALL = 18;

export class SourceView {
  readonly root: HTMLElement;
  private readonly lines: Line[];
  private readonly rows = new Map<number, HTMLElement>();
  private readonly rest = h("div", { class: "rows" });
  private readonly list = h("div", { class: "program", tabindex: 0, role: "group", "aria-label": "The program, line by line" }, this.rest);
  private chosen = new Set<number>();
  private also = new Set<number>();

  constructor(
    step: Step,
    private readonly pick: (nodes: number[], line: number) => void,
  ) {
    this.lines = step.data.lines ?? [];
    this.root = h("section", { "aria-labelledby": "program-title" }, h("h2", { id: "program-title" }, "Program"));
    if (!this.lines.length) {
      add(this.root, h("p", { class: "empty" }, "There is no program; the notes below say why."));
      return;
    }
    const text = this.lines.map((line) => line.text).join("\n");
    add(this.root,
      h("p", { class: "note" }, "The same computation in NumPy. Click a line to choose its nodes, or a node to choose its lines. ", copyButton(text, "the program")),
      this.list);
    const longest = Math.max(...this.lines.map((line) => line.text.length));
    this.rest.style.height = `${this.lines.length * TALL}px`;
    this.rest.style.minWidth = `${longest + 2}ch`;
    this.list.addEventListener("scroll", () => this.fill());
    this.list.addEventListener("keydown", (event) => this.key(event));
    this.fill();
  }

  /** Make the visible rows, and drop distant ones. */
  private fill(): void {
    const whole = this.lines.length <= WHOLE;
    const first = whole ? 0 : Math.max(Math.floor(this.list.scrollTop / TALL) - AROUND, 0);
    const last = whole ? this.lines.length : Math.min(first + 2 * AROUND + Math.ceil((this.list.clientHeight || 600) / TALL), this.lines.length);
    for (const [at, row] of this.rows) {
      if (at >= first && at < last) continue;
      row.remove();
      this.rows.delete(at);
    }
    for (let at = first; at < last; at++) {
      const line = this.lines[at];
      if (line && !this.rows.has(at)) this.rest.appendChild(this.row(line, at));
    }
  }

  private row(line: Line, at: number): HTMLElement {
    const nodes = line.nodes ?? [];
    const content = nodes.length
      ? h("button", { type: "button", class: "line", tabindex: -1, click: () => this.pick(nodes, at) }, line.text)
      : h("span", { class: "line" }, line.text || " ");
    const row = h("div", { class: line.backward ? "row backward" : "row" }, content);
    row.style.top = `${at * TALL}px`;
    this.rows.set(at, row);
    this.tint(at);
    return row;
  }

  /** Arrow keys move between the lines that lead to nodes; Enter chooses one, as on a button. */
  private key(event: KeyboardEvent): void {
    const way = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (!way) return;
    event.preventDefault();
    const now = [...this.rows].find(([, row]) => row.contains(document.activeElement))?.[0] ?? Math.floor(this.list.scrollTop / TALL) - 1;
    let next = now + way;
    while (this.lines[next] && !this.lines[next]?.nodes?.length) next += way;
    if (!this.lines[next]) return;
    this.show(next);
    this.fill();
    this.rows.get(next)?.querySelector("button")?.focus({ preventScroll: true });
  }

  private tint(at: number): void {
    this.rows.get(at)?.classList.toggle("chosen", this.chosen.has(at));
    this.rows.get(at)?.classList.toggle("also", this.also.has(at));
  }

  /** Mark the lines of a node; in a phase, only those of the backward pass, or only the others. */
  mark(node: Node | null, phase?: string): void {
    const all = node?.lines ?? [];
    const backward = (at: number): boolean => Boolean(this.lines[at]?.backward);
    const first = phase ? all.filter((at) => backward(at) === (phase === "backward")) : all;
    this.put(first, all.filter((at) => !first.includes(at)));
    this.show(first[0] ?? all[0]);
  }

  markLine(at: number): void {
    this.put([at], []);
  }

  private put(chosen: number[], also: number[]): void {
    const before = [...this.chosen, ...this.also];
    this.chosen = new Set(chosen);
    this.also = new Set(also);
    for (const at of [...before, ...chosen, ...also]) this.tint(at);
  }

  /** Begin at the first line that computes anything: helpers and arguments stand above it. */
  begin(): void {
    this.list.scrollTop = Math.max(this.lines.findIndex((line) => line.nodes?.length) - 1, 0) * TALL;
  }

  /** Scroll only the list; the page stays where it is. */
  private show(at: number | undefined): void {
    if (at === undefined) return;
    const top = at * TALL;
    if (top < this.list.scrollTop || top + TALL > this.list.scrollTop + this.list.clientHeight) {
      this.list.scrollTop = Math.max(top - this.list.clientHeight / 3, 0);
    }
  }
}
