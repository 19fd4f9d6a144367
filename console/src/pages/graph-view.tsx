/** The drawn graph: nodes are buttons, edges are one SVG under them. Numbers change in place. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { brief, rate, short } from "../format";
import { edgeWidth, layout, NODE_WIDTH, structure } from "../graph";
import { Button, Dot } from "../ui/parts";
import type { Edge, Node } from "../wire";

const SCALE_MIN = 0.58; // smaller texts cannot be read; what does not fit is a drag away
const ASIDE = 330; // what is said of a node covers so much at the right
const FOOT = 40; // where the key and the buttons are

interface Eye {
  x: number;
  y: number;
  scale: number;
}

export function GraphView({
  nodes,
  edges,
  chosen,
  lit,
  onChoose,
  tall,
  children,
}: {
  nodes: Node[];
  edges: Edge[];
  chosen: string | null;
  lit: ReadonlySet<string>;
  onChoose: (id: string | null) => void;
  tall: boolean;
  children?: preact.ComponentChildren;
}) {
  const box = useRef<HTMLElement>(null);
  const shape = structure(nodes, edges);
  const laid = useMemo(() => layout(nodes, edges), [shape]);
  const [eye, setEye] = useState<Eye>({ x: 0, y: 0, scale: 1 });
  const fit = () => {
    const { clientWidth } = box.current!;
    const clientHeight = box.current!.clientHeight - FOOT;
    const scale = Math.min(
      1,
      Math.max(SCALE_MIN, Math.min(clientWidth / laid.width, clientHeight / laid.height)),
    );
    setEye({
      scale,
      x: Math.max(0, (clientWidth - laid.width * scale) / 2),
      y: Math.max(0, (clientHeight - laid.height * scale) / 2),
    });
  };
  // As high as it needs to be at the width it has, within bounds.
  const [room, setRoom] = useState(420);
  useEffect(() => {
    const { clientWidth } = box.current!;
    setRoom(
      Math.round(
        Math.min(
          Math.max(
            240,
            laid.height * Math.min(1, Math.max(SCALE_MIN, clientWidth / laid.width)) + FOOT,
          ),
          500,
        ),
      ),
    );
  }, [shape]);
  useEffect(fit, [shape, tall, room]);
  const drag = useDrag(box, setEye);
  const byId = useMemo(() => new Map(laid.nodes.map((node) => [node.id, node])), [laid]);
  // What is said of the chosen node must not hide it.
  useEffect(() => {
    const at = chosen ? byId.get(chosen) : undefined;
    const edge = box.current!.clientWidth - ASIDE;
    if (!at || edge < NODE_WIDTH) return;
    setEye((now) => {
      const over = now.x + (at.x + NODE_WIDTH) * now.scale - edge;
      return over > 0 ? { ...now, x: now.x - over } : now;
    });
  }, [chosen, byId]);
  const rates = new Map(edges.map((edge) => [`${edge.source}>${edge.target}`, edge.rate]));
  return (
    <section
      class={`graph${tall ? " tall" : ""}${drag.dragged ? " dragged" : ""}`}
      ref={box}
      {...drag.on}
      style={{ height: tall ? "" : `${room}px` }}
      aria-label="Topology as a graph. The switch above shows it as a table."
    >
      <div
        class="canvas"
        style={{ transform: `translate(${eye.x}px, ${eye.y}px) scale(${eye.scale})` }}
      >
        <svg class="edges" width={laid.width} height={laid.height} aria-hidden="true">
          {laid.edges.map(({ source, target, path }) => {
            const now = rates.get(`${source}>${target}`) ?? null;
            const flow = now !== null && now > 0;
            const bright = lit.has(source) && lit.has(target);
            return (
              <path
                key={`${source}>${target}`}
                d={path}
                stroke-width={edgeWidth(now)}
                class={`edge ${flow ? "flow" : "still"}${bright ? " lit" : ""}`}
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
      <div class="key" aria-hidden="true">
        <span>
          <svg aria-hidden="true">
            <path class="edge flow" stroke-width="3" d="M0 4H26" />
          </svg>
          width is the rate
        </span>
        <span>
          <svg aria-hidden="true">
            <path class="edge still" stroke-width="1.25" d="M0 4H26" />
          </svg>
          no flow
        </span>
      </div>
      <div class="zoom">
        <Button
          kind="tiny"
          icon="minus"
          label="Zoom out"
          onPress={() => setEye(zoomed(eye, 0.8, box.current!))}
        />
        <Button
          kind="tiny"
          icon="plus"
          label="Zoom in"
          onPress={() => setEye(zoomed(eye, 1.25, box.current!))}
        />
        <Button kind="tiny" icon="fit" label="Fit" onPress={fit} />
      </div>
      {children}
    </section>
  );
}

function zoomed(eye: Eye, factor: number, box: HTMLElement): Eye {
  const scale = Math.min(2, Math.max(0.15, eye.scale * factor));
  const [x, y] = [box.clientWidth / 2, box.clientHeight / 2];
  const by = scale / eye.scale;
  return { scale, x: x - (x - eye.x) * by, y: y - (y - eye.y) * by };
}

/** Dragging moves the graph; a wheel with Ctrl, as a pinch is told, zooms it. */
function useDrag(
  box: { current: HTMLElement | null },
  setEye: (change: (eye: Eye) => Eye) => void,
) {
  const [dragged, setDragged] = useState(false);
  const from = useRef<{ x: number; y: number } | null>(null);
  useEffect(() => {
    const element = box.current!;
    const wheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      setEye((eye) => zoomed(eye, event.deltaY < 0 ? 1.08 : 0.93, element));
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }, []);
  const on = {
    onPointerDown(event: PointerEvent) {
      if ((event.target as HTMLElement).closest("button, .inspector")) return;
      from.current = { x: event.clientX, y: event.clientY };
      box.current!.setPointerCapture(event.pointerId);
      setDragged(true);
    },
    onPointerMove(event: PointerEvent) {
      const before = from.current;
      if (!before) return;
      const [dx, dy] = [event.clientX - before.x, event.clientY - before.y];
      from.current = { x: event.clientX, y: event.clientY };
      setEye((eye) => ({ ...eye, x: eye.x + dx, y: eye.y + dy }));
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

/** The numbers that say most of a node: what flows, what waits, how far behind time it is. */
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
