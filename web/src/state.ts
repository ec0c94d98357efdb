// The runs, the ones that are shown, and the one that the parts about a single run show.

import type { Run } from "./data";

export interface Shown {
  data: Run;
  place: number;
  visible: boolean;
}

export class State {
  readonly runs: Shown[];
  focus: Shown | undefined;
  private readonly listeners: (() => void)[] = [];

  constructor(runs: Run[]) {
    this.runs = runs.map((data, place) => ({ data, place, visible: true }));
    this.focus = this.runs[0];
  }

  /** Show a layer of a run; set by the part about layers. */
  layerShown: (name: string) => void = () => undefined;

  /** Draw layers again that have more steps than before; set by the part that draws them. */
  layersGrew: () => void = () => undefined;

  showLayer(run: Shown, name: string): void {
    this.focus = run;
    this.changed();
    this.layerShown(name);
    document.getElementById("layers")?.scrollIntoView();
  }

  visible(): Shown[] {
    return this.runs.filter((run) => run.visible);
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  changed(): void {
    for (const listener of this.listeners) listener();
  }
}
