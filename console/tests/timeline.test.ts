import { describe, expect, it } from "vitest";
import { pointed, timeline } from "../src/timeline";

const T0 = Date.parse("2026-11-16T06:00:00Z") / 1000;
const iso = (minute: number) => new Date((T0 + minute * 60) * 1000).toISOString();
const rows = (...windows: [number, number][]) =>
  windows.map(([start, end]) => ({ w: { start: iso(start), end: iso(end) } }));
const minutes = (of: { xs: number[] }) => of.xs.map((x) => (x - T0) / 60);
const every = (minutes: number) => ({ every_ms: minutes * 60_000, empty: {} });

describe("windows that tumble", () => {
  const some = rows([0, 1], [1, 2], [2, 3], [50, 51], [52, 53]);
  it("have a moment at both ends of a hole, and one in a hole of one", () => {
    const found = timeline(some, "w", every(1), null);
    expect(minutes(found)).toEqual([0, 1, 2, 3, 49, 50, 51, 52]);
    expect(found.windows).toBe(5);
  });
  it("that nothing is known of have a hole where they do not touch", () =>
    expect(minutes(timeline(some, "w", null, null))).toEqual([0, 1, 2, 3, 50, 51, 52]));
  it("are quiet from the newest row up to the watermark", () => {
    expect(minutes(timeline(some, "w", every(1), T0 + 56 * 60 + 30))).toEqual([
      0, 1, 2, 3, 49, 50, 51, 52, 53, 55,
    ]);
    expect(minutes(timeline(some, "w", every(1), T0 + 52 * 60))).toEqual([
      0, 1, 2, 3, 49, 50, 51, 52,
    ]);
  });
});

describe("windows that slide", () => {
  it("overlap, and still one is missing", () =>
    expect(minutes(timeline(rows([0, 10], [2, 12], [6, 16]), "w", every(2), null))).toEqual([
      0, 2, 4, 6,
    ]));
});

describe("sessions", () => {
  it("have nothing between two", () =>
    expect(minutes(timeline(rows([0, 3], [7, 8], [8, 9]), "w", null, T0 + 600))).toEqual([
      0, 3, 7, 8,
    ]));
});

describe("values", () => {
  it("between two gaps are points, since no line shows them", () => {
    const values = [1, 2, null, 3, null, null, 4, 5, null, 6, 7, 8, null, 9];
    expect(pointed(values)).toEqual([3, 13]);
    expect(pointed([1, null, 2, 3])).toEqual([0, 2, 3]);
  });
});
