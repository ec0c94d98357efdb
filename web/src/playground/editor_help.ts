// Completions and signatures, as the server knows them.

import { autocompletion, type Completion as Offer, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { localCompletionSource } from "@codemirror/lang-python";
import { syntaxTree } from "@codemirror/language";
import { StateEffect, StateField, type EditorState, type Extension } from "@codemirror/state";
import { EditorView, keymap, showTooltip, ViewPlugin, type Tooltip, type ViewUpdate } from "@codemirror/view";
import { h } from "../dom";
import type { Place, Server } from "./server";
import type { Completion, Signature } from "./types";

const PAUSE = 120;
const LONGEST = 1500;
/** What the editor draws a picture for, by the server's word. */
const KINDS: Record<string, string> = {
  function: "function", class: "class", module: "namespace", instance: "variable", param: "variable",
  statement: "variable", keyword: "keyword", property: "property",
};

function placeOf(state: EditorState, at: number): Place {
  const line = state.doc.lineAt(at);
  return { text: state.doc.toString(), line: line.number, column: [...line.text.slice(0, at - line.from)].length };
}

function source(server: Server): (context: CompletionContext) => Promise<CompletionResult | null> {
  return async (context) => {
    const word = context.matchBefore(/\w*/);
    const before = context.state.sliceDoc(Math.max((word?.from ?? context.pos) - 1, 0), word?.from ?? context.pos);
    if (!context.explicit && before !== "." && (word?.text.length ?? 0) < 2) return null;
    if (/^(String|Comment|FormatString)/.test(syntaxTree(context.state).resolveInner(context.pos, -1).name)) return null;
    try {
      const answer = await server.complete(placeOf(context.state, context.pos));
      if (answer.completions.length) return { from: word?.from ?? context.pos, options: answer.completions.map(offer), validFor: /^\w*$/ };
      return answer.message ? localCompletionSource(context) : null;
    } catch {
      return localCompletionSource(context); // the names of the program itself need no server
    }
  };
}

function offer(found: Completion): Offer {
  const doc = found.doc.length > LONGEST ? `${found.doc.slice(0, LONGEST)}…` : found.doc;
  const taken = found.signature.startsWith(found.name) ? found.signature.slice(found.name.length) : found.signature;
  return {
    label: found.name,
    type: KINDS[found.type] ?? "text",
    ...(taken ? { detail: taken.length > 40 ? `${taken.slice(0, 39)}…` : taken } : {}),
    ...(doc ? { info: () => h("div", { class: "doc" }, h("code", {}, found.signature), h("pre", {}, doc)) } : {}),
  };
}

// --- signatures ---------------------------------------------------------------------------------------------

const setSignature = StateEffect.define<Tooltip | null>();

const shownSignature = StateField.define<Tooltip | null>({
  create: () => null,
  update(before, transaction) {
    let now = before && transaction.docChanged ? { ...before, pos: transaction.changes.mapPos(before.pos) } : before;
    for (const effect of transaction.effects) if (effect.is(setSignature)) now = effect.value;
    return now;
  },
  provide: (field) => showTooltip.from(field),
});

/** Where the arguments begin that a place stands in; null outside of calls. */
function callAt(state: EditorState, at: number): number | null {
  for (let node = syntaxTree(state).resolveInner(at, -1); ; ) {
    if (node.name === "ArgList" && at > node.from && (at < node.to || state.sliceDoc(node.to - 1, node.to) !== ")")) return node.from;
    if (!node.parent) return null;
    node = node.parent;
  }
}

function tooltip(at: number, found: Signature): Tooltip {
  const dom = (): { dom: HTMLElement } => {
    const active = found.params[found.index];
    const start = active === undefined ? -1 : found.label.indexOf(active);
    const parts = active === undefined || start < 0 ? [found.label]
      : [found.label.slice(0, start), h("strong", {}, active), found.label.slice(start + active.length)];
    const [first] = found.doc.split("\n\n");
    return { dom: h("div", { class: "signature" }, h("code", {}, ...parts), first ? h("div", { class: "note" }, first.slice(0, 300)) : null) };
  };
  return { pos: at, above: true, create: dom };
}

function signatures(server: Server): Extension {
  return ViewPlugin.fromClass(class {
    private timer = 0;
    private turn = 0;

    constructor(private readonly view: EditorView) {}

    update(update: ViewUpdate): void {
      const shown = update.state.field(shownSignature, false);
      const typed = update.docChanged && update.transactions.some((one) => one.isUserEvent("input.type") && !one.isUserEvent("input.type.slide"));
      if (!typed && !(shown && update.selectionSet)) return;
      window.clearTimeout(this.timer);
      this.timer = window.setTimeout(() => void this.ask(), PAUSE);
    }

    private async ask(): Promise<void> {
      const turn = ++this.turn;
      const head = this.view.state.selection.main.head;
      const call = callAt(this.view.state, head);
      let found: Signature | undefined;
      if (call !== null) {
        try {
          [found] = (await server.signature(placeOf(this.view.state, head))).signatures;
        } catch {
          found = undefined; // help that does not come is no reason to disturb
        }
      }
      const shown = this.view.state.field(shownSignature, false);
      if (turn !== this.turn || (!found && !shown)) return;
      const pos = Math.min(call ?? 0, this.view.state.doc.length);
      this.view.dispatch({ effects: setSignature.of(found && call !== null ? tooltip(pos, found) : null) });
    }

    destroy(): void {
      window.clearTimeout(this.timer);
    }
  });
}

function hide(view: EditorView): boolean {
  if (!view.state.field(shownSignature, false)) return false;
  view.dispatch({ effects: setSignature.of(null) });
  return true;
}

export function help(server: Server): Extension {
  return [
    autocompletion({ override: [source(server)], activateOnTypingDelay: 80 }),
    shownSignature, signatures(server), keymap.of([{ key: "Escape", run: hide }]),
  ];
}
