// Numbers of the program that can be dragged: with Alt and the pointer, with Alt and the arrow keys, or on a slider.

import { syntaxTree } from "@codemirror/language";
import { Prec, type EditorState, type Extension, type Range } from "@codemirror/state";
import { Decoration, EditorView, keymap, ViewPlugin, type DecorationSet, type ViewUpdate } from "@codemirror/view";
import { add, clear, h } from "../dom";
import { short } from "../format";

/** The event of a change by dragging; changes in quick succession are undone together, as typing is. */
export const SLIDE = "input.type.slide";

const PLAIN = /^-?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i;
/** Points that the pointer moves for one step. */
const POINTS = 4;

export interface Literal {
  from: number;
  to: number;
  text: string;
}

/** The number literal at a place, with its sign; null if there is none that can be dragged. */
export function literalAt(state: EditorState, place: number): Literal | null {
  for (const side of [1, -1] as const) {
    const node = syntaxTree(state).resolveInner(place, side);
    if (node.name !== "Number") continue;
    const parent = node.parent;
    const signed = parent?.name === "UnaryExpression" && state.sliceDoc(parent.from, node.from).trim() === "-" && parent.to === node.to;
    const [from, to] = [signed && parent ? parent.from : node.from, node.to];
    const text = state.sliceDoc(from, to).replaceAll(" ", "");
    if (PLAIN.test(text)) return { from, to, text };
  }
  return null;
}

/** The text of a number that lies so many steps away, written as the one before was. */
export function moved(text: string, steps: number): string {
  const value = Number(text);
  if (/e/i.test(text) && value !== 0) return tidy(value * 10 ** (steps / 20));
  const decimals = /[.]/.test(text) ? (text.split(".")[1] ?? "").length || 1 : 0;
  return (value + steps * 10 ** -decimals).toFixed(decimals);
}

function tidy(value: number): string {
  return value.toExponential(1).replace(".0e", "e").replace("e+", "e");
}

/** Write a number of a slider as the literal was written: whole, with so many decimals, or with an exponent. */
function written(value: number, text: string, step: number): string {
  if (/e/i.test(text)) return tidy(value);
  if (!text.includes(".")) return String(Math.round(value));
  const needed = Math.max(Math.ceil(-Math.log10(step) - 1e-9), 1);
  return value.toFixed(Math.min(Math.max((text.split(".")[1] ?? "").length, needed), 10));
}

function replace(view: EditorView, literal: Literal, text: string): Literal {
  if (text !== literal.text) {
    view.dispatch({ changes: { from: literal.from, to: literal.to, insert: text }, userEvent: SLIDE });
  }
  return { from: literal.from, to: literal.from + text.length, text };
}

// --- in the text --------------------------------------------------------------------------------------------

class Underlined {
  decorations: DecorationSet;

  constructor(view: EditorView) {
    this.decorations = underlined(view);
  }

  update(update: ViewUpdate): void {
    if (update.docChanged || update.viewportChanged || syntaxTree(update.startState) !== syntaxTree(update.state)) {
      this.decorations = underlined(update.view);
    }
  }
}

function underlined(view: EditorView): DecorationSet {
  const found: Range<Decoration>[] = [];
  for (const { from, to } of view.visibleRanges) {
    syntaxTree(view.state).iterate({
      from, to,
      enter: (node) => {
        if (node.name === "Number" && PLAIN.test(view.state.sliceDoc(node.from, node.to))) {
          found.push(Decoration.mark({ class: "cm-number" }).range(node.from, node.to));
        }
      },
    });
  }
  return Decoration.set(found);
}

/** Follow the pointer from where it went down on a number, until it is let go. */
function drag(event: PointerEvent, view: EditorView): boolean {
  const place = event.altKey && event.button === 0 ? view.posAtCoords({ x: event.clientX, y: event.clientY }) : null;
  const literal = place === null ? null : literalAt(view.state, place);
  if (!literal) return false;
  event.preventDefault();
  const first = literal.text;
  let now = literal;
  view.dispatch({ selection: { anchor: literal.to } });
  view.focus();
  const move = (next: PointerEvent): void => {
    now = replace(view, now, moved(first, Math.round((next.clientX - event.clientX) / POINTS) * (next.shiftKey ? 10 : 1)));
  };
  const end = (): void => {
    window.removeEventListener("pointermove", move);
    window.removeEventListener("pointerup", end);
    window.removeEventListener("pointercancel", end);
  };
  window.addEventListener("pointermove", move);
  window.addEventListener("pointerup", end);
  window.addEventListener("pointercancel", end);
  return true;
}

function stepped(steps: number): (view: EditorView) => boolean {
  return (view) => {
    const literal = literalAt(view.state, view.state.selection.main.head);
    if (!literal) return false;
    const text = moved(literal.text, steps);
    view.dispatch({ changes: { from: literal.from, to: literal.to, insert: text }, selection: { anchor: literal.from + text.length }, userEvent: SLIDE });
    return true;
  };
}

export function numbers(): Extension {
  return [
    ViewPlugin.fromClass(Underlined, { decorations: (plugin) => plugin.decorations }),
    Prec.highest(EditorView.domEventHandlers({
      pointerdown: drag,
      // The editor would begin a rectangular selection here.
      mousedown: (event, view) => event.altKey && literalAt(view.state, view.posAtCoords({ x: event.clientX, y: event.clientY }) ?? -1) !== null,
    })),
    Prec.highest(keymap.of([
      { key: "Alt-ArrowUp", run: stepped(1), shift: stepped(10) },
      { key: "Alt-ArrowDown", run: stepped(-1), shift: stepped(-10) },
    ])),
  ];
}

// --- below it -----------------------------------------------------------------------------------------------

/** A range to drag a number in: to its double, in whole steps or a hundred; from 0 if it is above 0. */
function guessed(text: string): { low: number; high: number; step: number } {
  const value = Number(text);
  const reach = 2 * Math.abs(value);
  if (!/[.e]/i.test(text)) return { low: Math.min(0, 2 * value), high: Math.max(10, reach), step: reach < 2000 ? 1 : Math.floor(reach / 100) };
  return { low: value > 0 ? 0 : -(reach || 1), high: reach || 1, step: Number(((reach || 2) / 100).toPrecision(1)) };
}

/** A slider for the number that the cursor stands in. */
export class NumberBar {
  readonly root = h("div", { class: "number-bar" });
  private readonly input = h("input", { type: "range", "aria-label": "Number at the cursor" });
  private readonly said = h("output", { class: "num" });
  private literal: Literal | null = null;
  private range: { low: number; high: number; step: number } | null = null;
  private mine = false;

  constructor(private readonly view: EditorView) {
    this.input.addEventListener("input", () => this.slide());
    this.follow();
  }

  /** Show the number at the cursor. While it is slid its range stays, so that it doesn't run away. */
  follow(): void {
    if (this.mine) return;
    const literal = literalAt(this.view.state, this.view.state.selection.main.head);
    clear(this.root);
    this.literal = literal;
    if (!literal) {
      this.range = null;
      add(this.root, h("span", { class: "note" }, "Drag a number with Alt, or put the cursor in one: a slider appears here."));
      return;
    }
    this.range = guessed(literal.text);
    const value = Number(literal.text);
    const { low, high, step } = this.range;
    for (const [name, bound] of Object.entries({ min: Math.min(low, value), max: Math.max(high, value), step })) this.input.setAttribute(name, String(bound));
    this.input.value = literal.text;
    this.tell(literal.text);
    add(this.root, h("span", { class: "note" }, short(low)), this.input, h("span", { class: "note" }, short(high)), this.said);
  }

  private tell(text: string): void {
    this.said.textContent = text;
    this.input.setAttribute("aria-valuetext", text);
  }

  private slide(): void {
    if (!this.literal || !this.range) return;
    const text = written(Number(this.input.value), this.literal.text, this.range.step);
    this.mine = true;
    this.literal = replace(this.view, this.literal, text);
    this.mine = false;
    this.tell(text);
  }
}
