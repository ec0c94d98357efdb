// The editor: Python, with what its lines are linked to, completions of the server, and numbers that can be dragged.

import { closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState, Transaction, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";
import { help } from "./editor_help";
import { marks, setFailure, setLinked } from "./editor_marks";
import { NumberBar, numbers, SLIDE } from "./editor_numbers";
import type { Links } from "./links";
import type { Server } from "./server";
import type { Failure } from "./types";

/** How a text changed: by a key, by dragging a number, or as a whole. */
export type Change = "typed" | "slid" | "loaded";

export interface EditorOptions {
  text: string;
  /** None where a recorded page is shown: it can be read only. */
  server: Server | null;
  links: Links;
  changed: (how: Change) => void;
  run: () => void;
  save: () => void;
}

export class Editor {
  readonly root: HTMLElement;
  readonly bar: NumberBar;
  private readonly view: EditorView;

  constructor(private readonly options: EditorOptions) {
    this.view = new EditorView({ state: EditorState.create({ doc: options.text, extensions: this.extensions() }) });
    this.root = this.view.dom;
    this.bar = new NumberBar(this.view);
    this.point();
    options.links.listen((lines, from) => {
      this.view.dispatch({ effects: setLinked.of([...lines]) });
      const [first] = lines;
      if (from !== this && first !== undefined) this.reveal(first);
    });
  }

  get text(): string {
    return this.view.state.doc.toString();
  }

  /** Put another text in; undo brings the one before back. */
  load(text: string): void {
    if (text === this.text) return;
    this.view.dispatch({
      changes: { from: 0, to: this.view.state.doc.length, insert: text },
      selection: { anchor: 0 },
      annotations: Transaction.userEvent.of("load"),
      scrollIntoView: true,
    });
  }

  fail(failure: Failure | null): void {
    this.view.dispatch({ effects: setFailure.of(failure) });
  }

  focus(): void {
    this.view.focus();
  }

  /** Put the cursor at the beginning of a line. */
  go(line: number): void {
    const at = this.line(line);
    if (!at) return;
    this.view.dispatch({ selection: { anchor: at.from }, effects: EditorView.scrollIntoView(at.from, { y: "center" }) });
    this.view.focus();
  }

  private line(line: number): { from: number; to: number } | null {
    const { doc } = this.view.state;
    return line >= 1 && line <= doc.lines ? doc.line(line) : null;
  }

  private reveal(line: number): void {
    const at = this.line(line);
    if (!at) return;
    const box = this.view.coordsAtPos(at.from);
    const frame = this.view.scrollDOM.getBoundingClientRect();
    if (!box || box.top < frame.top || box.bottom > frame.bottom) {
      this.view.dispatch({ effects: EditorView.scrollIntoView(at.from, { y: "center" }) });
    }
  }

  private extensions(): Extension[] {
    const { server } = this.options;
    const shared = [
      lineNumbers(), drawSelection(), bracketMatching(), python(), syntaxHighlighting(classHighlighter), indentUnit.of("    "),
      marks(), EditorView.lineWrapping, EditorState.tabSize.of(4),
      EditorView.contentAttributes.of({ "aria-label": "Program. Escape, then Tab leaves it.", spellcheck: "false", autocapitalize: "off" }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) this.options.changed(how(update.transactions));
        if (update.selectionSet && !update.docChanged) this.cursor();
        if (update.docChanged || update.selectionSet) this.bar?.follow();
      }),
    ];
    if (!server) return [...shared, EditorState.readOnly.of(true)];
    const run = (): boolean => (this.options.run(), true);
    const save = (): boolean => (this.options.save(), true);
    return [
      ...shared, history(), highlightActiveLine(), highlightActiveLineGutter(), indentOnInput(), closeBrackets(), help(server), numbers(),
      keymap.of([
        { key: "Mod-Enter", run }, { key: "Mod-s", run: save, preventDefault: true },
        ...closeBracketsKeymap, ...completionKeymap, ...defaultKeymap, ...historyKeymap, indentWithTab,
      ]),
    ];
  }

  private cursor(): void {
    if (!this.view.hasFocus) return;
    const { state } = this.view;
    this.options.links.point([state.doc.lineAt(state.selection.main.head).number], this);
  }

  private point(): void {
    this.view.contentDOM.addEventListener("mousemove", (event) => {
      const at = this.view.posAtCoords({ x: event.clientX, y: event.clientY });
      if (at !== null && !event.buttons) this.options.links.point([this.view.state.doc.lineAt(at).number], this);
    });
    this.view.contentDOM.addEventListener("mouseleave", () => this.options.links.leave());
  }
}

function how(transactions: readonly Transaction[]): Change {
  if (transactions.some((one) => one.isUserEvent(SLIDE))) return "slid";
  return transactions.some((one) => one.isUserEvent("load")) ? "loaded" : "typed";
}
