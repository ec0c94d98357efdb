// Panes Backward and Kernels: the program of the gradients in NumPy, and each kernel down to its instructions.

import { add, clear, h, labelled, select } from "../dom";
import type { Links } from "./links";
import { Listing, type Language } from "./listing";
import { linkedTo, Pane, type Around } from "./pane";
import type { BackwardData, KernelCode, KernelsData } from "./types";

export class BackwardPane extends Pane<BackwardData> {
  private readonly listing: Listing;

  constructor(around: Around) {
    super(around, "Nothing is differentiated here: call backward() on a result, or gg.grad.");
    this.listing = new Listing("the backward program", around.links);
  }

  protected draw({ program, lines }: BackwardData): boolean {
    const source = new Map(lines.flatMap(({ line, source_line }) => (source_line ? [[line, source_line] as const] : [])));
    if (!program.trim()) {
      clear(this.body);
      return false;
    }
    this.listing.show(program, "python", source);
    if (!this.listing.root.isConnected || this.listing.root.parentNode !== this.body) {
      clear(this.body);
      add(this.body, h("p", { class: "note" }, "The same gradients in NumPy. Point at a line here or in the editor: those that belong together are marked."), this.listing.root);
    }
    return true;
  }
}

interface Form {
  name: string;
  language: Language;
  what: string;
  text: (kernel: KernelCode) => string | null;
}

const FORMS: Form[] = [
  { name: "loop nest", language: "c", what: "the loop nest", text: (kernel) => kernel.nest },
  { name: "LLVM", language: "llvm", what: "the LLVM code", text: (kernel) => kernel.llvm },
  { name: "assembly", language: "asm", what: "the assembly", text: (kernel) => kernel.asm },
  { name: "C", language: "c", what: "the C code", text: (kernel) => kernel.c },
];

export class KernelsPane extends Pane<KernelsData> {
  private kernels: KernelCode[] = [];
  private chosen = 0;
  private form = FORMS[0]?.name ?? "";
  private readonly listings = new Map<string, Listing>();
  private readonly links: Links;

  constructor(around: Around) {
    super(around, "Nothing is compiled here.");
    this.links = around.links;
    this.links.listen((lines, from) => this.follow(lines, from));
  }

  protected draw({ kernels }: KernelsData): boolean {
    this.kernels = kernels;
    this.chosen = Math.min(this.chosen, Math.max(kernels.length - 1, 0));
    clear(this.body);
    const kernel = kernels[this.chosen];
    if (!kernel) return false;
    const forms = FORMS.filter((form) => kernels.some((one) => form.text(one)));
    if (!forms.some((form) => form.name === this.form)) this.form = forms[0]?.name ?? "";
    const entries = kernels.map((one, at) => this.entry(one, at));
    add(this.body,
      h("div", { class: "kernel-list", role: "group", "aria-label": "Kernels" }, ...entries),
      h("div", { class: "controls" }, labelled("shown as", select(forms.map((form) => form.name), this.form, (name) => {
        this.form = name;
        this.showCode();
      })), this.lines),
      this.code);
    this.showCode();
    return true;
  }

  private readonly code = h("div", { class: "kernel-code" });
  private readonly lines = h("span", {});

  private entry(kernel: KernelCode, at: number): HTMLElement {
    const button = h("button", { type: "button", class: "kernel", "aria-pressed": at === this.chosen ? "true" : "false", click: () => this.choose(at) },
      h("b", {}, kernel.name), " ", kernel.name.endsWith(` ${kernel.ops.join("+")}`) ? null : h("span", { class: "note" }, ops(kernel.ops)));
    linkedTo(button, kernel.lines, this.links);
    return button;
  }

  private choose(at: number): void {
    this.chosen = at;
    this.body.querySelectorAll(".kernel").forEach((one, index) => one.setAttribute("aria-pressed", String(index === at)));
    this.showCode();
  }

  private showCode(): void {
    const kernel = this.kernels[this.chosen];
    const form = FORMS.find((one) => one.name === this.form);
    clear(this.code);
    clear(this.lines);
    if (!kernel || !form) return;
    const text = form.text(kernel);
    for (const line of kernel.lines) add(this.lines, this.lineButton(line), " ");
    if (!text) {
      add(this.code, h("p", { class: "empty" }, `There is no ${form.name} of this kernel.`));
      return;
    }
    let listing = this.listings.get(form.name);
    if (!listing) this.listings.set(form.name, (listing = new Listing(form.what, this.links)));
    listing.show(text, form.language, sourceOf(kernel, text));
    add(this.code, listing.root);
  }

  /** Mark the kernels of the lines that are pointed at. */
  private follow(lines: ReadonlySet<number>, from: object | null): void {
    const buttons = this.body.querySelectorAll<HTMLElement>(".kernel");
    const found = this.kernels.flatMap((kernel, at) => (kernel.lines.some((line) => lines.has(line)) ? [at] : []));
    buttons.forEach((button, at) => button.classList.toggle("chosen", found.includes(at)));
    if (from && "text" in from && found.length === 1) buttons[found[0] ?? 0]?.scrollIntoView({ block: "nearest" });
  }
}

/** The user's lines of instructions; where only one line made a kernel, all of its code is that line's. */
function sourceOf(kernel: KernelCode, text: string): Map<number, number> {
  const [only] = kernel.lines;
  if (kernel.lines.length !== 1 || only === undefined) return new Map();
  return new Map(text.split("\n").map((_, at) => [at + 1, only]));
}

function ops(names: string[]): string {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  const all = [...counts].map(([name, count]) => (count > 1 ? `${count} ${name}` : name));
  return all.length > 8 ? `${all.slice(0, 8).join(", ")} and ${all.length - 8} more` : all.join(", ");
}
