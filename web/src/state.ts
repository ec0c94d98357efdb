// Which runs there are, which are shown, and which one the parts about a single run look at.

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

  /** Have the part about layers show one of a run; set by that part. */
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
