/** Server-sent events over fetch.
 *
 * A stream that ends is opened again after the last event that was heard, with a growing pause. The
 * browser's EventSource gives up at the first answer that is no success and does not say which it
 * was; here 401 can lead to the login, and 404 to asking again and again instead.
 * tests/sse.test.ts checks the reading, the resuming and the pauses.
 */

export interface Message {
  id: string | null;
  event: string;
  data: string;
}

/** Takes text in pieces, however they were cut, and gives whole messages. */
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

/** The pause before the n-th try in a row, in milliseconds: doubling, bounded, never in step. */
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
  /** An answer that is no success; true ends the listening. */
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

/** The server is never silent for so long, since it sends a comment after five seconds: a connection
 *  that is, is gone, though nobody said so. */
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
            // A proxy that holds the stream back has let the head through, and this not.
            listener.open?.(true);
            listener.message(message);
          }
        }
      }
    } catch {
      // The server is away; it is asked again below.
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
