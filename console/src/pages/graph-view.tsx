/** The topology graph: nodes are buttons, edges are one SVG below them. Metrics are updated in place. A
 *  large graph is scrolled, by the browser or by dragging. */

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { brief, rate, short } from "../format";
import {
  edgeWidth,
  fitting,
  flowOf,
  layout,
  NODE_WIDTH,
  roomFor,
  SCALE_FIRST,
  scaled,
  scrolledTo,
  structure,
} from "../graph";
import { Button, Dot } from "../ui/parts";
import type { Edge, Node } from "../wire";

const ASIDE = 330; // the width of the panel of a node at the right
const FOOT = 40; // the height of the legend and the buttons

export function GraphView({
  nodes,
  edges,
  chosen,
  focus,
  lit,
  onChoose,
  tall,
  children,
}: {
  nodes: Node[];
  edges: Edge[];
  chosen: string | null;
  focus: string | null; // the node to scroll to first
  lit: ReadonlySet<string>;
  onChoose: (id: string | null) => void;
  tall: boolean;
  children?: preact.ComponentChildren;
}) {
  const box = useRef<HTMLElement>(null);
  const shape = structure(nodes, edges);
  const laid = useMemo(() => layout(nodes, edges), [shape]);
  const byId = useMemo(() => new Map(laid.nodes.map((node) => [node.id, node])), [laid]);
  const { scale, zoom, fit } = useScale(box, laid);
  const drag = useDrag(box, zoom);
  // Scrolls to the focus; the panel of a selected node must not cover it.
  useEffect(() => {
    const at = byId.get(chosen ?? focus ?? "");
    if (!at) return;
    const { clientWidth, clientHeight } = box.current!;
    const width = clientWidth - (chosen && clientWidth > ASIDE + NODE_WIDTH ? ASIDE : 0);
    const seen = { x: at.x * scale, y: at.y * scale, width, height: clientHeight };
    box.current!.scrollTo(scrolledTo(seen, scale, box.current!));
  }, [chosen, focus, byId]);
  const flows = new Map(edges.map((edge) => [`${edge.source}>${edge.target}`, edge]));
  return (
    <div
      class={`graph${tall ? " tall" : ""}`}
      style={{ height: tall ? "" : `${roomFor(laid.height + FOOT)}px` }}
    >
      <section
        class={`scroller${drag.dragged ? " dragged" : ""}`}
        ref={box}
        {...drag.on}
        tabIndex={0}
        aria-label="Topology as a graph. The switch above shows it as a table."
      >
        <div
          class="canvas"
          style={{ width: `${laid.width * scale}px`, height: `${laid.height * scale}px` }}
        >
          <div class="drawn" style={{ transform: `scale(${scale})` }}>
            <svg class="edges" width={laid.width} height={laid.height} aria-hidden="true">
              {laid.edges.map(({ source, target, path }) => {
                const edge = flows.get(`${source}>${target}`)!;
                const bright = lit.has(source) && lit.has(target);
                return (
                  <path
                    key={`${source}>${target}`}
                    d={path}
                    stroke-width={edgeWidth(edge.rate)}
                    class={`edge ${flowOf(edge)}${bright ? " lit" : ""}`}
                  />
                );
              })}
            </svg>
            {nodes.map((node) => {
              const at = byId.get(node.id);
              return (
                at && (
                  <NodeCard
                    key={node.id}
                    node={node}
                    x={at.x}
                    y={at.y}
                    chosen={node.id === chosen}
                    onChoose={onChoose}
                  />
                )
              );
            })}
          </div>
        </div>
      </section>
      <div class="key" aria-hidden="true">
        <Sample kind="flow" width={3} text="width is the rate" />
        <Sample kind="still" width={1.25} text="no flow" />
        <Sample kind="batch" width={1.25} text="read by batch, now and then" />
      </div>
      <div class="zoom">
        <Button kind="tiny" icon="minus" label="Zoom out" onPress={() => zoom(0.8)} />
        <Button kind="tiny" icon="plus" label="Zoom in" onPress={() => zoom(1.25)} />
        <Button kind="tiny" icon="fit" label="Fit" onPress={fit} />
      </div>
      {children}
    </div>
  );
}

function Sample({ kind, width, text }: { kind: string; width: number; text: string }) {
  return (
    <span>
      <svg aria-hidden="true">
        <path class={`edge ${kind}`} stroke-width={width} d="M0 4H26" />
      </svg>
      {text}
    </span>
  );
}

/** The scale of the graph; its centre stays when the scale changes. */
function useScale(box: { current: HTMLElement | null }, laid: { width: number; height: number }) {
  const [scale, setScale] = useState(SCALE_FIRST);
  const middle = useRef<{ x: number; y: number } | null>(null);
  const change = (to: (now: number) => number) =>
    setScale((now) => {
      const { scrollLeft, scrollTop, clientWidth, clientHeight } = box.current!;
      middle.current ??= {
        x: (scrollLeft + clientWidth / 2) / now,
        y: (scrollTop + clientHeight / 2) / now,
      };
      return to(now);
    });
  useLayoutEffect(() => {
    const element = box.current!;
    if (!middle.current) return;
    element.scrollLeft = middle.current.x * scale - element.clientWidth / 2;
    element.scrollTop = middle.current.y * scale - element.clientHeight / 2;
    middle.current = null;
  }, [scale]);
  const zoom = (factor: number) => change((now) => scaled(now, factor));
  const fit = () => {
    const { clientWidth, clientHeight } = box.current!;
    change(() => fitting(laid, { width: clientWidth, height: clientHeight - FOOT }));
  };
  return { scale, zoom, fit };
}

/** Dragging scrolls the graph; a wheel with Ctrl, as browsers report a pinch, zooms it. */
function useDrag(box: { current: HTMLElement | null }, zoom: (factor: number) => void) {
  const [dragged, setDragged] = useState(false);
  const from = useRef<{ x: number; y: number } | null>(null);
  const zooming = useRef(zoom);
  zooming.current = zoom;
  useEffect(() => {
    const element = box.current!;
    const wheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zooming.current(event.deltaY < 0 ? 1.08 : 0.93);
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }, []);
  const on = {
    onPointerDown(event: PointerEvent) {
      // Touch scrolls natively.
      if (event.pointerType === "touch" || (event.target as HTMLElement).closest("button")) return;
      from.current = { x: event.clientX, y: event.clientY };
      box.current!.setPointerCapture(event.pointerId);
      setDragged(true);
    },
    onPointerMove(event: PointerEvent) {
      const before = from.current;
      if (!before) return;
      box.current!.scrollLeft -= event.clientX - before.x;
      box.current!.scrollTop -= event.clientY - before.y;
      from.current = { x: event.clientX, y: event.clientY };
    },
    onPointerUp() {
      from.current = null;
      setDragged(false);
    },
  };
  return { dragged, on };
}

function NodeCard({
  node,
  x,
  y,
  chosen,
  onChoose,
}: {
  node: Node;
  x: number;
  y: number;
  chosen: boolean;
  onChoose: (id: string) => void;
}) {
  return (
    <button
      type="button"
      class={`node ${node.health}${chosen ? " chosen" : ""}`}
      style={{ transform: `translate(${x}px, ${y}px)` }}
      aria-pressed={chosen}
      title={node.reason || undefined}
      data-node={node.id}
      onClick={() => onChoose(node.id)}
    >
      <span class="name">
        <Dot tone={node.health} />
        <span class="ellipsis">{node.name}</span>
        <span class="kind">{node.kind}</span>
      </span>
      <span class="hidden-visually">health {node.health}</span>
      <span class="facts-line">{numbers(node)}</span>
      {node.reason && node.health !== "ok" && <span class="why ellipsis">{node.reason}</span>}
      {node.saturation !== null && (
        <span class="load">
          <i
            class={loadTone(node.saturation)}
            style={{ width: `${Math.min(100, node.saturation * 100)}%` }}
          />
        </span>
      )}
    </button>
  );
}

export const loadTone = (share: number): string =>
  share >= 1 ? "bad" : share >= 0.8 ? "warn" : "";

/** The main metrics of a node: rate, lag, and distance to the watermark. */
function numbers(node: Node) {
  const said: [string, string][] = [];
  if (node.rate !== null) said.push(["", rate(node.rate)]);
  if (node.lag_events !== null && (node.lag_events > 0 || node.kind === "speed"))
    said.push(["lag", short(node.lag_events)]);
  if (node.watermark_gap_ms !== null) said.push(["gap", brief(node.watermark_gap_ms)]);
  if (said.length < 3) {
    const [first] = Object.entries(node.detail).filter(([, value]) => value !== null);
    if (first && said.length === 0)
      said.push([
        first[0].replaceAll("_", " "),
        typeof first[1] === "number" ? short(first[1]) : String(first[1]),
      ]);
  }
  return said.map(([label, value]) => (
    <span key={label}>
      {label && <span class="label">{label}</span>}
      {value}
    </span>
  ));
}
