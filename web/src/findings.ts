// The doctor's findings about the runs; each one opens its measurements.

import { add, clear, copyButton, h } from "./dom";
import { toNumber, type Finding, type Run } from "./data";
import { short, whole } from "./format";
import { Plot } from "./plot";
import type { Shown, State } from "./state";
import { series } from "./theme";

export class Findings {
  readonly root: HTMLElement;
  private readonly host = h("div", {});
  private told = "";

  constructor(private readonly state: State) {
    this.root = h("section", { id: "findings", "aria-labelledby": "findings-title" });
    add(this.root, h("h2", { id: "findings-title" }, "Findings"), this.host);
    state.onChange(() => this.draw());
    this.draw();
  }

  draw(): void {
    const runs = this.state.visible();
    const now = JSON.stringify(runs.map((run) => [run.place, run.data.findings]));
    if (now === this.told) return; // what a reader has opened stays open
    this.told = now;
    clear(this.host);
    for (const run of runs) {
      const { findings, name, watched } = run.data;
      if (this.state.runs.length > 1) add(this.host, h("h3", {}, name));
      if (!findings.length) add(this.host, h("p", { class: "fine" }, "Nothing here looks wrong."));
      for (const finding of findings) this.host.appendChild(this.one(run, finding));
      if (!watched) {
        add(this.host, h("p", { class: "note" }, "Only the losses are known. Train with ", h("code", {}, "--doctor"),
          " to check gradients and weights too."));
      }
    }
  }

  private one(run: Shown, finding: Finding): HTMLElement {
    const name = finding.where ? layerOf(run.data, finding) : undefined;
    return element(finding, name === undefined ? undefined : () => this.state.showLayer(run, name));
  }
}

function element(finding: Finding, layer: (() => void) | undefined): HTMLElement {
  const body = h("div", { class: "evidence" });
  const details = h(
    "details",
    { class: `finding ${severity(finding.severity)}` },
    h("summary", {}, h("span", { class: "badge" }, finding.severity), h("strong", {}, finding.rule), " ",
      h("span", {}, finding.what)),
    body,
  );
  details.addEventListener("toggle", () => {
    if (details.open && !body.firstChild) open(body, finding, layer);
  });
  return details;
}

function severity(given: string): string {
  return ["error", "warning", "info"].includes(given) ? given : "info";
}

/** The layer that a finding is about, if the page has a map of it. */
function layerOf(run: Run, finding: Finding): string | undefined {
  const names = [...(run.layers?.parameters ?? []), ...(run.layers?.activations ?? [])];
  return names.find((name) => name === finding.where || name.startsWith(`${finding.where} (`));
}

function open(body: HTMLElement, finding: Finding, layer: (() => void) | undefined): void {
  const value = toNumber(finding.value);
  const threshold = toNumber(finding.threshold);
  add(body, h("p", { class: "advice" }, finding.advice));
  if (finding.remedy) {
    add(body, h("div", { class: "code" }, h("pre", { tabindex: 0 }, finding.remedy), copyButton(finding.remedy, "the remedy")));
  }
  const facts = h("dl", { class: "facts" });
  const fact = (name: string, text: string): void => add(facts, h("dt", {}, name), h("dd", {}, text));
  if (!Number.isNaN(value)) fact("measured", short(value));
  if (!Number.isNaN(threshold)) fact("threshold", short(threshold));
  if (finding.where) fact("where", finding.where);
  if (finding.source) fact("threshold from", finding.source);
  if (facts.firstChild) body.appendChild(facts);
  if (layer) add(body, h("button", { type: "button", class: "small", click: layer }, `show ${finding.where} among the layers`));
  if (finding.evidence.length > 1) body.appendChild(evidence(finding, threshold));
  else for (const [step, seen] of finding.evidence) add(body, h("p", {}, `step ${whole(step)}: ${short(toNumber(seen))}`));
}

function evidence(finding: Finding, threshold: number): HTMLElement {
  const x = finding.evidence.map(([step]) => step);
  const y = finding.evidence.map(([, value]) => toNumber(value));
  const known = y.filter((value) => value > 0);
  const wide = known.length === y.length && Math.max(...known) > 50 * Math.min(...known);
  const plot = new Plot("What was seen", { log: wide, height: 160 });
  const lines = [{ label: "measured", colour: () => series(0), x, y, dots: true }];
  const near = y.some((value) => Math.abs(value) <= 20 * Math.abs(threshold) && Math.abs(threshold) <= 20 * Math.abs(value));
  if (!Number.isNaN(threshold) && near) {
    lines.push({ label: "threshold", colour: () => series(1), x, y: x.map(() => threshold), dots: false, dash: [4, 4] } as never);
  }
  plot.show(lines, { log: false, smoothing: 0, time: false });
  return plot.root;
}

/** A few words about the findings of a run: "2 errors, 1 warning". */
export function counted(findings: Finding[]): string {
  const parts = ["error", "warning", "info"].flatMap((kind) => {
    const count = findings.filter((finding) => finding.severity === kind).length;
    return count ? [`${count} ${kind}${count > 1 && kind !== "info" ? "s" : ""}`] : [];
  });
  return parts.join(", ") || "none";
}

