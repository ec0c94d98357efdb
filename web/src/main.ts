// The page of `glassgrad report`: its parts, built from the data in the document.

import "uplot/dist/uPlot.min.css";
import "./style.css";
import { About } from "./about";
import { Compare } from "./compare";
import { Curves } from "./curves";
import { toNumber, type PageData, type Run } from "./data";
import { add, clear, h, labelled, select } from "./dom";
import { counted, Findings } from "./findings";
import { duration, short, stated, whole } from "./format";
import { LayersView } from "./layers";
import { GraphLink } from "./graph";
import { Live } from "./live";
import { SamplesView } from "./samples";
import { State } from "./state";
import { toggleTheme } from "./theme";

function main(): void {
  const data = JSON.parse(document.getElementById("data")?.textContent ?? "{}") as PageData;
  const page = document.getElementById("page");
  if (!page) return;
  clear(page);
  const state = new State(data.runs);
  const several = data.runs.length > 1;
  const curves = new Curves(state);
  const overview = tiles(data.runs[0]);
  const live = data.live && !several ? new Live(state, curves, tiles, overview, data.live.seconds).root : null;
  const parts = [
    ...(several ? [new Compare(state).root] : []),
    new Findings(state).root,
    curves.root,
    ...(several ? [chooser(state)] : []),
    new LayersView(state).root,
    new GraphLink(state).root,
    new SamplesView(state).root,
    new About(state).root,
  ];
  add(
    page,
    h("a", { class: "skip", href: "#main" }, "Skip to the content"),
    header(data, state),
    h("main", { id: "main" }, live, ...(several ? [] : [overview]), ...parts),
    h("footer", {}, `Written by glassgrad ${data.version} on ${data.made.replace("T", " ").replace("+00:00", " UTC")}.`),
  );
}

function header(data: PageData, state: State): HTMLElement {
  const several = data.runs.length > 1;
  const links: [string, string][] = [
    ...(several ? [["runs", "Runs"] as [string, string]] : []),
    ["findings", "Findings"],
    ["curves", "Curves"],
    ["layers", "Layers"],
    ["graph", "Step"],
    ...(state.runs.some((run) => run.data.samples) ? [["samples", "Samples"] as [string, string]] : []),
    ["about", "Settings"],
  ];
  const theme = h("button", { type: "button", class: "small", click: toggleTheme, "aria-label": "Change between light and dark" }, "◐");
  return h(
    "header",
    {},
    h("h1", {}, several ? `${data.runs.length} runs` : (data.runs[0]?.name ?? "no runs")),
    h("nav", { "aria-label": "Parts of the page" }, ...links.map(([id, text]) => h("a", { href: `#${id}` }, text))),
    theme,
  );
}

function tiles(run: Run | undefined): HTMLElement {
  const list = h("dl", { class: "tiles" });
  if (!run) return list;
  const tile = (name: string, text: string, kind = ""): void =>
    add(list, h("div", { class: `tile ${kind}` }, h("dt", {}, name), h("dd", {}, text)));
  const failed = run.state.startsWith("failed") || run.state.startsWith("ended without");
  const { word, reason } = stated(run.state);
  tile("state", word, failed ? "bad" : "");
  tile("steps", run.steps ? `${whole(run.step)} of ${whole(run.steps)}` : whole(run.step));
  tile("findings", counted(run.findings), run.findings.some((finding) => finding.severity === "error") ? "bad" : "");
  for (const [key, value] of Object.entries(run.results)) {
    if (key === "seconds") tile("time", duration(toNumber(value)));
    else if (key.includes("loss") || key.includes("accuracy")) tile(key, short(toNumber(value)));
  }
  return reason ? h("div", {}, list, h("p", { class: "reason" }, reason)) : list;
}

function chooser(state: State): HTMLElement {
  const names = state.runs.map((run) => run.data.name);
  const chosen = select(names, names[0] ?? "", (name) => {
    state.focus = state.runs.find((run) => run.data.name === name);
    state.changed();
  });
  state.onChange(() => (chosen.value = state.focus?.data.name ?? ""));
  return h("section", { class: "chooser", "aria-label": "One run" }, h("h2", {}, "One run"),
    h("div", { class: "controls" }, labelled("layers, samples and settings of", chosen)));
}

main();
