import { describe, expect, it } from "vitest";
import { driftOf, height, reasonsOf, SCALE, shareOf, whereDead } from "../src/quality";
import type { StreamQuality } from "../src/wire";

const reason = (events: number) => ({
  reason: `r${events}`,
  events,
  newest_at: "2026-11-16T06:00:00Z",
  partition: 0,
  offset: 0,
});
const stream = (dead_letters: number, archived: number, reasons: number[]): StreamQuality => ({
  name: "clicks",
  sampled: 10,
  lateness: [],
  late: 0,
  taken: 10,
  records: 1000,
  duplicates: 0,
  dead_letters,
  reasons: reasons.map(reason),
  undeclared: [],
  undeclared_total: 0,
  nulls: [],
  balance: {
    accepted: 1000,
    events: 600,
    duplicates: 0,
    dead_letters: archived,
    in_log: 400 - archived,
    off: 0,
  },
});
const plain = (text: string) => text.replaceAll("\u2009", " ");

describe("the quality of a stream", () => {
  it("says where dead letters are that are not in the balance", () => {
    expect(whereDead(stream(474, 233, [400, 74]))).toBe("233 archived, 241 still in the log");
    expect(whereDead(stream(233, 233, []))).toBe("all archived");
  });
  it("says of how many dead letters the reasons are", () => {
    expect(reasonsOf(stream(474, 233, [400, 74]))).toBe("474 dead letters");
    expect(reasonsOf(stream(5000, 5000, [1500, 500]))).toBe(
      "the newest 2,000 of 5,000 dead letters",
    );
  });
  it("says how many undeclared fields are not listed", () => {
    const field = { name: "agent", events: 1, share: 0.1, type: "string", example: "x" };
    const drift = (undeclared_total: number) =>
      driftOf({ ...stream(0, 0, []), undeclared: [field], undeclared_total });
    expect(drift(1)).toBe("1 field that no column declares");
    expect(drift(250)).toBe("the 1 most common of 250 fields that no column declares");
  });
  it("says what a share is a share of", () => {
    expect(plain(shareOf(5, 200, "record"))).toBe("2.5 % of 200 records");
    expect(shareOf(0, 0, "record")).toBe("of no record yet");
  });
  it("says that its chart is not linear", () => {
    expect([height(100, 100), height(1, 100)]).toEqual([1, 0.1]);
    expect(SCALE).toContain("square root");
  });
});
