// Generated code, line by line; each line that comes from one of the user's is linked with it, both ways.

import { pythonLanguage } from "@codemirror/lang-python";
import { classHighlighter, highlightCode } from "@lezer/highlight";
import { add, clear, copyButton, h } from "../dom";
import type { Links } from "./links";

export type Language = "python" | "llvm" | "asm" | "c";

/** More lines than anyone reads here; what is cut off stands in what is copied. */
const MOST = 5000;
const WORDS: Record<Exclude<Language, "python">, RegExp> = {
  llvm: /(?<comment>;.*)|(?<string>"[^"]*")|(?<keyword>\b(?:define|declare|ret|br|label|load|store|phi|call|to|align|getelementptr|inbounds|nuw|nsw|fast|void|ptr|double|float|half|i\d+|[fiu]?(?:add|sub|mul|div|cmp|rem)|select|zext|sext|trunc|bitcast|attributes|metadata)\b)|(?<number>\b-?\d+(?:\.\d+)?(?:e[-+]?\d+)?\b|0x[\da-fA-F]+)|(?<variableName>[%@][-\w.$]+)/g,
  asm: /(?<comment>(?:[#;]|\/\/).*)|(?<string>"[^"]*")|(?<keyword>^\s+(?:\.?[a-z][\w.]*))|(?<number>\$?-?\b(?:0x[\da-f]+|\d+)\b)|(?<variableName>%[a-z][\w]*)/g,
  c: /(?<comment>\/\/.*|\/\*.*?\*\/|^#.*)|(?<string>"[^"]*")|(?<keyword>\b(?:for|if|else|while|return|const|restrict|void|int|long|size_t|float|double|static|inline|struct|u?int\d+_t|parallel|in|range)\b)|(?<number>\b\d+(?:\.\d*)?(?:e[-+]?\d+)?f?\b)/g,
};

function tokens(line: string, language: Exclude<Language, "python">): Node[] {
  const found: Node[] = [];
  let at = 0;
  for (const match of line.matchAll(WORDS[language])) {
    const kind = Object.entries(match.groups ?? {}).find(([, text]) => text !== undefined)?.[0] ?? "";
    if (match.index > at) found.push(document.createTextNode(line.slice(at, match.index)));
    found.push(h("span", { class: `tok-${kind}` }, match[0]));
    at = match.index + match[0].length;
  }
  if (at < line.length) found.push(document.createTextNode(line.slice(at)));
  return found;
}

/** The lines of a text, each as its coloured pieces. */
function coloured(text: string, language: Language): Node[][] {
  if (language !== "python") return text.split("\n").map((line) => tokens(line, language));
  const found: Node[][] = [[]];
  const put = (piece: string, classes: string): void => {
    found.at(-1)?.push(classes ? h("span", { class: classes }, piece) : document.createTextNode(piece));
  };
  highlightCode(text, pythonLanguage.parser.parse(text), classHighlighter, put, () => found.push([]));
  return found;
}

export class Listing {
  readonly root: HTMLElement;
  private readonly list: HTMLElement;
  private readonly tools = h("div", { class: "listing-tools" });
  private rows: HTMLElement[] = [];
  private source: (number | null)[] = [];
  private text: string | null = null;
  private at = -1;

  constructor(
    private readonly what: string,
    private readonly links: Links,
  ) {
    this.list = h("div", {
      class: "listing", tabindex: 0, role: "region", "aria-label": `${what}, line by line. Arrow keys go from line to line.`,
      keydown: (event) => this.key(event as KeyboardEvent), mouseleave: () => this.links.leave(),
      mouseover: (event) => this.over(event.target as HTMLElement),
    });
    this.root = h("div", { class: "listing-frame" }, this.tools, this.list);
    links.listen((lines, from) => this.mark(lines, from !== this));
  }

  /** Show a text; `source` is the user's line of each of its lines, counted from 1. */
  show(text: string, language: Language, source: Map<number, number>): void {
    const lines = text.replace(/\n$/, "").split("\n");
    this.source = lines.map((_, at) => source.get(at + 1) ?? null);
    if (text === this.text) {
      this.rows.forEach((row, at) => row.classList.toggle("linked", Boolean(this.source[at])));
      return;
    }
    this.text = text;
    this.at = -1;
    clear(this.list);
    clear(this.tools);
    add(this.tools, copyButton(text, this.what));
    const kept = lines.slice(0, MOST);
    this.rows = coloured(kept.join("\n"), language).map((pieces, at) => this.row(pieces, at));
    add(this.list, h("div", { class: "listing-rows" }, ...this.rows));
    if (lines.length > MOST) add(this.list, h("p", { class: "note" }, `${lines.length - MOST} more lines; the copy has them.`));
  }

  private row(pieces: Node[], at: number): HTMLElement {
    return h("div", { class: this.source[at] ? "row linked" : "row", "data-at": at },
      h("span", { class: "row-number", "aria-hidden": "true" }, at + 1), h("code", {}, ...pieces));
  }

  private over(target: HTMLElement): void {
    const at = Number(target.closest<HTMLElement>(".row")?.dataset["at"] ?? -1);
    this.links.point([this.source[at] ?? null], this);
  }

  private mark(lines: ReadonlySet<number>, scroll: boolean): void {
    let first = true;
    this.rows.forEach((row, at) => {
      const on = lines.has(this.source[at] ?? -1);
      row.classList.toggle("chosen", on);
      if (on && first && scroll) this.reveal(row);
      if (on) first = false;
    });
  }

  /** Scroll within the list alone, so that the page stays where it is. */
  private reveal(row: HTMLElement): void {
    const [top, tall] = [row.offsetTop, this.list.clientHeight];
    if (top < this.list.scrollTop || top + row.offsetHeight > this.list.scrollTop + tall) this.list.scrollTop = Math.max(top - tall / 3, 0);
  }

  private key(event: KeyboardEvent): void {
    const way = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (!way || !this.rows.length) return;
    event.preventDefault();
    this.at = Math.min(Math.max(this.at + way, 0), this.rows.length - 1);
    this.rows.forEach((row, at) => row.classList.toggle("at", at === this.at));
    const row = this.rows[this.at];
    if (row) this.reveal(row);
    this.links.point([this.source[this.at] ?? null], this);
  }
}
