// Panes Derivation, Check and Doctor: formulas, the verdict on each gradient, and findings.

import { add, clear, copyButton, h } from "../dom";
import { sentence, short } from "../format";
import { linkedTo, markLinked, Pane, type Around } from "./pane";
import type { CheckData, CheckedInput, DerivationData, DoctorData, DoctorFinding } from "./types";

declare global {
  interface Window { typeset?: (tex: string, host: HTMLElement) => void }
}

let loading: Promise<void> | null = null;

/** Wait for what typesets formulas; a saved page has it in itself. */
function typesetter(): Promise<void> {
  if (window.typeset) return Promise.resolve();
  loading ??= new Promise((resolve) => {
    const script = h("script", { src: "formulas.js" });
    script.onload = script.onerror = () => resolve();
    document.head.append(script);
  });
  return loading;
}

function formula(tex: string, text: string): HTMLElement {
  const host = h("div", { class: "formula", tabindex: 0, role: "group", "aria-label": text || "Formula" });
  void typesetter().then(() => window.typeset ? window.typeset(tex, host) : (host.textContent = tex));
  return host;
}

export class DerivationPane extends Pane<DerivationData> {
  constructor(around: Around) {
    super(around, "There is no derivative to show.");
    markLinked(this.body, around.links);
  }

  protected draw({ steps }: DerivationData): boolean {
    clear(this.body);
    const list = h("ol", { class: "derivation" });
    for (const step of steps) {
      const entry = h("li", {}, h("div", { class: "derivation-head" },
        step.name ? h("h3", {}, step.name) : null, step.text && !step.tex ? h("span", { class: "note" }, step.text) : null,
        step.line ? this.lineButton(step.line) : null), step.tex ? formula(step.tex, step.text) : null);
      linkedTo(entry, [step.line], this.around.links);
      list.appendChild(entry);
    }
    if (steps.length) add(this.body, list);
    return steps.length > 0;
  }
}

export class CheckPane extends Pane<CheckData> {
  constructor(around: Around) {
    super(around, "No input requires a gradient, so there is nothing to check.");
  }

  protected draw({ inputs }: CheckData): boolean {
    clear(this.body);
    if (!inputs.length) return false;
    const wrong = inputs.filter((one) => !one.passed).length;
    const verdict = wrong ? `${wrong} of ${inputs.length} gradients differ from the numeric ones.` : inputs.length === 1
      ? "The gradient agrees with the numeric one." : `All ${inputs.length} gradients agree with the numeric ones.`;
    const heads = ["input", "verdict", "worst error", "where", "analytic", "numeric"];
    add(this.body,
      h("p", { class: wrong ? "reason" : "fine" }, verdict),
      h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Checked gradients" },
        h("table", {}, h("thead", {}, h("tr", {}, ...heads.map((text) => h("th", { scope: "col" }, text)))), h("tbody", {}, ...inputs.map(checked)))),
      ...inputs.filter((one) => one.text && !one.passed).map((one) => h("p", { class: "note" }, `${one.name}: ${one.text}`)));
    return true;
  }
}

function checked(one: CheckedInput): HTMLElement {
  const number = (value: number | null): HTMLElement => h("td", { class: "number" }, value === null ? "" : short(value));
  return h("tr", {}, h("th", { scope: "row" }, one.name), h("td", { class: one.passed ? "verdict fine" : "verdict wrong" }, one.passed ? "✓ agrees" : "✗ differs"),
    number(one.worst), h("td", { class: "number" }, one.where?.length ? `[${one.where.join(", ")}]` : ""), number(one.analytic), number(one.numeric));
}

const SEVERITIES = ["error", "warning", "info"];

export class DoctorPane extends Pane<DoctorData> {
  constructor(around: Around) {
    super(around, "The doctor found nothing wrong.");
    markLinked(this.body, around.links);
  }

  protected draw({ findings }: DoctorData): boolean {
    clear(this.body);
    const place = (severity: string): number => (SEVERITIES.indexOf(severity) + 4) % 4;
    for (const finding of [...findings].sort((a, b) => place(a.severity) - place(b.severity))) add(this.body, this.one(finding));
    return findings.length > 0;
  }

  private one(finding: DoctorFinding): HTMLElement {
    const severity = SEVERITIES.includes(finding.severity) ? finding.severity : "info";
    const root = h("section", { class: `finding ${severity}`, "aria-label": finding.title },
      h("div", { class: "finding-head" }, h("span", { class: "badge" }, severity), h("strong", {}, sentence(finding.title)), " ",
        finding.line ? this.lineButton(finding.line) : null),
      finding.text ? h("p", {}, sentence(finding.text)) : null,
      finding.remedy ? h("div", { class: "code" }, h("pre", { tabindex: 0 }, finding.remedy), copyButton(finding.remedy, "the remedy")) : null,
      finding.page ? h("p", { class: "note" }, "More in the docs: ", h("code", {}, finding.page)) : null);
    linkedTo(root, [finding.line], this.around.links);
    return root;
  }
}
