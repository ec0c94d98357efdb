// Pane Cost: what each kernel computes and moves, beside what the machine can do at most (the roofline model).

import { add, clear, h, s } from "../dom";
import { percent, short } from "../format";
import { micro, unit } from "../step_kernels";
import { series } from "../theme";
import { linkedTo, markLinked, Pane, type Around } from "./pane";
import type { CostData, KernelCost } from "./types";

const [WIDE, TALL] = [640, 300];
const [LEFT, RIGHT, TOP, BOTTOM] = [84, 16, 14, 40];

/** A scale of powers of ten, from values to places. */
class Log {
  constructor(readonly low: number, readonly high: number, private readonly from: number, private readonly to: number) {}

  at(value: number): number {
    const share = (Math.log10(value) - this.low) / (this.high - this.low);
    return this.from + Math.min(Math.max(share, 0), 1) * (this.to - this.from);
  }

  powers(): number[] {
    const every = Math.max(Math.ceil((this.high - this.low) / 7), 1);
    return Array.from({ length: Math.floor((this.high - this.low) / every) + 1 }, (_, at) => 10 ** (this.low + at * every));
  }
}

function scale(values: number[], from: number, to: number): Log {
  const logs = values.filter((value) => value > 0 && Number.isFinite(value)).map(Math.log10);
  const low = Math.floor(Math.min(...logs) - 0.1);
  return new Log(low, Math.max(Math.ceil(Math.max(...logs) + 0.1), low + 1), from, to);
}

interface Dot {
  kernel: KernelCost;
  at: number;
  /** Operations for each byte, and for each second. */
  intensity: number;
  speed: number;
}

function dots(kernels: KernelCost[]): Dot[] {
  return kernels.flatMap((kernel, at) =>
    kernel.flops > 0 && kernel.bytes > 0 && kernel.seconds ? [{ kernel, at, intensity: kernel.flops / kernel.bytes, speed: kernel.flops / kernel.seconds }] : []);
}

function roofline(found: Dot[], flops: number, bandwidth: number): SVGElement {
  const ridge = flops / bandwidth;
  const x = scale([...found.map((dot) => dot.intensity), ridge / 8, ridge * 4], LEFT, WIDE - RIGHT);
  const lowest = 10 ** x.low * bandwidth;
  const y = scale([...found.map((dot) => dot.speed), flops, Math.max(lowest, flops / 1e6)], TALL - BOTTOM, TOP);
  const label = `Roofline: at most ${unit(flops)}flop/s, ${unit(bandwidth)}B/s. ` + found.map(told).join("; ");
  const svg = s("svg", { viewBox: `0 0 ${WIDE} ${TALL}`, class: "roofline", role: "img", "aria-label": label });
  for (const power of x.powers()) {
    svg.append(s("line", { x1: x.at(power), x2: x.at(power), y1: TOP, y2: TALL - BOTTOM, class: "grid" }),
      s("text", { x: x.at(power), y: TALL - BOTTOM + 15, "text-anchor": "middle" }, short(power)));
  }
  for (const power of y.powers()) {
    svg.append(s("line", { x1: LEFT, x2: WIDE - RIGHT, y1: y.at(power), y2: y.at(power), class: "grid" }),
      s("text", { x: LEFT - 6, y: y.at(power) + 4, "text-anchor": "end" }, unit(power)));
  }
  const [first, last] = [Math.max(10 ** x.low, 10 ** y.low / bandwidth), 10 ** x.high];
  svg.append(s("path", { class: "roof", d: `M${x.at(first)} ${y.at(first * bandwidth)}L${x.at(ridge)} ${y.at(flops)}L${x.at(last)} ${y.at(flops)}` }));
  svg.append(s("text", { x: (LEFT + WIDE) / 2, y: TALL - 6, "text-anchor": "middle" }, "operations for each byte"),
    s("text", { x: 14, y: TALL / 2, "text-anchor": "middle", transform: `rotate(-90 14 ${TALL / 2})` }, "operations a second"));
  for (const dot of found) {
    const place = { cx: x.at(dot.intensity), cy: y.at(dot.speed), r: 6 };
    const mark = s("circle", { ...place, fill: series(dot.at), class: "dot", "data-at": dot.at });
    mark.append(s("title", {}, told(dot)));
    svg.append(mark);
  }
  return svg;
}

function told({ kernel, intensity, speed }: Dot): string {
  return `${kernel.name}: ${short(intensity)} operations for each byte, ${unit(speed)}flop/s`;
}

export class CostPane extends Pane<CostData> {
  constructor(around: Around) {
    super(around, "Nothing is compiled here, so no kernel was measured.");
    markLinked(this.body, around.links);
  }

  protected draw(data: CostData): boolean {
    clear(this.body);
    const { kernels, peak_flops: flops, peak_bandwidth: bandwidth } = data;
    if (!kernels.length) return false;
    const found = dots(kernels);
    if (flops && bandwidth && found.length) {
      const picture = roofline(found, flops, bandwidth);
      picture.addEventListener("pointerover", (event) => this.over(event.target as Element, kernels));
      picture.addEventListener("pointerleave", () => this.around.links.leave());
      add(this.body, h("div", { class: "roofline-frame", tabindex: 0, role: "region", "aria-label": "Roofline" }, picture),
        h("p", { class: "note" }, `The line is what this machine can do at most: ${unit(flops)}flop/s, ${unit(bandwidth)}B/s. A kernel below its slope waits for memory, one below its flat part for the arithmetic.`));
    }
    const total = data.total_seconds ?? kernels.reduce((sum, kernel) => sum + (kernel.seconds ?? 0), 0);
    const heads = ["kernel", "time", "share", "flop", "bytes", "of the possible", "lines"];
    add(this.body, h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Cost of the kernels" },
      h("table", {}, h("thead", {}, h("tr", {}, ...heads.map((text) => h("th", { scope: "col" }, text)))),
        h("tbody", {}, ...kernels.map((kernel, at) => this.row(kernel, at, total, data))))));
    if (total > 0) add(this.body, h("p", { class: "note" }, `Together ${micro(total)}.`));
    return true;
  }

  private row(kernel: KernelCost, at: number, total: number, { peak_flops: flops, peak_bandwidth: bandwidth }: CostData): HTMLElement {
    const swatch = h("span", { class: "swatch", "aria-hidden": "true" });
    swatch.style.background = series(at);
    const best = flops && bandwidth ? Math.max(kernel.flops / flops, kernel.bytes / bandwidth) : 0;
    const cells = [
      kernel.seconds ? micro(kernel.seconds) : "", kernel.seconds && total > 0 ? percent(kernel.seconds / total) : "",
      unit(kernel.flops), unit(kernel.bytes), best && kernel.seconds ? percent(Math.min(best / kernel.seconds, 1)) : "",
    ];
    const row = h("tr", {}, h("th", { scope: "row" }, swatch, kernel.name), ...cells.map((text) => h("td", { class: "number" }, text)),
      h("td", {}, ...kernel.lines.flatMap((line) => [this.lineButton(line), " "])));
    linkedTo(row, kernel.lines, this.around.links);
    return row;
  }

  private over(target: Element, kernels: KernelCost[]): void {
    const at = Number(target.getAttribute("data-at") ?? -1);
    this.around.links.point(kernels[at]?.lines ?? [], this);
  }
}
