import { describe, expect, it } from "vitest";
import * as f from "../src/format";

const NOW = Date.parse("2026-11-16T12:00:00Z");
const plain = (text: string) => text.replaceAll("\u2009", " ");

describe("numbers", () => {
  it("have three digits that matter when short", () => {
    expect([0, 7, 9.5, 123.4, 999.6, 1234, 99_950, 1_234_567, 2.5e9].map(f.short)).toEqual([
      "0",
      "7",
      "9.5",
      "123",
      "1k",
      "1.23k",
      "100k",
      "1.23M",
      "2.5G",
    ]);
  });
  it("that are not known are a dash", () => {
    expect([
      f.short(null),
      f.count(undefined),
      f.rate(null),
      f.bytes(null),
      f.duration(null),
      f.ago(null, NOW),
    ]).toEqual(Array(6).fill("–"));
  });
  it("of bytes have binary units", () => {
    expect(plain(f.bytes(1536))).toBe("1.5 KiB");
    expect(plain(f.bytes(0))).toBe("0 B");
  });
  it("of shares are percent", () => expect(plain(f.percent(0.0163))).toBe("1.63 %"));
  it("that are tiny stay visible", () => expect(f.short(0.0012)).toBe("0.0012"));
});

describe("times", () => {
  it("say their two largest units", () => {
    expect([12, 1500, 61_000, 3_725_000, 200_000_000].map((ms) => plain(f.duration(ms)))).toEqual([
      "12 ms",
      "1.5 s",
      "1 min 1 s",
      "1 h 2 min",
      "2 d 7 h",
    ]);
  });
  it("say how long ago they were", () => {
    expect(plain(f.ago("2026-11-16T11:59:48Z", NOW))).toBe("12 s ago");
    expect(plain(f.ago("2026-11-16T12:03:00Z", NOW))).toBe("in 3 min");
    expect(f.ago("2026-11-16T11:59:59.500Z", NOW)).toBe("now");
  });
  it("are shown in UTC", () =>
    expect(f.moment("2026-11-16T06:08:03.809931Z")).toBe("11-16 06:08:03"));
  it("of a window name a day once", () => {
    expect(f.interval({ start: "2026-11-16T06:00:00Z", end: "2026-11-16T07:00:00Z" })).toBe(
      "11-16 06:00 – 07:00",
    );
    expect(f.interval({ start: "2026-11-16T23:00:00Z", end: "2026-11-17T00:00:00Z" })).toBe(
      "11-16 23:00 – 11-17 00:00",
    );
  });
});

describe("cells", () => {
  it("show every kind of value as text", () => {
    expect([null, 12345, 1.5, true, "<b>", { a: 1 }, [1]].map(f.cell)).toEqual([
      "∅",
      "12,345",
      "1.5",
      "true",
      "<b>",
      '{"a":1}',
      "[1]",
    ]);
  });
  it("make nothing of no number", () => {
    expect([0.004, 0.0049, 0.5, 0.1 + 0.2, -0.0125, 0.0000012, 12.345].map(f.cell)).toEqual([
      "0.004",
      "0.0049",
      "0.5",
      "0.3",
      "-0.0125",
      "0.000001200",
      "12.35",
    ]);
  });
  it("leave a text that only looks like a time alone", () =>
    expect(f.cell("2026-11-16")).toBe("2026-11-16"));
});

describe("names of routes", () => {
  it("are written as one reads them", () => expect(f.spoken("create_token")).toBe("create token"));
});

describe("ticks of a time axis", () => {
  const noon = Date.parse("2026-11-16T12:00:30Z") / 1000;
  it("have seconds, minutes or days, as the span needs", () => {
    expect([120, 3600, 864_000].map((span) => f.axisTime(noon, span))).toEqual([
      "12:00:30",
      "12:00",
      "11-16",
    ]);
  });
});
