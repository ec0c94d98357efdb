// When the program runs: soon after the last key, at once while a number is dragged, and one run at a time.

import type { Change } from "./editor";
import { Refused, type Server } from "./server";
import type { Failure, PaneName, RunEvent } from "./types";

/** The longest wait after a key, and after which a failure is shown: half-written lines fail all the time. */
const PAUSE = 500;
/** A program that is done this fast runs sooner after a key. */
const QUICK = 150;
const SOON = 60;
/** A run that takes longer gives way to the next place of a number that is dragged. */
const PATIENCE = 700;

export interface Shown {
  text: () => string;
  panes: () => PaneName[];
  began: () => void;
  event: (event: RunEvent) => void;
  failed: (failure: Failure | null) => void;
  ended: (how: "done" | "stopped" | "lost", ms: number) => void;
}

export class Runs {
  running = false;
  /** Whether the run has reported a step of a loop: such a run is not thrown away when another pane is looked at. */
  looping = false;
  private timer = 0;
  private failureTimer = 0;
  private lastKey = 0;
  private lastTook = PAUSE;
  private began = 0;
  private again = false;
  private turn = 0;

  constructor(
    private readonly server: Server,
    private readonly shown: Shown,
  ) {}

  changed(how: Change): void {
    window.clearTimeout(this.timer);
    window.clearTimeout(this.failureTimer);
    if (how === "typed") {
      this.lastKey = performance.now();
      this.timer = window.setTimeout(() => this.now(), this.lastTook < QUICK ? SOON : PAUSE);
    } else if (how === "slid" && this.running && performance.now() - this.began < PATIENCE) this.again = true;
    else this.now();
  }

  /** Run now, or as soon as a loop that goes on has ended. */
  afterLoop(): void {
    if (this.running && this.looping) this.again = true;
    else this.now();
  }

  now(): void {
    window.clearTimeout(this.timer);
    void this.run();
  }

  async stop(): Promise<void> {
    window.clearTimeout(this.timer);
    this.again = false;
    try {
      await this.server.send("stop");
    } catch {
      this.server.abandon();
    }
  }

  private async run(): Promise<void> {
    const turn = ++this.turn;
    const end: { how: "done" | "stopped" | "lost"; failure: Failure | null } = { how: "lost", failure: null };
    this.running = true;
    this.again = this.looping = false;
    this.began = performance.now();
    this.shown.began();
    try {
      await this.server.start(this.shown.text(), this.shown.panes(), (event) => {
        if (event.event === "error") end.failure = event;
        if (event.event === "progress") this.looping = true;
        if (event.event === "done" && end.how === "lost") {
          end.how = "done";
          this.lastTook = event.ms; // without what the page took to draw: that is no reason to wait for another key
        }
        if (event.event === "stopped") end.how = "stopped";
        if (turn === this.turn) this.shown.event(event);
      });
    } catch (error) {
      if (error instanceof Refused && turn === this.turn) this.shown.event({ event: "stopped", reason: "refused", message: error.message });
    }
    if (turn !== this.turn) return;
    this.running = this.looping = false;
    const took = performance.now() - this.began;
    this.tell(end.failure);
    this.shown.ended(end.how, took);
    if (this.again) this.now();
  }

  /** A failure is shown when the reader has stopped typing; that there is none any more, at once. */
  private tell(failure: Failure | null): void {
    window.clearTimeout(this.failureTimer);
    const rest = failure ? PAUSE - (performance.now() - this.lastKey) : 0;
    if (rest <= 0) this.shown.failed(failure);
    else this.failureTimer = window.setTimeout(() => this.shown.failed(failure), rest);
  }
}
