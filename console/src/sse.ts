/** Server-sent events over fetch.
 *
 * A stream that ends is resumed after the last received event, with back-off. The browser's
 * EventSource gives up at the first unsuccessful response and does not expose its status; here 401
 * can lead to the login page, and 404 to polling.
 * tests/sse.test.ts checks parsing, resuming and back-off.
 */

export interface Message {
  id: string | null;
  event: string;
  data: string;
}

/** Parses chunks of text into complete messages. */
export class Reader {
  private rest = "";
  private id: string | null = null;

  push(piece: string): Message[] {
    const blocks = (this.rest + piece).replace(/\r\n?/g, "\n").split("\n\n");
    this.rest = blocks.pop() ?? "";
    return blocks.flatMap((block) => this.message(block));
  }

  private message(block: string): Message[] {
    let event = "message";
    const data: string[] = [];
    for (const line of block.split("\n")) {
      const colon = line.indexOf(":");
      if (colon === 0) continue;
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "id") this.id = value;
      else if (field === "event") event = value;
      else if (field === "data") data.push(value);
    }
    return data.length ? [{ id: this.id, event, data: data.join("\n") }] : [];
  }
}

/** The pause before the n-th consecutive try, in milliseconds: exponential, bounded, with jitter. */
export function pause(tries: number, chance: number): number {
  const most = Math.min(500 * 2 ** tries, 15_000);
  return most / 2 + (most / 2) * chance;
}

export interface Listening {
  close(): void;
}

export interface Listener {
  message(heard: Message): void;
  /** Whether a stream is open now. */
  open?(now: boolean): void;
  /** An unsuccessful response; true ends the connection. */
  refused?(status: number): boolean;
}

export interface World {
  fetch: typeof fetch;
  wait(ms: number): Promise<void>;
  chance(): number;
}

const REAL: World = {
  fetch: (...args) => fetch(...args),
  wait: (ms) => new Promise((done) => setTimeout(done, ms)),
  chance: Math.random,
};

export function listen(url: string, listener: Listener, world: World = REAL): Listening {
  const stop = new AbortController();
  void follow(url, listener, world, stop.signal);
  return { close: () => stop.abort() };
}

/** The idle time-out of a connection: the server sends a heartbeat after five seconds. */
const SILENT_MS = 12_000;

async function follow(url: string, listener: Listener, world: World, stop: AbortSignal) {
  let last: string | null = null;
  let tries = 0;
  while (!stop.aborted) {
    const attempt = new AbortController();
    const end = () => attempt.abort();
    stop.addEventListener("abort", end);
    let silence = setTimeout(end, SILENT_MS);
    try {
      const headers: Record<string, string> = { Accept: "text/event-stream" };
      if (last !== null) headers["Last-Event-ID"] = last;
      const answer = await world.fetch(url, { headers, signal: attempt.signal });
      if (!answer.ok || !answer.body) {
        if (listener.refused?.(answer.status)) return;
      } else {
        const reader = new Reader();
        const text = answer.body.pipeThrough(new TextDecoderStream()).getReader();
        for (let piece = await text.read(); !piece.done; piece = await text.read()) {
          clearTimeout(silence);
          silence = setTimeout(end, SILENT_MS);
          for (const message of reader.push(piece.value)) {
            if (stop.aborted) return;
            tries = 0;
            last = message.id ?? last;
            // Only now: a proxy that buffers the stream forwards the headers, but not the data.
            listener.open?.(true);
            listener.message(message);
          }
        }
      }
    } catch {
      // The server is not available; the connection is retried below.
    } finally {
      clearTimeout(silence);
      stop.removeEventListener("abort", end);
      end();
    }
    if (stop.aborted) return;
    listener.open?.(false);
    await world.wait(pause(tries, world.chance()));
    tries += 1;
  }
}
