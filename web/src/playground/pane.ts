// What every pane is: an element that shows the data of one kind, and keeps what it showed while a run has none.

import { add, clear, h } from "../dom";
import type { Links } from "./links";

export interface Around {
  links: Links;
  /** Put the cursor into a line of the program. */
  go: (line: number) => void;
}

export abstract class Pane<Data> {
  readonly root = h("div", { class: "pane" });
  protected readonly body = h("div", { class: "pane-body" });
  private readonly said = h("p", { class: "note pane-note" });

  constructor(
    protected readonly around: Around,
    private readonly empty: string,
  ) {
    add(this.root, this.said, this.body);
    this.say(empty);
  }

  /** Show new data; a pane that stays the same where its data do keeps what the reader has opened. */
  show(data: Data & { note?: string | null }): void {
    this.root.classList.remove("stale");
    const some = this.draw(data);
    this.say(data.note ?? (some ? "" : this.empty));
  }

  /** Say why there is nothing to show. */
  fail(message: string, line: number | null): void {
    this.root.classList.remove("stale");
    this.say("");
    clear(this.body);
    this.forget();
    add(this.body, h("p", { class: "pane-error", role: "status" }, message, line ? " " : null, line ? this.lineButton(line) : null));
  }

  /** What is shown belongs to a text before. */
  stale(): void {
    this.root.classList.add("stale");
  }

  protected say(text: string): void {
    this.said.textContent = text;
    this.said.hidden = !text;
  }

  protected lineButton(line: number): HTMLElement {
    return lineButton(line, this.around);
  }

  /** Draw data into the body; false if there is nothing to see. */
  protected abstract draw(data: Data): boolean;

  /** The body was emptied: whatever was kept of it is gone. */
  protected forget(): void {}
}

/** A button that leads to a line of the program; the line is marked while the pointer is over it. */
export function lineButton(line: number, around: Around): HTMLElement {
  const button = h("button", { type: "button", class: "link line-link", click: () => around.go(line) }, `line ${line}`);
  linkedTo(button, [line], around.links);
  return button;
}

/** Mark the lines of an element while the pointer or the focus is in it, and the element while they are pointed at. */
export function linkedTo(element: HTMLElement, lines: (number | null)[], links: Links): void {
  const enter = (): void => links.point(lines, element);
  element.addEventListener("mouseenter", enter);
  element.addEventListener("focusin", enter);
  element.addEventListener("mouseleave", () => links.leave());
  element.dataset["lines"] = lines.filter(Boolean).join(" ");
}

/** Mark every element below a root that is linked with one of the lines. */
export function markLinked(root: HTMLElement, links: Links): void {
  links.listen((lines) => {
    for (const element of root.querySelectorAll<HTMLElement>("[data-lines]")) {
      element.classList.toggle("chosen", (element.dataset["lines"] ?? "").split(" ").some((line) => lines.has(Number(line))));
    }
  });
}
