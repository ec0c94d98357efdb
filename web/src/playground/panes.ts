// The panes as tabs. Each has its own address, so that a link shows it: #graph, or #graph&example=xor.

import { add, clear, h } from "../dom";
import { heading } from "../format";
import { BackwardPane, KernelsPane } from "./code";
import { CostPane } from "./cost";
import { GraphPane } from "./graph";
import { OutputPane } from "./output";
import type { Around, Pane } from "./pane";
import { PANES, type PaneEvent, type PaneName } from "./types";
import { ValuesPane } from "./values";
import { CheckPane, DerivationPane, DoctorPane } from "./verdicts";

type Filled = Exclude<PaneName, "output">;

export interface Address {
  pane: PaneName;
  example: string | null;
}

/** What an address asks for; a pane that doesn't exist is the first. */
export function addressed(hash: string): Address {
  const [name, ...rest] = hash.replace(/^#/, "").split("&");
  const example = rest.find((part) => part.startsWith("example="));
  let found: string | null = null;
  try {
    found = example ? decodeURIComponent(example.slice("example=".length)) : null;
  } catch {
    found = null; // not a name that a link of ours has
  }
  return { pane: PANES.find((one) => one === name) ?? "values", example: found };
}

export class Panes {
  readonly root = h("div", { class: "results" });
  readonly output: OutputPane;
  current: PaneName = "values";
  private readonly filled: Record<Filled, Pane<never>>;
  private readonly tabs = new Map<PaneName, HTMLAnchorElement>();
  private readonly panels = new Map<PaneName, HTMLElement>();
  private readonly fresh = new Set<PaneName>();

  constructor(
    around: Around,
    private readonly turned: () => void,
  ) {
    this.output = new OutputPane(around);
    this.filled = {
      values: new ValuesPane(around), graph: new GraphPane(around), backward: new BackwardPane(around), derivation: new DerivationPane(around),
      check: new CheckPane(around), kernels: new KernelsPane(around), cost: new CostPane(around), doctor: new DoctorPane(around),
    };
    const list = h("div", { class: "tabs", role: "tablist", "aria-label": "Panes", keydown: (event) => this.key(event as KeyboardEvent) });
    add(this.root, list);
    for (const name of PANES) {
      const tab = h("a", { href: `#${name}`, role: "tab", id: `tab-${name}`, "aria-controls": `panel-${name}` }, heading(name));
      const content = name === "output" ? this.output.root : this.filled[name].root;
      const panel = h("div", { class: "panel", role: "tabpanel", id: `panel-${name}`, "aria-labelledby": `tab-${name}`, tabindex: 0 }, content);
      this.tabs.set(name, tab);
      this.panels.set(name, panel);
      add(list, tab);
      add(this.root, panel);
    }
    window.addEventListener("hashchange", () => this.turn());
    this.turn();
  }

  /** Show the pane of the address. */
  private turn(): void {
    const { pane, example } = addressed(location.hash);
    this.current = pane;
    for (const [name, tab] of this.tabs) {
      const on = name === pane;
      tab.setAttribute("aria-selected", String(on));
      tab.tabIndex = on ? 0 : -1;
      tab.setAttribute("href", `#${name}${example ? `&example=${encodeURIComponent(example)}` : ""}`);
      const panel = this.panels.get(name);
      if (panel) panel.hidden = !on;
      if (on) tab.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    this.turned();
  }

  private key(event: KeyboardEvent): void {
    const at = PANES.indexOf(this.current);
    const moves: Record<string, number> = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: PANES.length - 1 };
    const to = moves[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const tab = this.tabs.get(PANES[(to + PANES.length) % PANES.length] ?? "values");
    tab?.click();
    tab?.focus();
  }

  // --- data -------------------------------------------------------------------------------------------------

  /** The text has changed: everything shown belongs to the text before. */
  stale(): void {
    this.fresh.clear();
    for (const pane of Object.values(this.filled)) pane.stale();
  }

  isFresh(name: PaneName): boolean {
    return name === "output" || this.fresh.has(name);
  }

  /** Show what a run says of a pane. */
  take({ name, data, error }: PaneEvent): void {
    if (error) this.fail(name, error.message, error.line);
    else this.show(name, data);
  }

  show(name: PaneName, data: unknown): void {
    if (name === "output") return;
    this.fresh.add(name);
    this.filled[name].show(data as never);
    this.count(name, data);
  }

  fail(name: PaneName, message: string, line: number | null): void {
    if (name === "output") return;
    this.fresh.add(name);
    this.filled[name].fail(message, line);
  }

  /** Say on a tab how much there is to see, or that something went wrong. */
  badge(name: PaneName, text: string, bad = false): void {
    const tab = this.tabs.get(name);
    if (!tab) return;
    clear(tab);
    add(tab, heading(name), text ? h("span", { class: bad ? "count bad" : "count" }, text) : null);
  }

  private count(name: Filled, data: unknown): void {
    if (name === "doctor") {
      const found = (data as { findings: { severity: string }[] }).findings;
      this.badge(name, found.length ? String(found.length) : "", found.some((one) => one.severity === "error"));
    }
    if (name === "check") {
      const wrong = (data as { inputs: { passed: boolean }[] }).inputs.filter((one) => !one.passed).length;
      this.badge(name, wrong ? "✗" : "", wrong > 0);
    }
  }
}
