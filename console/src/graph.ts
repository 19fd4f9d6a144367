/** The layout of the topology graph. Pure: tests/graph.test.ts checks it.
 *
 * Positions depend only on nodes and edges, not on their metrics, so that updates of metrics move
 * nothing.
 */

import dagre from "@dagrejs/dagre";
import type { Edge, Node, Topology } from "./wire";

export type Health = Node["health"];

export const NODE_WIDTH = 196;
export const NODE_HEIGHT = 68;
const MARGIN = 16; // around the graph
/** A graph with more nodes than this is drawn in full only on request. */
export const NODES_SHOWN = 48;

export interface Placed {
  id: string;
  x: number; // of the left upper corner
  y: number;
}

export interface Laid {
  nodes: Placed[];
  edges: { source: string; target: string; path: string }[];
  width: number;
  height: number;
}

/** Two topologies with the same structure have the same layout. */
export function structure(nodes: readonly Node[], edges: readonly Edge[]): string {
  const ids = nodes.map((node) => node.id).sort();
  const pairs = edges.map((edge) => `${edge.source}>${edge.target}`).sort();
  return `${ids.join(" ")}|${pairs.join(" ")}`;
}

export function layout(nodes: readonly Node[], edges: readonly Edge[]): Laid {
  const graph = new dagre.graphlib.Graph();
  // For many nodes, the optimal ranking is slow and gives one long row.
  const ranker = nodes.length > NODES_SHOWN ? "tight-tree" : "network-simplex";
  graph.setGraph({
    rankdir: "LR",
    nodesep: 14,
    ranksep: 56,
    marginx: MARGIN,
    marginy: MARGIN,
    ranker,
  });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of nodes) graph.setNode(node.id, { width: NODE_WIDTH, height: NODE_HEIGHT });
  for (const edge of edges) graph.setEdge(edge.source, edge.target);
  dagre.layout(graph);
  const size = graph.graph() as { width?: number; height?: number };
  return {
    nodes: nodes.map(({ id }) => {
      const at = graph.node(id) as { x: number; y: number };
      return { id, x: at.x - NODE_WIDTH / 2, y: at.y - NODE_HEIGHT / 2 };
    }),
    edges: edges.map(({ source, target }) => {
      const laid = graph.edge(source, target) as { points: { x: number; y: number }[] };
      const from = graph.node(source) as { x: number; y: number };
      const to = graph.node(target) as { x: number; y: number };
      // From side to side, through the points that the layout reserves for long edges.
      const start = { x: from.x + NODE_WIDTH / 2, y: from.y };
      const end = { x: to.x - NODE_WIDTH / 2, y: to.y };
      return { source, target, path: curve([start, ...between(laid.points, start, end), end]) };
    }),
    width: size.width ?? 0,
    height: size.height ?? 0,
  };
}

/** The points of a long edge that lie strictly between its ends. */
function between<T extends { x: number }>(
  points: readonly T[],
  start: { x: number },
  end: { x: number },
): T[] {
  return points
    .slice(1, -1)
    .filter((point) => point.x > start.x + NODE_WIDTH / 2 && point.x < end.x - NODE_WIDTH / 2);
}

/** A smooth line through points from left to right. */
export function curve(points: readonly { x: number; y: number }[]): string {
  const [first, ...rest] = points;
  if (!first) return "";
  let path = `M${round(first.x)} ${round(first.y)}`;
  let before = first;
  for (const point of rest) {
    const middle = round((before.x + point.x) / 2);
    path += `C${middle} ${round(before.y)} ${middle} ${round(point.y)} ${round(point.x)} ${round(point.y)}`;
    before = point;
  }
  return path;
}

const round = (value: number): number => Math.round(value * 10) / 10;

/** The edges of which both ends are shown. */
export function edgesWithin(edges: readonly Edge[], ids: ReadonlySet<string>): Edge[] {
  return edges.filter((edge) => ids.has(edge.source) && ids.has(edge.target));
}

/** The nodes around one, nearest first, in both directions, at most `most`. */
export function neighbourhood(
  topology: Topology,
  focus: string,
  depth = 3,
  most = NODES_SHOWN,
): Set<string> {
  const beside = new Map<string, string[]>();
  for (const { source, target } of topology.edges) {
    beside.set(source, [...(beside.get(source) ?? []), target]);
    beside.set(target, [...(beside.get(target) ?? []), source]);
  }
  const found = new Set<string>([focus]);
  let ring = [focus];
  for (let step = 0; step < depth && found.size < most; step += 1) {
    const next: string[] = [];
    for (const id of ring) {
      for (const other of beside.get(id) ?? []) {
        if (found.has(other) || found.size >= most) continue;
        found.add(other);
        next.push(other);
      }
    }
    ring = next;
  }
  return found;
}

const GRAVITY: Record<Health, number> = { bad: 3, warn: 2, ok: 1, idle: 0 };

/** The node to show first: the worst, and among equals the one with the most neighbours. */
export function firstFocus(topology: Topology): string | null {
  const degree = new Map<string, number>();
  for (const { source, target } of topology.edges) {
    degree.set(source, (degree.get(source) ?? 0) + 1);
    degree.set(target, (degree.get(target) ?? 0) + 1);
  }
  const weight = (node: Node) => GRAVITY[node.health] * 1e6 + (degree.get(node.id) ?? 0);
  const [first, ...rest] = topology.nodes;
  if (!first) return null;
  return rest.reduce((best, node) => (weight(node) > weight(best) ? node : best), first).id;
}

/** The path from a node with a problem to its cause, both included. */
export function causes(nodes: readonly Node[], id: string): Node[] {
  const known = new Map(nodes.map((node) => [node.id, node]));
  const chain: Node[] = [];
  for (
    let at = known.get(id);
    at && !chain.includes(at);
    at = at.cause ? known.get(at.cause) : undefined
  ) {
    chain.push(at);
  }
  return chain;
}

/** The width of an edge in pixels: 1 for a low rate, and one more for each factor of ten. */
export function edgeWidth(rate: number | null): number {
  if (rate === null || rate <= 0) return 1.25;
  return Math.min(1.5 + Math.log10(1 + rate), 7);
}

/** The rate of an edge as text; edges to batch have none, because batch reads at intervals. */
export type Flow = "flow" | "still" | "batch" | "unknown";
export function flowOf({ source, rate }: Pick<Edge, "source" | "rate">): Flow {
  if (rate === null) return source.startsWith("master:") ? "batch" : "unknown";
  return rate > 0 ? "flow" : "still";
}

/** The text of a node has at least 11 pixels, so that it can be read; a larger graph is scrolled. It is
 *  smaller only after zooming out or fitting the graph. */
export const SCALE_FIRST = 1;
const [SCALE_MIN, SCALE_MAX] = [0.15, 2];
export const scaled = (scale: number, factor: number): number =>
  Math.min(SCALE_MAX, Math.max(SCALE_MIN, scale * factor));

/** The scale at which a layout fits, at most 1. */
export function fitting(
  laid: { width: number; height: number },
  box: { width: number; height: number },
): number {
  return scaled(1, Math.min(1, box.width / laid.width, box.height / laid.height));
}

/** The nearest scroll position at which a node is visible. */
export function scrolledTo(
  node: { x: number; y: number; width: number; height: number },
  scale: number,
  now: { scrollLeft: number; scrollTop: number },
): { left: number; top: number } {
  const along = (at: number, size: number, room: number, from: number) =>
    Math.max(Math.min(from, at - MARGIN), at + size * scale + MARGIN - room, 0);
  return {
    left: along(node.x, NODE_WIDTH, node.width, now.scrollLeft),
    top: along(node.y, NODE_HEIGHT, node.height, now.scrollTop),
  };
}

/** The height of the graph, within bounds. */
export const roomFor = (height: number): number => Math.round(Math.min(Math.max(240, height), 560));

/** Nodes whose name or kind contains all words, shortest names first. */
export function search(nodes: readonly Node[], text: string): Node[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (node: Node) =>
    words.every((word) => `${node.kind} ${node.name}`.toLowerCase().includes(word));
  return nodes
    .filter(fits)
    .sort((a, b) => a.name.length - b.name.length || a.id.localeCompare(b.id));
}

export function worst(nodes: readonly Node[]): Health {
  return nodes.reduce<Health>(
    (now, node) => (GRAVITY[node.health] > GRAVITY[now] ? node.health : now),
    "idle",
  );
}
