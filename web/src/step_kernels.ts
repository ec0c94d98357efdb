// The kernels that a step was compiled to: which ops share one, and what each costs.

import { add, clear, h } from "./dom";
import { duration, percent } from "./format";
import type { Kernel, Step } from "./step_data";
import { series } from "./theme";

/** The number of rows at first: those of the most expensive kernels. */
const MOST = 60;

export class KernelsView {
  readonly root: HTMLElement;
  private readonly rows = new Map<number, HTMLElement>();

  constructor(
    private readonly step: Step,
    private readonly pick: (kernel: number) => void,
  ) {
    this.root = h("section", { "aria-labelledby": "kernels-title" }, h("h2", { id: "kernels-title" }, "Kernels"));
    const kernels = step.data.kernels ?? [];
    if (!kernels.length) {
      add(this.root, h("p", { class: "empty" }, step.data.measured || "The step was not compiled."));
      return;
    }
    const total = kernels.reduce((sum, kernel) => sum + cost(kernel), 0) || 1;
    const body = h("tbody", {});
    const draw = (most: number): void => {
      clear(body);
      this.rows.clear();
      const order = kernels.map((_, at) => at).sort((a, b) => cost(kernels[b]) - cost(kernels[a]));
      const shown = new Set(order.slice(0, most));
      kernels.forEach((kernel, at) => shown.has(at) && body.appendChild(this.row(kernel, at, cost(kernel) / total)));
    };
    draw(MOST);
    const all = h("button", { type: "button", class: "small" }, `show all ${kernels.length}`);
    all.addEventListener("click", () => {
      draw(kernels.length);
      all.remove();
    });
    const heads = ["kernel", "makes", kernels.some((one) => one.seconds !== undefined) ? "time" : "share of bytes", "flop", "bytes", "ops"];
    add(
      this.root,
      h("p", { class: "note" }, `${kernels.length} kernels. ${step.data.measured ?? ""} `,
        ...(kernels.length > MOST ? [`The ${MOST} that cost most: `, all] : [])),
      h("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": "Table of kernels" },
        h("table", { class: "kernels" }, h("thead", {}, h("tr", {}, ...heads.map((text) => h("th", { scope: "col" }, text)))), body)),
    );
  }

  private row(kernel: Kernel, at: number, share: number): HTMLElement {
    const mark = h("span", { class: "swatch", "aria-hidden": "true" });
    mark.style.background = series(at);
    const bar = h("span", { class: "share", "aria-hidden": "true" });
    bar.style.width = `${Math.max(share * 60, 1)}px`;
    const time = kernel.seconds !== undefined ? `${micro(kernel.seconds)}, ${percent(share)}` : percent(share);
    const row = h("tr", {},
      h("th", { scope: "row" }, h("button", { type: "button", class: "link", click: () => this.pick(at) }, mark, `${at + 1} ${kernel.kind}`)),
      h("td", {}, kernel.result),
      h("td", { class: "number" }, bar, ` ${time}`),
      h("td", { class: "number" }, unit(kernel.flops)),
      h("td", { class: "number" }, unit(kernel.bytes)),
      h("td", { class: "ops" }, joined(kernel.ops)));
    this.rows.set(at, row);
    return row;
  }

  mark(chosen: number[]): void {
    for (const [at, row] of this.rows) row.classList.toggle("chosen", chosen.includes(at));
  }

  retint(): void {
    for (const [at, row] of this.rows) {
      const mark = row.querySelector<HTMLElement>(".swatch");
      if (mark) mark.style.background = series(at);
    }
  }

  /** The share of a kernel in the whole cost, in the first known unit. */
  get costs(): number[] {
    return (this.step.data.kernels ?? []).map(cost);
  }
}

function cost(kernel: Kernel | undefined): number {
  return kernel?.seconds ?? kernel?.bytes ?? 0;
}

export function micro(seconds: number): string {
  if (seconds < 1e-3) return `${(seconds * 1e6).toPrecision(3)} µs`;
  return seconds < 1 ? `${(seconds * 1e3).toPrecision(3)} ms` : duration(seconds);
}

export function unit(value: number): string {
  for (const name of ["", " k", " M", " G"]) {
    if (value < 1000) return `${Number(value.toPrecision(3))}${name}`;
    value /= 1000;
  }
  return `${Number(value.toPrecision(3))} T`;
}

function joined(ops: string[]): string {
  const counts = new Map<string, number>();
  for (const op of ops) counts.set(op, (counts.get(op) ?? 0) + 1);
  return [...counts].map(([op, count]) => (count > 1 ? `${count} ${op}` : op)).join(", ");
}

