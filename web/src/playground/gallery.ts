// The gallery of examples, lessons and exercises; the questions of the one that is open, and its judge.

import { add, clear, h } from "../dom";
import type { Server } from "./server";
import type { Example, ExampleEntry } from "./types";

const EXERCISE = "exercise-";

export class Gallery {
  readonly dialog: HTMLDialogElement;
  private readonly list = h("div", { class: "gallery-list" });
  private readonly field = h("input", { type: "search", placeholder: "search", "aria-label": "Search the gallery" });
  private entries: ExampleEntry[] = [];

  constructor(private readonly pick: (name: string) => void) {
    this.field.addEventListener("input", () => this.draw());
    this.field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault(); // the button that opened the gallery has the focus by then, and would take the key
      this.list.querySelector("button")?.click();
    });
    this.dialog = h("dialog", { class: "gallery", "aria-label": "Gallery", click: (event) => event.target === this.dialog && this.dialog.close() },
      h("div", { class: "gallery-frame" },
        h("div", { class: "controls" }, h("h2", {}, "Gallery"), this.field,
          h("button", { type: "button", class: "small", "aria-label": "Close the gallery", click: () => this.dialog.close() }, "✕")),
        this.list));
  }

  fill(entries: ExampleEntry[]): void {
    this.entries = entries;
  }

  open(): void {
    this.field.value = "";
    this.draw();
    this.dialog.showModal();
    this.field.focus();
  }

  private draw(): void {
    clear(this.list);
    const wanted = this.field.value.trim().toLowerCase();
    const fits = this.entries.filter((one) => `${one.name} ${one.title} ${one.about}`.toLowerCase().includes(wanted));
    const groups: [string, ExampleEntry[]][] = [
      ["Examples", fits.filter((one) => !one.lesson && !one.name.startsWith(EXERCISE))],
      ["Lessons", fits.filter((one) => one.lesson && !one.name.startsWith(EXERCISE))],
      ["Exercises", fits.filter((one) => one.name.startsWith(EXERCISE))],
    ];
    for (const [title, entries] of groups) {
      if (entries.length) add(this.list, h("h3", {}, title), h("ul", { class: "plain cards" }, ...entries.map((one) => h("li", {}, this.card(one)))));
    }
    if (!fits.length) add(this.list, h("p", { class: "empty" }, "Nothing in the gallery fits."));
  }

  private card(entry: ExampleEntry): HTMLElement {
    const choose = (): void => {
      this.dialog.close();
      this.pick(entry.name);
    };
    return h("button", { type: "button", class: "card", click: choose }, h("strong", {}, entry.title), h("span", { class: "note" }, entry.about));
  }
}

/** What the open example asks; an exercise has a judge. */
export class Questions {
  readonly root = h("details", { class: "questions", open: true });
  private readonly verdict = h("div", { role: "status" });

  constructor(
    private readonly server: Server,
    private readonly text: () => string,
  ) {
    this.root.hidden = true;
  }

  show(example: Example | null): void {
    clear(this.root);
    clear(this.verdict);
    const exercise = example?.name.startsWith(EXERCISE) ?? false;
    this.root.hidden = !example || (!exercise && !example.questions.length);
    if (!example || this.root.hidden) return;
    add(this.root, h("summary", {}, example.title));
    const list = h("ol", {});
    for (const entry of example.questions) {
      const { question, answer } = typeof entry === "string" ? { question: entry, answer: undefined } : entry;
      add(list, h("li", {}, question, answer ? h("details", {}, h("summary", { class: "note" }, "answer"), h("p", {}, answer)) : null));
    }
    if (example.questions.length) add(this.root, list);
    if (!exercise) return;
    const judge = h("button", { type: "button", class: "small", click: () => void this.judge(example.name, judge) }, "Judge my program");
    add(this.root, judge, this.verdict);
  }

  private async judge(name: string, button: HTMLButtonElement): Promise<void> {
    button.disabled = true;
    clear(this.verdict);
    try {
      const { passed, message, hints } = await this.server.judge(name, this.text());
      add(this.verdict, h("p", { class: passed ? "fine" : "wrong" }, `${passed ? "✓ Passed. " : "✗ Not yet. "}${message}`));
      if (!passed && hints?.length) add(this.verdict, h("details", {}, h("summary", {}, "hints"), h("ol", {}, ...hints.map((hint) => h("li", {}, hint)))));
    } catch (error) {
      add(this.verdict, h("p", { class: "wrong" }, `The judge did not answer: ${error instanceof Error ? error.message : String(error)}`));
    }
    button.disabled = false;
  }
}
