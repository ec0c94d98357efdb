// Requests to the server that the page came from, and the stream of events of a run.

import type { Completion, Example, PaneName, RunEvent, ServerState, Signature } from "./types";

/** The server answered, but with a refusal: trying again will not help. */
export class Refused extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

export interface Place {
  text: string;
  line: number;
  column: number;
}

export class Server {
  private run = 0;
  /** With the number of a run it tells the server which of two runs is the newer one. */
  private readonly page = crypto.randomUUID();
  private stream: AbortController | null = null;
  private gone = false;
  private retry = 0;

  constructor(private readonly told: (alive: boolean, reason: string) => void) {}

  // --- short questions --------------------------------------------------------------------------------------

  state(): Promise<ServerState> {
    return this.json("api/state");
  }

  example(name: string): Promise<Example> {
    return this.json(`api/example?name=${encodeURIComponent(name)}`);
  }

  complete(place: Place): Promise<{ completions: Completion[]; message?: string }> {
    return this.json("api/complete", place);
  }

  signature(place: Place): Promise<{ signatures: Signature[]; message?: string }> {
    return this.json("api/signature", place);
  }

  judge(exercise: string, text: string): Promise<{ passed: boolean; message: string; hints?: string[] }> {
    return this.json("api/judge", { exercise, text });
  }

  async send(what: "stop" | "pause" | "step" | "save", body: object = {}): Promise<void> {
    await this.json(`api/${what}`, body);
  }

  async exported(text: string, format: string): Promise<Blob> {
    return (await this.ask("api/export", { text, format })).blob();
  }

  private async json<T>(path: string, body?: object): Promise<T> {
    return (await (await this.ask(path, body)).json()) as T;
  }

  private async ask(path: string, body?: object, signal?: AbortSignal): Promise<Response> {
    const options: RequestInit = { cache: "no-store", ...(signal ? { signal } : {}) };
    if (body) Object.assign(options, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    let answer: Response;
    try {
      answer = await fetch(path, options);
    } catch (error) {
      if (!signal?.aborted) this.lost();
      throw error;
    }
    if (!answer.ok) throw new Refused(answer.status, (await answer.text()).trim() || answer.statusText);
    this.found();
    return answer;
  }

  // --- a server that is gone --------------------------------------------------------------------------------

  private lost(): void {
    if (!this.gone) {
      this.gone = true;
      this.told(false, "");
    }
    if (!this.retry) this.retry = window.setTimeout(() => void this.again(), 1500);
  }

  private async again(): Promise<void> {
    this.retry = 0;
    try {
      await this.state();
    } catch (error) {
      // Another server can have the port by now, with another token.
      if (error instanceof Refused) this.told(false, "Another server answers here. Open the address that the command printed; the text is kept.");
      if (this.gone && !this.retry) this.retry = window.setTimeout(() => void this.again(), 1500);
    }
  }

  private found(): void {
    if (!this.gone) return;
    this.gone = false;
    this.told(true, "");
  }

  // --- runs -------------------------------------------------------------------------------------------------

  /** Run a text; a run that still goes on is given up. Resolves when the last event was taken, false if replaced. */
  async start(text: string, panes: PaneName[], take: (event: RunEvent) => void): Promise<boolean> {
    this.stream?.abort();
    const stream = new AbortController();
    this.stream = stream;
    this.run += 1;
    const run = this.run;
    try {
      const answer = await this.ask("api/run", { text, panes, run, page: this.page }, stream.signal);
      if (answer.body) await lines(answer.body, (line) => {
        const event = JSON.parse(line) as RunEvent;
        if (!stream.signal.aborted && (event.run === undefined || event.run === run)) take(event);
      });
    } catch (error) {
      if (stream.signal.aborted) return false;
      if (!(error instanceof Refused)) this.lost();
      throw error;
    } finally {
      if (this.stream === stream) this.stream = null;
    }
    return !stream.signal.aborted;
  }

  abandon(): void {
    this.stream?.abort();
  }
}

async function lines(body: ReadableStream<Uint8Array>, take: (line: string) => void): Promise<void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    rest += decoder.decode(value, { stream: !done });
    const found = rest.split("\n");
    rest = found.pop() ?? "";
    for (const line of found) if (line.trim()) take(line);
    if (done) break;
  }
  if (rest.trim()) take(rest);
}
