import { describe, expect, it } from "vitest";
import type { Row, ViewQuestion } from "../src/api";
import { plot } from "../src/plot";
import { firstOf, readView } from "../src/reading";
import type { Answer } from "../src/wire";

const T0 = Date.parse("2026-11-16T06:00:00Z");
const iso = (minute: number) => new Date(T0 + minute * 60_000).toISOString();
const start = (row: Row) => (row.w as { start: string }).start;

/** A server with these rows, in the order of their keys if no other is asked for. */
function server(rows: Row[], columns: Answer["columns"], watermark: string | null) {
  const asked: ViewQuestion[] = [];
  const valued = (row: Row, name: string) => (name === "w" ? start(row) : (row[name] as number));
  const ask = async (question: ViewQuestion): Promise<Answer> => {
    asked.push(question);
    const { from, limit = 10_000, order } = question;
    const met = rows.filter((row) => !from || start(row) >= from);
    const names = order?.split(",").map((name) => name.slice(1)) ?? [];
    met.sort((a, b) => {
      const name = names.find((one) => valued(a, one) !== valued(b, one));
      return !name ? 0 : valued(a, name) < valued(b, name) ? 1 : -1;
    });
    const as = {
      generation: 1,
      boundary: [],
      position: [],
      watermark,
      committed_at: null,
      age_ms: 0,
    };
    return {
      rows: met.slice(0, limit),
      columns,
      as_of: { s: as },
      truncated: false,
      total: order ? met.length : null,
      windows: null,
    };
  };
  return { ask, asked };
}

const KEY = { type: "STRING", exact: true, key: true };
const NUMBER = { type: "BIGINT", exact: true };
const WINDOW = { type: "WINDOW", exact: true, key: true };

describe("a view of 9,000 keys", () => {
  const rows = Array.from({ length: 9000 }, (_, i) => ({ user: `u${i}`, n: i }));
  const { ask, asked } = server(rows, { user: KEY, n: NUMBER }, null);
  it("is drawn with its largest, of all of them", async () => {
    const answer = await readView(ask, 60, null, null);
    const drawn = plot(answer);
    expect(drawn).toMatchObject({ kind: "bars", others: 9000 - 12 });
    if (drawn.kind !== "bars") return;
    expect(drawn.bars.map((bar) => bar.value)).toEqual(
      Array.from({ length: 12 }, (_, i) => 8999 - i),
    );
    expect(asked.at(-1)).toMatchObject({ order: "-n", limit: 200 });
  });
});

describe("a view of windows", () => {
  const windows = (keys: number, many: number): Row[] =>
    Array.from({ length: many }, (_, at) =>
      Array.from({ length: keys }, (_, key) => ({
        user: `u${key}`,
        w: { start: iso(at), end: iso(at + 1) },
        n: key + at,
      })),
    ).flat();
  const columns = { user: KEY, w: WINDOW, n: NUMBER };
  it("is read from its newest windows on, newest first", async () => {
    const answer = await readView(server(windows(3, 100), columns, iso(100)).ask, 60, null, null);
    expect(answer.rows).toHaveLength(180);
    expect(start(answer.rows[0]!)).toBe(iso(99));
    expect(answer.total).toBe(180);
  });
  it("with many keys has fewer windows, each with all of its rows", async () => {
    const answer = await readView(server(windows(700, 100), columns, iso(100)).ask, 60, null, null);
    expect(answer.rows.length % 700).toBe(0);
    expect(plot(answer).kind).toBe("lines");
  });
  it("with more keys than can be read has the largest of its newest window", async () => {
    const answer = await readView(server(windows(9000, 3), columns, iso(3)).ask, 60, null, null);
    const drawn = plot(answer);
    expect(drawn).toMatchObject({ kind: "bars", others: 9000 - 12 });
    if (drawn.kind !== "bars") return;
    expect(drawn.bars[0]).toMatchObject({ name: "u8999", value: 9001 });
  });
  it("without a watermark has no window of which a part is missing", async () => {
    const answer = await readView(server(windows(700, 100), columns, null).ask, 60, null, null);
    expect(answer.rows).toHaveLength(3500);
  });
});

describe("the answer of a query", () => {
  it("says whether there are more rows than are shown", async () => {
    const rows = Array.from({ length: 11 }, (_, n) => ({ n }));
    const answer = await server(rows, { n: NUMBER }, null).ask({});
    expect(firstOf(answer, 10)).toMatchObject({ truncated: true, rows: rows.slice(0, 10) });
    expect(firstOf(answer, 11).truncated).toBe(false);
  });
});
