import { describe, expect, it } from "vitest";
import { price, progress, result, underWay } from "../src/rebuild";
import type { RebuildProgress } from "../src/wire";

const START = Date.parse("2026-11-16T10:00:00Z");
const of = (more: Partial<RebuildProgress> = {}): RebuildProgress => ({
  state: "running",
  asked_at: "2026-11-16T09:59:58Z",
  started_at: "2026-11-16T10:00:00Z",
  events: 20_000,
  expected_ms: 8000,
  ...more,
});
const plain = (text: string) => text.replaceAll("\u2009", " ");

describe("a rebuild", () => {
  it("is under way while it waits or runs", () => {
    expect([
      underWay(of()),
      underWay(of({ state: "waiting" })),
      underWay(of({ state: "idle" })),
      underWay(null),
    ]).toEqual([true, true, false, false]);
  });
  it("says what it has found, and nothing of what was not compared", () => {
    const done = { view: "v", generation: 2, rows: 6, differences: 0 };
    expect(result(done)).toBe("v is generation 2: 6 rows, 0 differences");
    expect(result({ ...done, differences: null })).toBe("v is generation 2: 6 rows, not compared");
  });
  it("that waits says so", () =>
    expect(progress(of({ state: "waiting", started_at: null }), START).share).toBe(null));
  it("that runs says how far it is and what is left", () => {
    const said = progress(of(), START + 2000);
    expect(said.share).toBe(0.25);
    expect(plain(said.text)).toBe("Running for 2 s, over 20,000 events. About 6 s left.");
  });
  it("that takes longer than expected says so", () => {
    const said = progress(of(), START + 9000);
    expect(said.share).toBe(1);
    expect(plain(said.text)).toContain("longer than the 8 s");
  });
  it("of which nothing is known claims nothing", () => {
    const said = progress(of({ expected_ms: null }), START + 1000);
    expect(said.share).toBe(null);
    expect(said.text).toContain("not known");
  });
  it("has a price before it begins", () => {
    expect(plain(price(of({ state: "idle" })))).toBe(
      "It reads 20,000 events: about 8 s, by the largest build of this run.",
    );
    expect(price(null)).toBe("");
  });
});
