import { describe, expect, it } from "vitest";
import { commandsFor, jobTone, stateTone, summary, trouble } from "../src/jobs";
import type { JobStatus } from "../src/wire";

const verbs = (desired: JobStatus["desired"]) => commandsFor({ desired }).map((one) => one.verb);
const job = (state: JobStatus["state"], version = 1) => ({
  name: "shop",
  state,
  reason: "it exited with code 7",
  version,
  problems: 0,
});
const said = (...jobs: [JobStatus["state"], number?][]) =>
  summary(jobs.map(([state, problems = 0]) => ({ state, problems }))).map(
    ({ tone, text }) => `${tone}: ${text}`,
  );

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
  it("that is degraded says its problems, and where they are", () => {
    const found = trouble({ ...job("degraded"), reason: "every epoch fails", problems: 2 })!;
    expect(found.says).toBe("shop is degraded: 2 problems");
    expect(found.cause).toBe("every epoch fails");
    expect(found.todo.join(" ")).toContain("console");
  });
  it("with a problem is not green, and neither is an unknown state", () => {
    expect(jobTone({ state: "running", problems: 0 })).toBe("ok");
    expect(jobTone({ state: "running", problems: 1 })).toBe("warn");
    expect(jobTone({ state: "degraded", problems: 1 })).toBe("bad");
    expect(stateTone("no such state")).toBe("idle");
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

describe("all jobs", () => {
  it("are well if each is running without a problem, or cancelled", () => {
    expect(said(["running"], ["cancelled"])).toEqual(["ok: all well"]);
    expect(said(["running"], ["running", 2])).toEqual(["warn: 1 with warnings"]);
    expect(said(["running"], ["starting"])).toEqual(["warn: 1 not running"]);
    expect(said(["running"], ["paused"])).toEqual(["warn: 1 not running"]);
    expect(said(["running"], ["degraded", 1])).toEqual(["bad: 1 failing"]);
    expect(said(["running"], ["failed"], ["silent"], ["restarting"])).toEqual([
      "bad: 2 failing",
      "warn: 1 not running",
    ]);
    expect(said()).toEqual([]);
  });
});
