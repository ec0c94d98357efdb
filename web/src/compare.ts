// Several runs as a table of results and of differing settings: sort it, filter it, choose the runs to draw.

import { add, clear, h, labelled } from "./dom";
import { toNumber, type Num } from "./data";
import { counted } from "./findings";
import { duration, short, stated, whole, words } from "./format";
import type { Shown, State } from "./state";
import { onTheme, series } from "./theme";

interface Column {
  title: string;
  help?: string;
  value: (run: Shown) => Num | boolean | undefined;
  text: (run: Shown) => string;
}

export class Compare {
  readonly root: HTMLElement;
  private readonly host = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table of runs" });
  private readonly count = h("output", {});
  private readonly columns: Column[];
  private sorted: { column: number; down: boolean } = { column: -1, down: false };
  private filter = "";
  private readonly wanted = new Set<Shown>();

  constructor(private readonly state: State) {
    this.columns = columns(state.runs);
    for (const run of state.runs) this.wanted.add(run);
    const filter = h("input", { type: "search", placeholder: "name, state or key=value" });
    filter.addEventListener("input", () => {
      this.filter = filter.value;
      this.choose();
    });
    this.root = h("section", { id: "runs", "aria-labelledby": "runs-title" });
    add(this.root, h("h2", { id: "runs-title" }, "Runs"),
      h("div", { class: "controls" }, labelled("filter", filter), this.count), this.host);
    onTheme(() => this.draw());
    this.draw();
  }

  private fits(run: Shown): boolean {
    const cells = this.columns.map((column) => `${column.title}=${column.text(run)}`.toLowerCase());
    const whole = [run.data.name.toLowerCase(), ...cells].join(" ");
    return this.filter.toLowerCase().split(/\s+/).every((term) => {
      const [key, value] = term.split("=");
      if (key !== undefined && value !== undefined && this.columns.some((column) => column.title.toLowerCase() === key)) {
        return cells.some((cell) => cell === `${key}=${value}`);
      }
      return whole.includes(term);
    });
  }

  private choose(): void {
    for (const run of this.state.runs) run.visible = this.wanted.has(run) && this.fits(run);
    this.draw();
    this.state.changed();
  }

  draw(): void {
    const runs = this.state.runs.filter((run) => this.fits(run));
    const column = this.columns[this.sorted.column];
    if (column) runs.sort((a, b) => order(column.value(a), column.value(b), this.sorted.down));
    this.count.textContent = `${runs.length} of ${this.state.runs.length} runs`;
    const head = this.columns.map((one, place) => this.head(one, place));
    const rows = runs.map((run) => this.row(run));
    clear(this.host);
    add(this.host, h("table", { class: "runs" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "drawn"), ...head)), h("tbody", {}, ...rows)));
  }

  private head(column: Column, place: number): HTMLElement {
    const mine = this.sorted.column === place;
    const button = h("button", { type: "button", class: "sort", title: column.help },
      column.title, h("span", { "aria-hidden": "true" }, mine ? (this.sorted.down ? " ▼" : " ▲") : ""));
    button.addEventListener("click", () => {
      this.sorted = { column: place, down: mine && !this.sorted.down };
      this.draw();
      (this.host.querySelectorAll("th button")[place] as HTMLElement | undefined)?.focus();
    });
    return h("th", { scope: "col", "aria-sort": mine ? (this.sorted.down ? "descending" : "ascending") : "none" }, button);
  }

  private row(run: Shown): HTMLElement {
    const box = h("input", { type: "checkbox", "aria-label": `draw ${run.data.name}`, checked: this.wanted.has(run) });
    box.addEventListener("change", () => {
      if (box.checked) this.wanted.add(run);
      else this.wanted.delete(run);
      const name = run.data.name;
      this.choose();
      (this.host.querySelector(`input[aria-label=${CSS.escape(`draw ${name}`)}]`) as HTMLElement | null)?.focus();
    });
    const mark = h("span", { class: "mark", "aria-hidden": "true" });
    mark.style.borderColor = series(run.place);
    const [first, ...rest] = this.columns;
    return h("tr", {}, h("td", { class: "draw" }, box, mark), h("th", { scope: "row" }, first?.text(run)),
      ...rest.map((column) => h("td", { class: typeof column.value(run) === "number" ? "number" : undefined }, column.text(run))));
  }
}

function columns(runs: Shown[]): Column[] {
  const results = union(runs.map((run) => Object.keys(run.data.results))).filter((key) => key !== "seconds");
  const keys = union(runs.map((run) => Object.keys(run.data.config)));
  const differ = keys.filter((key) => key !== "data" || runs.length > 1)
    .filter((key) => new Set(runs.map((run) => JSON.stringify(run.data.config[key]))).size > 1)
    .filter((key) => key !== "run_dir");
  return [
    { title: "run", value: (run) => run.data.name, text: (run) => run.data.name },
    { title: "state", value: (run) => run.data.state, text: (run) => stated(run.data.state).word },
    { title: "findings", value: (run) => gravity(run), text: (run) => counted(run.data.findings) },
    { title: "step", value: (run) => run.data.step, text: (run) => whole(run.data.step) },
    ...preferred(results).map((key) => ({
      title: key,
      value: (run: Shown) => run.data.results[key],
      text: (run: Shown) => shown(run.data.results[key]),
    })),
    { title: "time", value: (run) => run.data.results["seconds"], text: (run) => duration(toNumber(run.data.results["seconds"])) },
    ...differ.map((key) => {
      const help = runs.map((run) => run.data.helps[key]).find((text) => text);
      return {
        title: words(key),
        ...(help ? { help } : {}),
        value: (run: Shown) => run.data.config[key],
        text: (run: Shown) => shown(run.data.config[key]),
      };
    }),
  ];
}

function union(lists: string[][]): string[] {
  return [...new Set(lists.flat())];
}

/** Losses and accuracies, validation first; the curves show the rest. */
function preferred(results: string[]): string[] {
  const rank = (key: string): number =>
    (key.includes("accuracy") ? 0 : key.includes("loss") ? 1 : 2) + (key.startsWith("train") ? 0.5 : 0);
  return results.filter((key) => rank(key) < 2 || !key.startsWith("train")).sort((a, b) => rank(a) - rank(b)).slice(0, 8);
}

function gravity(run: Shown): number {
  const weights: Record<string, number> = { error: 10_000, warning: 100, info: 1 };
  return run.data.findings.reduce((sum, finding) => sum + (weights[finding.severity] ?? 0), 0);
}

function shown(value: Num | boolean | undefined): string {
  if (value === undefined) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return short(value);
  return value === null ? "NaN" : value;
}

function order(a: Num | boolean | undefined, b: Num | boolean | undefined, down: boolean): number {
  const missing = (value: unknown): boolean => value === undefined || value === null || Number.isNaN(value);
  if (missing(a) || missing(b)) return missing(a) === missing(b) ? 0 : missing(a) ? 1 : -1;
  const found = typeof a === "number" && typeof b === "number"
    ? a - b
    : String(a).localeCompare(String(b), "en", { numeric: true });
  return down ? -found : found;
}
