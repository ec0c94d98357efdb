// Pane Output: what the program printed, and where it failed.

import { add, clear, h } from "../dom";
import type { Around } from "./pane";
import { lineButton } from "./pane";
import type { Failure } from "./types";

/** A program that prints without end is shown by its last characters. */
const MOST = 200_000;

export class OutputPane {
  readonly root = h("div", { class: "pane" });
  private readonly text = h("pre", { class: "output", tabindex: 0, role: "log", "aria-label": "What the program printed" });
  private readonly failed = h("div", {});
  private readonly said = h("p", { class: "note" });
  private length = 0;

  constructor(private readonly around: Around) {
    add(this.root, this.failed, this.said, this.text);
    this.clear();
  }

  clear(): void {
    clear(this.text);
    clear(this.failed);
    this.length = 0;
    this.said.textContent = "The program printed nothing.";
    this.text.hidden = true;
  }

  print(text: string, stream: "stdout" | "stderr"): void {
    const kept = text.length > MOST ? text.slice(-MOST) : text;
    const last = this.text.lastChild;
    if (last instanceof HTMLElement && last.className === stream && last.textContent !== null && last.textContent.length < 4096) last.append(kept);
    else add(this.text, h("span", { class: stream }, kept));
    this.length += kept.length;
    this.said.textContent = "";
    while (this.length > MOST && this.text.childNodes.length > 1 && this.text.firstChild) {
      this.length -= this.text.firstChild.textContent?.length ?? 0;
      this.text.firstChild.remove();
      this.said.textContent = "The beginning of the output was left out.";
    }
    this.text.hidden = false;
    this.text.scrollTop = this.text.scrollHeight;
  }

  fail(failure: Failure | null): void {
    clear(this.failed);
    if (!failure) return;
    add(this.failed, h("div", { class: "failure" },
      h("p", {}, h("strong", {}, failure.kind), failure.message ? `: ${failure.message}` : "", " ", failure.line ? lineButton(failure.line, this.around) : null),
      failure.traceback ? h("pre", { class: "text", tabindex: 0 }, failure.traceback) : null));
  }
}
