// The text of each tab is kept in the browser: a reload, a restart or a closed laptop loses nothing.

const STEM = "glassgrad-playground:";
const MOST = 20;

interface Kept {
  text: string;
  file: string | null;
  example: string | null;
  when: number;
}

/** A browser can refuse storage; the server keeps the text then. */
function guarded<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch {
    return undefined;
  }
}

export class KeptText {
  private id: string;

  private constructor(id: string) {
    this.id = id;
  }

  /** The tab's own place. A duplicated tab copies the name of its place, so a lock tells who had it first. */
  static async open(): Promise<KeptText> {
    const before = guarded(() => sessionStorage.getItem(`${STEM}tab`));
    const kept = new KeptText(before ?? fresh());
    if (before && !(await held(before))) {
      const text = kept.read();
      kept.id = fresh();
      if (text) kept.write(text.text, text.file, text.example);
    }
    if (!before || kept.id !== before) await held(kept.id);
    guarded(() => sessionStorage.setItem(`${STEM}tab`, kept.id));
    return kept;
  }

  read(): Kept | null {
    const text = guarded(() => localStorage.getItem(STEM + this.id));
    const found = text ? guarded(() => JSON.parse(text) as Kept) : null;
    return found && typeof found.text === "string" ? found : null;
  }

  write(text: string, file: string | null, example: string | null): void {
    const entry = JSON.stringify({ text, file, example, when: Date.now() } satisfies Kept);
    guarded(() => localStorage.setItem(STEM + this.id, entry));
  }

  /** Forget tabs that have not been used for longest. */
  static prune(): void {
    guarded(() => {
      const keys = Object.keys(localStorage).filter((key) => key.startsWith(STEM));
      const when = (key: string): number => guarded(() => (JSON.parse(localStorage.getItem(key) ?? "{}") as Kept).when) ?? 0;
      const old = keys.map((key) => ({ key, when: when(key) })).sort((a, b) => b.when - a.when);
      for (const { key } of old.slice(MOST)) localStorage.removeItem(key);
    });
  }
}

function fresh(): string {
  return `${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 8)}`;
}

/** Take the lock of a place for as long as the tab lives; false if another tab has it. */
function held(id: string): Promise<boolean> {
  if (!navigator.locks) return Promise.resolve(true);
  return new Promise((resolve) => {
    void navigator.locks
      .request(STEM + id, { ifAvailable: true }, (lock) => {
        resolve(lock !== null);
        return lock ? new Promise(() => undefined) : undefined;
      })
      .catch(() => resolve(true));
  });
}
