// An array as the server packs it, drawn: few numbers as a table, many as a map.

import { unpack } from "../data";
import { add, h } from "../dom";
import { short } from "../format";
import { HeatMap, type Cells } from "../heatmap";
import type { ArrayData, Heat, Nested } from "./types";

/** A single column with more rows than these goes on beside itself. */
const TALL = 8;
const WORDS: Record<string, number> = { nan: NaN, inf: Infinity, "-inf": -Infinity };

/** The numbers of an array in nested lists, those that JSON cannot hold put back. */
export function numbersOf(array: ArrayData): Nested | undefined {
  if (array.numbers === undefined) return undefined;
  const found = structuredClone(array.numbers);
  for (const entry of array.nonfinite ?? []) {
    const value = WORDS[String(entry.at(-1))] ?? NaN;
    const place = entry.slice(0, -1).map(Number);
    const last = place.pop();
    if (last === undefined) return value;
    let inner: Nested | undefined = found;
    for (const at of place) inner = Array.isArray(inner) ? inner[at] : undefined;
    if (Array.isArray(inner)) inner[last] = value;
  }
  return found;
}

export function flat(numbers: Nested): number[] {
  return Array.isArray(numbers) ? numbers.flatMap(flat) : [numbers ?? NaN];
}

/** An array in a few words: its only number, its few numbers, or where they lie. */
export function inWords(array: ArrayData | null | undefined, most = 4): string {
  if (!array) return "";
  const numbers = numbersOf(array);
  const all = numbers === undefined ? [] : flat(numbers);
  if (numbers !== undefined && !Array.isArray(numbers)) return short(numbers ?? NaN);
  if (numbers !== undefined && all.length <= most) return `[${all.map(short).join(", ")}]`;
  const bad = array.nonfinite?.length ? `, ${array.nonfinite.length} not finite` : "";
  if (array.min === null || array.max === null) return bad ? bad.slice(2) : "no finite number";
  return `${short(array.min)} to ${short(array.max)}${bad}`;
}

/** One array of a page that is drawn again and again: its map stays the same element. */
export class ArrayBox {
  readonly root = h("div", { class: "array" });
  private map: HeatMap | undefined;

  /** Show an array: `what` names it for those who do not see it. */
  show(array: ArrayData, what: string): void {
    const numbers = numbersOf(array);
    const map = numbers === undefined && array.heat ? (this.map ??= new HeatMap(undefined, true)) : undefined;
    for (const child of [...this.root.children]) if (child !== map?.root) child.remove();
    if (numbers !== undefined) {
      add(this.root, Array.isArray(numbers) ? table(numbers, what) : h("div", { class: "scalar" }, one(numbers ?? NaN)));
      return;
    }
    if (map && map.root.parentNode !== this.root) add(this.root, map.root);
    if (map && array.heat) map.show(cells(array, array.heat, what));
    const mean = array.mean === null ? "" : `, mean ${short(array.mean)}`;
    add(this.root, h("p", { class: "note" }, `${inWords(array)}${mean}`));
  }
}

function one(value: number): HTMLElement {
  return h("span", { class: Number.isFinite(value) ? "num" : "num bad" }, short(value));
}

function table(numbers: Nested[], what: string): HTMLElement {
  if (!numbers.length) return h("p", { class: "note" }, "no elements");
  if (Array.isArray(numbers[0]) && Array.isArray(numbers[0][0])) {
    return h("div", { class: "slices" },
      ...numbers.map((part, at) => h("div", {}, h("div", { class: "note" }, `[${at}]`), table(part as Nested[], `${what}[${at}]`))));
  }
  const rows = (Array.isArray(numbers[0]) ? numbers : [numbers]) as Nested[][];
  const region = { tabindex: 0, role: "region", "aria-label": `Numbers of ${what}` };
  if (rows.length > TALL && rows.every((row) => row.length === 1)) {
    return h("div", { class: "column", ...region }, ...rows.map(([value]) => h("div", {}, one(typeof value === "number" ? value : NaN))));
  }
  const body = h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((value) => h("td", {}, one(typeof value === "number" ? value : NaN))))));
  return h("div", { class: "scroll", ...region }, h("table", { class: "matrix" }, body));
}

function cells(array: ArrayData, heat: Heat, what: string): Cells {
  const data = unpack({ f4: heat.data });
  const [least, most] = [array.min ?? 0, array.max ?? 0];
  const whole = array.shape.reduce((product, extent) => product * extent, 1) === heat.rows * heat.columns;
  // One long axis is folded into rows.
  const folded = array.shape.length === 1 && heat.rows > 1;
  const last = folded ? (heat.rows - 1) * heat.columns : (whole ? heat.rows : (array.shape.at(-2) ?? heat.rows)) - 1;
  return {
    title: what,
    rows: Array.from({ length: heat.rows }, (_, row) => (folded ? `elements from ${row * heat.columns}` : `row ${row}`)),
    steps: Array.from({ length: heat.columns }, (_, column) => column),
    column: whole || folded ? "column" : "pooled column",
    value: (row, column) => data[row * heat.columns + column] ?? NaN,
    scale: least < 0 && most > 0 ? "signed" : "linear",
    rowHeight: Math.min(Math.max(Math.floor(160 / heat.rows), 2), 14),
    ticks: heat.rows > 1 ? [[0.5, "0"], [heat.rows - 0.5, String(last)]] : [],
  };
}
