import { expect, it } from "vitest";
import { phaseNames, segments } from "../src/phases";
import type { EpochInfo } from "../src/wire";

const epoch = (ms: number, phases: Record<string, number> | null) => ({ ms, phases }) as EpochInfo;

it("phases are named, those that take longest first", () => {
  const epochs = [epoch(9, { compute: 5, commit: 2 }), epoch(9, { commit: 4 }), epoch(3, null)];
  expect(phaseNames(epochs)).toEqual(["commit", "compute"]);
});

it("what is not shown is the rest of the epoch", () => {
  expect(segments(epoch(9, { compute: 5, commit: 2 }), ["compute"])).toEqual([
    ["compute", 5],
    ["other", 4],
  ]);
  expect(segments(epoch(3, { compute: 5 }), ["compute"])).toEqual([
    ["compute", 5],
    ["other", 0],
  ]);
  expect(segments(epoch(3, null), ["compute"])).toEqual([["epoch", 3]]);
});
