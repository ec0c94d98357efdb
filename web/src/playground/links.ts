// Hovering: whoever shows something of a user's line says so here, and everyone who shows the same line marks it.

type Listener = (lines: ReadonlySet<number>, from: object | null) => void;

export class Links {
  private readonly listeners = new Set<Listener>();
  private shown = "";

  /** Call back with the lines that are pointed at, and with the part that they are pointed at in. */
  listen(listener: Listener): void {
    this.listeners.add(listener);
  }

  point(lines: Iterable<number | null>, from: object | null): void {
    const known = new Set([...lines].filter((line): line is number => line !== null && line > 0));
    const key = [...known].sort((a, b) => a - b).join();
    if (key === this.shown) return;
    this.shown = key;
    for (const listener of this.listeners) listener(known, from);
  }

  leave(): void {
    this.point([], null);
  }
}
