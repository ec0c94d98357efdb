// The slider that plays a step: node by node forward, then back, then what the optimizer writes.

import { add, clear, freshId, h } from "./dom";
import { brief, named, type Node, type Step } from "./step_data";

export interface Moment {
  node: Node;
  phase: "forward" | "backward" | "update";
  at: number;
}

export class Player {
  readonly root: HTMLElement;
  private readonly slider: HTMLInputElement;
  private readonly said = h("p", { class: "moment", role: "status" });
  private readonly play: HTMLButtonElement;
  private timer = 0;
  readonly follow = h("input", { type: "checkbox" });

  constructor(
    private readonly step: Step,
    private readonly show: (moment: Moment) => void,
  ) {
    const id = freshId("slider");
    const last = Math.max(step.moments.length - 1, 0);
    this.slider = h("input", { type: "range", min: 0, max: last, value: 0, id, class: "wide", "aria-label": "Moment of the step" });
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
    this.play = h("button", { type: "button", class: "small", click: () => this.toggle(), "aria-label": "Play" }, "▶");
    const button = (text: string, name: string, act: () => void): HTMLElement =>
      h("button", { type: "button", class: "small", "aria-label": name, click: act }, text);
    const marks = h("div", { class: "phases", "aria-hidden": "true" });
    for (const phase of ["forward", "backward", "update"] as const) {
      const count = step.moments.filter((moment) => moment.phase === phase).length;
      if (!count) continue;
      const part = h("span", { class: phase }, `${phase} ${count}`);
      part.style.flexGrow = String(count);
      marks.appendChild(part);
    }
    this.root = h("section", { class: "player", "aria-label": "The passes, node by node" },
      h("div", { class: "controls" },
        button("|◀", "To the beginning", () => this.go(0)),
        button("◀", "One back", () => this.go(this.now - 1)),
        this.play,
        button("▶|", "One on", () => this.go(this.now + 1)),
        button("↺", "To the backward pass", () => this.go(step.moments.findIndex((moment) => moment.phase === "backward"))),
        h("label", { class: "control" }, this.follow, h("span", {}, "open modules on the way"))),
      h("div", { class: "track" }, this.slider, marks),
      this.said);
  }

  get now(): number {
    return Number(this.slider.value);
  }

  go(at: number): void {
    const bounded = Math.min(Math.max(at, 0), this.step.moments.length - 1);
    const moment = this.step.moments[bounded];
    if (!moment) return;
    this.slider.value = String(bounded);
    const node = this.step.node(moment.node);
    this.slider.setAttribute("aria-valuetext", `${moment.phase}: ${named(node)}`);
    this.say(node, moment.phase, bounded);
    this.show({ node, phase: moment.phase, at: bounded });
  }

  private say(node: Node, phase: Moment["phase"], at: number): void {
    clear(this.said);
    const place = h("span", { class: "note" }, ` (${at + 1} of ${this.step.moments.length})`);
    if (phase !== "backward") {
      const read = node.to.filter((edge) => !edge.gradient).map((edge) => named(this.step.node(edge.head)));
      const passes = read.length ? ` goes to ${few(read)}` : node.root ? " is the result" : "";
      const value = node.value ? `${brief(node.value)}` : `[${(node.shape ?? []).join(", ")}]`;
      add(this.said, h("b", {}, `${phase} `), h("code", {}, `${named(node)} = ${node.formula || node.op || "what is written"}`), `: ${value}${passes}`, place);
      return;
    }
    const sends = node.from.filter((edge) => edge.sent);
    add(this.said, h("b", {}, "backward "), "at ", h("code", {}, named(node)), ` arrives ${brief(node.gradient)}`,
      sends.length ? "; it sends " : "; it sends nothing on");
    sends.forEach((edge, i) => add(this.said, i ? ", " : "", `${brief(edge.sent)} to `, h("code", {}, named(this.step.node(edge.tail))),
      edge.local ? h("span", { class: "note" }, ` by ${edge.local}`) : ""));
    add(this.said, place);
  }

  private toggle(): void {
    if (this.timer) {
      this.stop();
      return;
    }
    if (this.now >= this.step.moments.length - 1) this.go(0);
    this.play.textContent = "❚❚";
    this.play.setAttribute("aria-label", "Pause");
    const pause = matchMedia("(prefers-reduced-motion: reduce)").matches ? 1500 : 450;
    this.timer = window.setInterval(() => {
      this.go(this.now + 1);
      if (this.now >= this.step.moments.length - 1) this.stop();
    }, pause);
  }

  stop(): void {
    window.clearInterval(this.timer);
    this.timer = 0;
    this.play.textContent = "▶";
    this.play.setAttribute("aria-label", "Play");
  }
}

function few(names: string[]): string {
  return names.length > 3 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more` : names.join(", ");
}
