import { expect, it } from "vitest";
import { phaseNames, segments } from "../src/phases";
import type { EpochShape } from "../src/wire";

const epoch = (ms: number, phases: Record<string, number> | null) => ({ ms, phases }) as EpochShape;

it("phases are named by what they take, without the whole of them", () => {
  const epochs = [
    epoch(9, { addBatch: 5, walCommit: 2, triggerExecution: 9 }),
    epoch(9, { walCommit: 4 }),
    epoch(3, null),
  ];
  expect(phaseNames(epochs)).toEqual(["walCommit", "addBatch"]);
});

it("what is not shown is the rest of the epoch", () => {
  expect(segments(epoch(9, { addBatch: 5, walCommit: 2 }), ["addBatch"])).toEqual([
    ["addBatch", 5],
    ["other", 4],
  ]);
  expect(segments(epoch(3, { addBatch: 5 }), ["addBatch"])).toEqual([
    ["addBatch", 5],
    ["other", 0],
  ]);
  expect(segments(epoch(3, null), ["addBatch"])).toEqual([["epoch", 3]]);
});
