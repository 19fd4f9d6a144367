import { describe, expect, it } from "vitest";
import type { Row } from "../src/api";
import { plot, since } from "../src/plot";
import type { Answer, ColumnInfo } from "../src/wire";

const column = (type: string): ColumnInfo => ({ type, exact: true });
const window = (minute: number) => ({
  start: `2026-11-16T06:0${minute}:00Z`,
  end: `2026-11-16T06:0${minute + 1}:00Z`,
});
const of = (columns: Record<string, string>, rows: Row[]) => ({
  rows,
  columns: Object.fromEntries(Object.entries(columns).map(([name, type]) => [name, column(type)])),
});

describe("an answer with windows", () => {
  const columns = { url: "STRING", w: "WINDOW", hits: "BIGINT" };
  it("is lines by group when there are three windows", () => {
    const rows = [2, 0, 1].flatMap((at) => [
      { url: "/b", w: window(at), hits: at },
      { url: "/a", w: window(at), hits: 9 },
    ]);
    const drawn = plot(of(columns, rows));
    expect(drawn).toMatchObject({
      kind: "lines",
      measure: "hits",
      by: "url",
      others: 0,
      settled: null,
    });
    if (drawn.kind !== "lines") return;
    expect(drawn.xs).toEqual([...drawn.xs].sort());
    expect(drawn.series).toMatchObject([
      { name: "/a", values: [9, 9, 9] },
      { name: "/b", values: [0, 1, 2] },
    ]);
  });
  it("draws decimals, which come as texts", () => {
    const rows = [0, 1, 2].map((at) => ({ w: window(at), total: `${at}.50` }));
    const drawn = plot(of({ w: "WINDOW", total: "DECIMAL(12,2)" }, rows));
    expect(drawn).toMatchObject({
      kind: "lines",
      series: [{ values: [0.5, 1.5, 2.5], cells: ["0.50", "1.50", "2.50"] }],
    });
  });
  it("is bars of the newest window when there are fewer", () => {
    const rows = [
      { url: "/old", w: window(0), hits: 99 },
      { url: "/a", w: window(1), hits: 3 },
      { url: "/b", w: window(1), hits: 5 },
    ];
    expect(plot(of(columns, rows))).toEqual({
      kind: "bars",
      measure: "hits",
      by: "url",
      others: 0,
      bars: [
        { name: "/b", value: 5, cell: 5 },
        { name: "/a", value: 3, cell: 3 },
      ],
    });
  });
  it("has gaps where a window has no row, and zero where the view counts", () => {
    const rows = [0, 1, 2, 7].flatMap((at) => [
      { url: "/a", w: window(at), hits: 9, ms: 50 },
      ...(at === 1 ? [{ url: "/b", w: window(at), hits: 1, ms: 70 }] : []),
    ]);
    const answer = {
      ...of({ ...columns, ms: "DOUBLE" }, rows),
      windows: { every_ms: 60_000, empty: { hits: 0 } },
    };
    expect(plot(answer)).toMatchObject({
      series: [{ values: [9, 9, 9, 0, 0, 9] }, { values: [0, 1, 0, 0, 0, 0] }],
    });
    expect(plot(answer, "ms")).toMatchObject({
      series: [
        { values: [50, 50, 50, null, null, 50] },
        { values: [null, 70, null, null, null, null] },
      ],
    });
  });
  it("keeps the largest groups and counts the others", () => {
    const rows = [0, 1, 2].flatMap((at) =>
      Array.from({ length: 9 }, (_, i) => ({ url: `/${i}`, w: window(at), hits: i })),
    );
    const drawn = plot(of(columns, rows));
    if (drawn.kind !== "lines") throw new Error("not lines");
    expect(drawn.others).toBe(3);
    expect(drawn.series.map((one) => one.name)).toEqual(["/3", "/4", "/5", "/6", "/7", "/8"]);
  });
});

describe("an answer of Spark", () => {
  const spark = "STRUCT<start: TIMESTAMP, end: TIMESTAMP>";
  it("has windows too, which are structs", () => {
    const rows = [0, 1, 2].map((at) => ({ window: window(at), n: at }));
    expect(plot(of({ window: spark, n: "BIGINT" }, rows))).toMatchObject({
      kind: "lines",
      by: null,
      series: [{ name: "n", values: [0, 1, 2] }],
    });
  });
});

describe("a truncated answer", () => {
  const rows = [{ user: "a", n: 1 }];
  const answer = { ...of({ user: "STRING", n: "BIGINT" }, rows), truncated: true };
  it("is not drawn where the number of its rows is unknown", () => {
    expect(plot(answer)).toEqual({ kind: "cut" });
    expect(plot({ ...answer, total: null })).toEqual({ kind: "cut" });
  });
  it("is drawn where it has the largest of a known number", () =>
    expect(plot({ ...answer, total: 9 })).toMatchObject({ kind: "bars", others: 8 }));
});

describe("an answer without windows", () => {
  it("of one row is figures", () => {
    expect(plot(of({ events: "BIGINT", last: "TIMESTAMP" }, [{ events: 7, last: "x" }]))).toEqual({
      kind: "figures",
      figures: [
        { name: "events", value: 7 },
        { name: "last", value: "x" },
      ],
    });
  });
  it("of several rows is bars of the number one wishes", () => {
    const rows = [
      { user: "a", n: 1, m: 5 },
      { user: "b", n: 2, m: 4 },
    ];
    expect(plot(of({ user: "STRING", n: "BIGINT", m: "DOUBLE" }, rows), "m")).toMatchObject({
      measure: "m",
      bars: [{ name: "a" }, { name: "b" }],
    });
  });
  it("does not draw a number that is a key", () => {
    const rows = [
      { shop: 900, n: 10 },
      { shop: 2, n: 20 },
    ];
    const columns = { shop: { ...column("BIGINT"), key: true }, n: column("BIGINT") };
    expect(plot({ rows, columns })).toMatchObject({
      measure: "n",
      by: "shop",
      bars: [{ name: "2" }, { name: "900" }],
    });
    expect(plot({ rows, columns }, "shop")).toMatchObject({ measure: "n" });
  });
  it("says how many rows there are beside the largest", () => {
    const rows = Array.from({ length: 200 }, (_, i) => ({ user: `${i}`, n: 9000 - i }));
    expect(plot({ ...of({ user: "STRING", n: "BIGINT" }, rows), total: 9000 })).toMatchObject({
      others: 9000 - 12,
    });
  });
  it("keeps the digits of numbers beyond 2⁵³", () => {
    const rows = [
      { user: "a", n: 9007199254740993n },
      { user: "b", n: 1 },
    ];
    expect(plot(of({ user: "STRING", n: "BIGINT" }, rows))).toMatchObject({
      bars: [{ name: "a", value: 9007199254740992, cell: 9007199254740993n }, { name: "b" }],
    });
  });
  it("without a number or a row draws nothing", () => {
    expect(plot(of({ user: "STRING" }, [{ user: "a" }]))).toEqual({ kind: "none" });
    expect(plot(of({ n: "BIGINT" }, []))).toEqual({ kind: "none" });
  });
});

describe("windows", () => {
  const answer: Answer = {
    ...of({ w: "WINDOW", n: "BIGINT" }, [
      { w: window(0), n: 1 },
      { w: window(1), n: 2 },
    ]),
    as_of: {
      s: {
        generation: 1,
        boundary: [],
        position: [],
        watermark: "2026-11-16T06:30:00Z",
        committed_at: null,
        age_ms: null,
      },
    },
    truncated: false,
    total: null,
    windows: null,
  };
  it("are asked for from so many widths before the watermark", () =>
    expect(since(answer, 10)).toBe("2026-11-16T06:20:00.000Z"));
  it("are all asked for without a watermark", () =>
    expect(since({ ...answer, as_of: {} })).toBe(null));
});
