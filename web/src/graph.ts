// A link to the graph of a step, which has its own page because it can be larger than all the rest.

import { add, clear, h } from "./dom";
import type { State } from "./state";

export class GraphLink {
  readonly root: HTMLElement;
  private readonly body = h("p", {});
  private built: unknown;

  constructor(private readonly state: State) {
    this.root = h("section", { id: "graph", "aria-labelledby": "graph-title" });
    add(this.root, h("h2", { id: "graph-title" }, "A step as a graph"), this.body);
    state.onChange(() => this.draw());
    this.draw();
  }

  private draw(): void {
    const run = this.state.focus?.data;
    if (!run || this.built === run) return;
    this.built = run;
    clear(this.body);
    this.body.className = run.graph ? "" : "empty";
    if (run.graph) {
      add(this.body, h("a", { href: run.graph, class: "button" }, "Open the graph"),
        " Every op of the run's next step with its value and gradient: play it forward and backward, beside the program and its kernels.");
    } else {
      const command = run.config["task"] === "trainer" ? "trainer.report()" : `glassgrad report ${run.path}`;
      add(this.body, "Not drawn yet. ", h("code", {}, command), " draws it.");
    }
  }
}
