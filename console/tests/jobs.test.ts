import { describe, expect, it } from "vitest";
import { commandsFor, stateTone, trouble } from "../src/jobs";
import type { JobStatus } from "../src/wire";

const verbs = (desired: JobStatus["desired"]) => commandsFor({ desired }).map((one) => one.verb);
const job = (state: JobStatus["state"], version = 1) => ({
  name: "shop",
  state,
  reason: "it exited with code 7",
  version,
});

describe("a job", () => {
  it("can be told what fits to what it is to be", () => {
    expect(verbs("running")).toEqual(["restart", "pause", "cancel"]);
    expect(verbs("paused")).toEqual(["resume", "cancel"]);
    expect(verbs("cancelled")).toEqual([]);
  });
  it("that runs is well, and has no trouble", () => {
    expect([stateTone("running"), stateTone("failed"), stateTone("paused")]).toEqual([
      "ok",
      "bad",
      "idle",
    ]);
    for (const state of ["running", "starting", "stopping", "paused", "cancelled"] as const)
      expect(trouble(job(state))).toBe(null);
  });
  it("that has failed says why, and what to do", () => {
    const said = trouble(job("failed", 2))!;
    expect(said.says).toBe("shop has failed");
    expect(said.cause).toBe("it exited with code 7");
    expect(said.todo.join(" ")).toContain("headrace apply DIR shop");
    expect(said.todo.join(" ")).toContain("roll back");
  });
  it("has no version to go back to at first", () =>
    expect(trouble(job("failed"))!.todo.join(" ")).not.toContain("roll back"));
});
