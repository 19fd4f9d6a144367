import { describe, expect, it } from "vitest";
import {
  causes,
  edgeWidth,
  firstFocus,
  fitting,
  flowOf,
  layout,
  neighbourhood,
  SCALE_FIRST,
  scaled,
  scrolledTo,
  search,
  structure,
} from "../src/graph";
import type { Edge, Node, Topology } from "../src/wire";

const node = (id: string, more: Partial<Node> = {}): Node => ({
  id,
  kind: "view",
  name: id,
  health: "ok",
  reason: "",
  rate: null,
  lag_events: null,
  lag_ms: null,
  watermark_gap_ms: null,
  saturation: null,
  detail: {},
  cause: null,
  ...more,
});
const edge = (source: string, target: string): Edge => ({ source, target, rate: 1 });
const chain = (n: number): Topology => ({
  at: "",
  nodes: Array.from({ length: n }, (_, i) => node(`n${i}`)),
  edges: Array.from({ length: n - 1 }, (_, i) => edge(`n${i}`, `n${i + 1}`)),
});

describe("a neighbourhood", () => {
  it("goes both ways and so deep", () => {
    expect([...neighbourhood(chain(9), "n4", 2)].sort()).toEqual(["n2", "n3", "n4", "n5", "n6"]);
  });
  it("has at most so many nodes, the nearest", () => {
    const star: Topology = {
      at: "",
      nodes: [],
      edges: Array.from({ length: 300 }, (_, i) => edge("hub", `n${i}`)),
    };
    expect(neighbourhood(star, "hub", 3, 48).size).toBe(48);
  });
  it("begins at what is worst", () => {
    const seen = chain(5);
    expect(firstFocus(seen)).toBe("n1");
    seen.nodes[4]!.health = "bad";
    expect(firstFocus(seen)).toBe("n4");
    expect(firstFocus({ at: "", nodes: [], edges: [] })).toBe(null);
  });
});

describe("a layout", () => {
  it("goes from left to right and overlaps nothing", () => {
    const seen = chain(4);
    const laid = layout(seen.nodes, seen.edges);
    const xs = laid.nodes.map((at) => at.x);
    expect(xs).toEqual([...xs].sort((a, b) => a - b));
    expect(laid.edges[0]!.path).toMatch(/^M.*C/);
  });
  it("depends on the structure alone", () => {
    const seen = chain(4);
    const other = seen.nodes.map((one) => ({ ...one, rate: 7, health: "bad" as const }));
    expect(structure(other, [...seen.edges].reverse())).toBe(structure(seen.nodes, seen.edges));
    expect(structure(seen.nodes.slice(1), seen.edges)).not.toBe(structure(seen.nodes, seen.edges));
  });
  it("of 300 nodes takes less than a second", () => {
    const seen = chain(300);
    const begun = performance.now();
    const near = neighbourhood(seen, "n150");
    layout(
      seen.nodes.filter((one) => near.has(one.id)),
      [],
    );
    expect(performance.now() - begun).toBeLessThan(1000);
  });
});

describe("a cause", () => {
  it("is followed to its end, and a circle ends too", () => {
    const nodes = [node("a", { cause: "b" }), node("b", { cause: "c" }), node("c")];
    expect(causes(nodes, "a").map((one) => one.id)).toEqual(["a", "b", "c"]);
    expect(causes([node("a", { cause: "b" }), node("b", { cause: "a" })], "a")).toHaveLength(2);
    expect(causes(nodes, "unknown")).toEqual([]);
  });
});

describe("small things", () => {
  it("an edge grows by one for each tenfold rate", () => {
    expect(edgeWidth(null)).toBe(1.25);
    expect(edgeWidth(9)).toBeCloseTo(2.5);
    expect(edgeWidth(99)).toBeCloseTo(3.5);
    expect(edgeWidth(1e12)).toBe(7);
  });
  it("a search needs all words, in the name or the kind", () => {
    const nodes = [node("visitors_by_hour"), node("visitors"), node("clicks", { kind: "log" })];
    expect(search(nodes, "view visit").map((one) => one.id)).toEqual([
      "visitors",
      "visitors_by_hour",
    ]);
    expect(search(nodes, "LOG").map((one) => one.id)).toEqual(["clicks"]);
  });
});

describe("an edge", () => {
  it("of which nothing is measured is not said to have no flow", () => {
    const flow = (source: string, rate: number | null) => flowOf({ source, rate });
    expect(flow("master:clicks", null)).toBe("batch");
    expect(flow("log:clicks", null)).toBe("unknown");
    expect([flow("log:clicks", 0), flow("log:clicks", 3)]).toEqual(["still", "flow"]);
  });
});

describe("a graph that does not fit", () => {
  it("is not made smaller by itself, and is when that is asked for", () => {
    expect(SCALE_FIRST).toBe(1);
    expect(fitting({ width: 2400, height: 400 }, { width: 1200, height: 500 })).toBe(0.5);
    expect(fitting({ width: 600, height: 400 }, { width: 1200, height: 500 })).toBe(1);
    expect([scaled(0.2, 0.1), scaled(1.9, 2)]).toEqual([0.15, 2]);
  });
  it("is scrolled to where one looks, as little as that takes", () => {
    const box = { width: 1000, height: 500 };
    const at = (x: number, y: number, scrollLeft = 0) =>
      scrolledTo({ x, y, ...box }, 1, { scrollLeft, scrollTop: 0 });
    expect(at(300, 100)).toEqual({ left: 0, top: 0 });
    expect(at(1500, 800)).toEqual({ left: 1500 + 196 + 16 - 1000, top: 800 + 68 + 16 - 500 });
    expect(at(300, 100, 900)).toEqual({ left: 284, top: 0 });
    expect(at(0, 0, 900)).toEqual({ left: 0, top: 0 });
  });
});
