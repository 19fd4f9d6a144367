import { describe, expect, it, vi } from "vitest";
import { listen, type Message, pause, Reader, type World } from "../src/sse";

describe("reading", () => {
  it("gives whole messages however the text is cut", () => {
    const text =
      'id: 1\nevent: status\ndata: {"a":\ndata: 1}\n\n: silence\n\nevent: alerts\r\ndata: x\r\n\r\n';
    for (let cut = 0; cut < text.length; cut += 1) {
      // A cut between the two characters of a line's end is the one that needs care.
      if (text[cut] === "\n" && text[cut - 1] === "\r") continue;
      const reader = new Reader();
      const heard = [...reader.push(text.slice(0, cut)), ...reader.push(text.slice(cut))];
      expect(heard).toEqual([
        { id: "1", event: "status", data: '{"a":\n1}' },
        { id: "1", event: "alerts", data: "x" },
      ]);
    }
  });
  it("hears nothing in a comment", () => expect(new Reader().push(": still here\n\n")).toEqual([]));
});

describe("pauses", () => {
  it("double up to a bound", () => {
    expect([0, 1, 2, 10].map((tries) => pause(tries, 1))).toEqual([500, 1000, 2000, 15_000]);
    expect(pause(0, 0)).toBe(250);
  });
});

const answer = (text: string, status = 200) =>
  new Response(status === 200 ? text : null, { status });

function world(
  answers: (Response | Error)[],
  done: () => void,
): World & { asked: (string | undefined)[]; waits: number[] } {
  const asked: (string | undefined)[] = [];
  const waits: number[] = [];
  return {
    asked,
    waits,
    chance: () => 1,
    wait: async (ms) => void waits.push(ms),
    fetch: async (_url, options) => {
      asked.push((options?.headers as Record<string, string> | undefined)?.["Last-Event-ID"]);
      const next = answers.shift();
      if (!next) {
        done();
        return new Promise<Response>(() => undefined);
      }
      if (next instanceof Error) throw next;
      return next;
    },
  };
}

describe("listening", () => {
  it("goes on after the last event that was heard, with growing pauses", async () => {
    const heard: Message[] = [];
    const open: boolean[] = [];
    await new Promise<void>((done) => {
      const made = world(
        [answer("id: 7\ndata: a\n\n"), new Error("away"), answer("", 503), answer("data: b\n\n")],
        () => {
          expect(made.asked).toEqual([undefined, "7", "7", "7", "7"]);
          expect(made.waits).toEqual([500, 1000, 2000, 500]);
          done();
        },
      );
      listen("v1/live", { message: (one) => heard.push(one), open: (now) => open.push(now) }, made);
    });
    expect(heard.map((one) => one.data)).toEqual(["a", "b"]);
    expect(open[0]).toBe(true);
  });
  it("ends when it is told to after a refusal", async () => {
    const refused: number[] = [];
    const made = world([answer("", 401), answer("data: never\n\n")], () => undefined);
    listen(
      "v1/live",
      { message: () => expect.unreachable(), refused: (status) => refused.push(status) > 0 },
      made,
    );
    await new Promise((done) => setTimeout(done, 10));
    expect(refused).toEqual([401]);
    expect(made.asked).toHaveLength(1);
  });
  it("takes a connection that has long been silent for gone", async () => {
    vi.useFakeTimers();
    const open: boolean[] = [];
    let asked = 0;
    const silent = (signal: AbortSignal) =>
      new ReadableStream({
        start: (out) => {
          out.enqueue(new TextEncoder().encode("data: a\n\n"));
          signal.addEventListener("abort", () => out.error(new Error("aborted")));
        },
      });
    const made: World = {
      chance: () => 1,
      wait: async () => undefined,
      fetch: async (_url, options) => {
        asked += 1;
        return new Response(silent(options!.signal!));
      },
    };
    const listening = listen(
      "v1/live",
      { message: () => undefined, open: (now) => open.push(now) },
      made,
    );
    await vi.advanceTimersByTimeAsync(11_000);
    expect([asked, open]).toEqual([1, [true]]);
    await vi.advanceTimersByTimeAsync(2_000);
    expect([asked, open]).toEqual([2, [true, false, true]]);
    listening.close();
    vi.useRealTimers();
  });
});
