import { describe, expect, it } from "vitest";
import { commandsFor, restarts, stateTone, trouble } from "../src/jobs";

const verbs = (desired: "running" | "paused" | "cancelled") => commandsFor({ desired }).map((one) => one.verb);
const job = (state: string, version = 1) => ({ name: "shop", state, reason: "it ended with exit code 7", version });

describe("a job", () => {
  it("can be told what fits to what it is to be", () => {
    expect(verbs("running")).toEqual(["restart", "pause", "cancel"]);
    expect(verbs("paused")).toEqual(["resume", "cancel"]);
    expect(verbs("cancelled")).toEqual([]);
  });
  it("that runs is well, and has no trouble", () => {
    expect([stateTone("running"), stateTone("failed"), stateTone("paused")]).toEqual(["ok", "bad", "idle"]);
    for (const state of ["running", "starting", "stopping", "paused", "cancelled"]) expect(trouble(job(state))).toBe(null);
  });
  it("that has failed says why, and what to do", () => {
    const said = trouble(job("failed", 2))!;
    expect(said.says).toBe("shop was given up");
    expect(said.cause).toBe("it ended with exit code 7");
    expect(said.todo.join(" ")).toContain("headrace apply DIR shop");
    expect(said.todo.join(" ")).toContain("go back");
  });
  it("has no version to go back to at first", () => expect(trouble(job("failed"))!.todo.join(" ")).not.toContain("go back"));
  it("tells by its log how often it was started again since the last command", () => {
    const start = (turn: number) => `{"at":"2026-11-16T10:08:49.515719Z","kind":"start","version":1,"turn":${turn}}`;
    expect(restarts([])).toBe(0);
    expect(restarts([start(1), "ready", start(1), start(1)])).toBe(2);
    expect(restarts([start(1), start(1), start(2)])).toBe(0);
    expect(restarts(['a line that says "kind":"start"', start(3)])).toBe(0);
  });
});
