// The origin of a run: how to repeat it, its settings, and the processes and machines that worked on it.

import { add, clear, copyButton, h, labelled } from "./dom";
import type { Run, Session } from "./data";
import { short, whole, words } from "./format";
import type { State } from "./state";

export class About {
  readonly root: HTMLElement;
  private readonly body = h("div", {});
  private built: unknown;

  constructor(private readonly state: State) {
    this.root = h("section", { id: "about", "aria-labelledby": "about-title" });
    add(this.root, h("h2", { id: "about-title" }, "Settings and origin"), this.body);
    state.onChange(() => this.draw());
    this.draw();
  }

  private draw(): void {
    const run = this.state.focus?.data;
    if (!run || this.built === run) return;
    this.built = run;
    clear(this.body);
    if (run.command) {
      add(this.body, h("h3", {}, "Repeat this run"),
        h("div", { class: "code" }, h("pre", { tabindex: 0 }, run.command), copyButton(run.command, "the command")));
    }
    if (Object.keys(run.config).length) add(this.body, settings(run));
    if (run.sessions.length) add(this.body, h("h3", {}, "Processes that worked on it"), ...run.sessions.map(session));
  }
}

function settings(run: Run): HTMLElement {
  const body = h("tbody", {});
  const draw = (wanted: string): void => {
    clear(body);
    for (const [key, value] of Object.entries(run.config)) {
      const help = run.helps[key] ?? "";
      if (wanted && !`${key} ${help}`.toLowerCase().includes(wanted)) continue;
      const text = typeof value === "number" ? short(value) : typeof value === "boolean" ? (value ? "yes" : "no") : (value ?? "");
      add(body, h("tr", {}, h("th", { scope: "row" }, words(key)), h("td", { class: "number" }, text), h("td", { class: "note" }, help)));
    }
  };
  const filter = h("input", { type: "search", placeholder: "part of a name" });
  filter.addEventListener("input", () => draw(filter.value.toLowerCase()));
  draw("");
  const head = ["setting", "value", "what it is"].map((text) => h("th", { scope: "col" }, text));
  return h("div", {}, h("h3", {}, "Settings"), h("div", { class: "controls" }, labelled("filter", filter)),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Settings" },
      h("table", { class: "settings" }, h("thead", {}, h("tr", {}, ...head)), body)));
}

function session(one: Session, place: number): HTMLElement {
  const facts = h("dl", { class: "facts" });
  const fact = (name: string, text: string | undefined): void => {
    if (text) add(facts, h("dt", {}, name), h("dd", {}, text));
  };
  const time = (text: string | undefined): string => (text ?? "").replace("T", " ").replace("+00:00", " UTC");
  fact("began", time(one.began));
  fact("until", time(one.until));
  if (one.from_step !== undefined) {
    fact("steps", `${whole(one.from_step)} to ${one.step === undefined ? "…" : whole(one.step)}`);
  }
  fact("ended", [one.ended, one.reason].filter(Boolean).join(": "));
  fact("command", one.command?.join(" "));
  fact("versions", pairs(one.versions));
  fact("machine", pairs(one.machine));
  fact("environment", pairs(one.variables));
  return h("details", place === 0 ? { open: true } : {}, h("summary", {}, `process ${place + 1}`), facts);
}

function pairs(found: Record<string, string | number> | undefined): string {
  return Object.entries(found ?? {}).map(([key, value]) => `${key} ${value}`).join(", ");
}
