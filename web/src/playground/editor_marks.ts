// What is drawn over the text: lines that are linked with what the pointer is over, and where a run failed.

import { StateEffect, StateField, type EditorState, type Extension, type Range } from "@codemirror/state";
import { Decoration, EditorView, WidgetType, type DecorationSet } from "@codemirror/view";
import { h } from "../dom";
import type { Failure } from "./types";

export const setLinked = StateEffect.define<number[]>();
export const setFailure = StateEffect.define<Failure | null>();

class Said extends WidgetType {
  constructor(private readonly failure: Failure) {
    super();
  }

  override eq(other: Said): boolean {
    return other.failure.message === this.failure.message && other.failure.kind === this.failure.kind;
  }

  toDOM(): HTMLElement {
    const { kind, message } = this.failure;
    const text = message.split("\n").slice(0, 12).join("\n");
    return h("div", { class: "failure-line", role: "alert" }, h("strong", {}, kind), text ? `: ${text}` : "");
  }
}

const linked = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(before, transaction) {
    let now = before.map(transaction.changes);
    for (const effect of transaction.effects) if (effect.is(setLinked)) now = lines(transaction.state, effect.value);
    return now;
  },
  provide: (field) => EditorView.decorations.from(field),
});

const failed = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(before, transaction) {
    let now = before.map(transaction.changes);
    for (const effect of transaction.effects) if (effect.is(setFailure)) now = place(transaction.state, effect.value);
    return now;
  },
  provide: (field) => EditorView.decorations.from(field),
});

function lines(state: EditorState, numbers: number[]): DecorationSet {
  const known = numbers.filter((line) => line >= 1 && line <= state.doc.lines).sort((a, b) => a - b);
  return Decoration.set(known.map((line) => Decoration.line({ class: "cm-linked" }).range(state.doc.line(line).from)));
}

function place(state: EditorState, failure: Failure | null): DecorationSet {
  if (!failure || failure.line === null || failure.line < 1) return Decoration.none;
  const line = state.doc.line(Math.min(failure.line, state.doc.lines));
  const indent = line.text.length - line.text.trimStart().length;
  const start = line.from + Math.min(Math.max(failure.column ?? indent, 0), line.length);
  // An error at the end of a line has no character to underline: the last one is.
  const from = start < line.to ? start : Math.max(line.from, line.to - 1);
  const found: Range<Decoration>[] = [];
  if (from < line.to) found.push(Decoration.mark({ class: "cm-failed" }).range(from, line.to));
  found.push(Decoration.widget({ widget: new Said(failure), block: true, side: 1 }).range(line.to));
  return Decoration.set(found);
}

export function marks(): Extension {
  return [linked, failed];
}
