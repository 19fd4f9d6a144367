import { describe, expect, it } from "vitest";
import { openBySeverity } from "../src/alerts";
import {
  after,
  connected,
  type Link,
  lasting,
  type News,
  stillStatus,
  stillTopology,
} from "../src/link";
import type { ProjectStatus, Topology } from "../src/wire";

const START: Link = { state: "connecting", since: 0, reason: "" };
const through = (...news: News[]) =>
  news.reduce((now, one, index) => after(now, one, index + 1), START);

describe("the link", () => {
  it("is not connected as soon as the stream has closed", () => {
    expect(connected(through("heard"))).toBe(true);
    expect(connected(through("heard", "closed"))).toBe(false);
  });
  it("is lost since the server was there last, with the reason", () =>
    expect(through("heard", "closed", { failed: "a" }, { failed: "b" })).toEqual({
      state: "lost",
      since: 2,
      reason: "b",
    }));
  it("is connected again when it is heard or answers", () => {
    expect(through("heard", "closed", { failed: "a" }, "answered").state).toBe("asking");
    expect(through("heard", "closed", { failed: "a" }, "heard").state).toBe("live");
    expect(through("answered", { failed: "a" }).state).toBe("lost");
  });
  it("says for how long in whole seconds", () => {
    const lost = through("heard", "closed", { failed: "a" });
    expect([lasting(lost, 400), lasting(lost, 41_300)]).toEqual([1000, 41_000]);
  });
  it("does not mind a question that fails while it is heard", () =>
    expect(through("heard", { failed: "a" }, "answered").state).toBe("live"));
});

describe("what was heard of a server that is away", () => {
  const topology: Topology = {
    at: "2026-11-16T06:00:00Z",
    nodes: [
      {
        id: "speed:clicks",
        kind: "speed",
        name: "clicks",
        health: "ok",
        reason: "",
        rate: 388,
        lag_events: 3,
        lag_ms: 1,
        watermark_gap_ms: 5,
        saturation: 0.3,
        detail: { epoch_ms: 180 },
        cause: null,
      },
    ],
    edges: [{ source: "log:clicks", target: "speed:clicks", rate: 388 }],
  };
  it("is neither well nor flowing", () => {
    const still = stillTopology(topology);
    expect(still.nodes[0]).toMatchObject({
      name: "clicks",
      health: "idle",
      rate: null,
      detail: {},
    });
    expect(still.edges[0]).toMatchObject({ source: "log:clicks", rate: null });
    expect(JSON.stringify(still)).not.toContain("388");
  });
  it("does not run, and its views are not live", () => {
    const view = {
      name: "v",
      kind: "mergeable",
      state: "live",
      stream: "s",
      rows: 1,
      generation: 1,
      differences: 0,
    };
    const status = {
      name: "shop",
      state: "running",
      reason: "",
      views: [view],
      rules: [{ name: "break_in", severity: "critical", numbers: { alerts: 9, open: 3 } }],
    } as unknown;
    expect(stillStatus(status as ProjectStatus, "the server does not answer")).toMatchObject({
      name: "shop",
      state: "not connected",
      reason: "the server does not answer",
      views: [{ name: "v", state: "not connected", differences: null }],
    });
    expect(openBySeverity(stillStatus(status as ProjectStatus, "").rules)).toEqual([]);
  });
});
