import { describe, expect, it } from "vitest";
import { exactness, freshness } from "../src/fresh";
import type { Answer, AsOf } from "../src/wire";

const answer = (
  ages: (number | null)[],
  more: Partial<Answer["columns"][string]> = {},
  as: Partial<AsOf> = {},
): Answer => ({
  rows: [],
  as_of: Object.fromEntries(
    ages.map((age_ms, n) => [
      `s${n}`,
      {
        generation: 1,
        boundary: [],
        position: [],
        watermark: null,
        // Far from any clock of a browser: it is not looked at.
        committed_at: "2001-01-01T00:00:00Z",
        age_ms,
        ...as,
      },
    ]),
  ),
  columns: { n: { type: "BIGINT", exact: true, ...more } },
  truncated: false,
  total: null,
  windows: null,
});
const plain = ({ tone, text }: { tone: string; text: string }) =>
  `${tone}: ${text.replaceAll("\u2009", " ")}`;

describe("freshness", () => {
  it("is the server's age and what has passed since", () => {
    expect(plain(freshness(answer([412]), 500, true))).toBe("ok: fresh");
    expect(plain(freshness(answer([412]), 6_000, true))).toBe("ok: 6 s old");
    expect(plain(freshness(answer([412]), 40_000, true))).toBe("warn: 40 s old");
    expect(plain(freshness(answer([100, 90_000]), 0, true))).toBe("idle: 1 min 30 s old");
    expect(plain(freshness(answer([null]), 0, true))).toBe("idle: no epoch yet");
  });
  it("is not known of a server that is away", () =>
    expect(plain(freshness(answer([412]), 1_000, false))).toBe("idle: at least 1 s old"));
});

describe("exactness", () => {
  it("is said of what the server says now", () => {
    expect(plain(exactness(answer([1]), true))).toBe("ok: exact");
    expect(plain(exactness(answer([1], { exact: false, error: 0.0163 }), true))).toBe(
      "warn: ± 1.63 %",
    );
    expect(plain(exactness(answer([1]), false))).toBe("idle: not connected");
  });
  it("is not claimed while events of any stream wait to be processed", () => {
    const late = { behind: 1_050 };
    expect(plain(exactness(answer([1, 1], {}, late), true))).toBe("ok: 2,100 behind");
    expect(plain(exactness(answer([10_000], {}, late), true))).toBe("warn: 1,050 behind");
    expect(plain(exactness(answer([null], {}, late), true))).toBe("warn: 1,050 behind");
    expect(plain(exactness(answer([1], { exact: false, error: 0.0163 }, late), true))).toBe(
      "warn: ± 1.63 %, 1,050 behind",
    );
    expect(plain(exactness(answer([1], {}, { ...late, provisional: true }), true))).toBe(
      "warn: provisional, 1,050 behind",
    );
  });
});
