/** The landing page: the live graph, and every view as a small live chart. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { count, duration, percent, plural, rate } from "../format";
import {
  causes,
  edgesWithin,
  firstFocus,
  NODES_SHOWN,
  neighbourhood,
  search,
  worst,
} from "../graph";
import { connected, link as linked, NOT_CONNECTED } from "../link";
import { status, topology } from "../live";
import { amend, place } from "../place";
import { link } from "../routes";
import { useStore } from "../store";
import { PageHead } from "../ui/page";
import { Badge, Button, Dot, Empty, Facts, Panel, Switch, Waiting } from "../ui/parts";
import { Table } from "../ui/table";
import type { Node, Topology } from "../wire";
import { FirstEvent } from "./first-event";
import { GraphView } from "./graph-view";
import { ViewCards } from "./view-cards";

export function TopologyPage() {
  const seen = useStore(topology);
  const project = useStore(status);
  const here = connected(useStore(linked));
  const [tall, setTall] = useState(false);
  const bad = seen?.nodes.filter((node) => node.health === "bad").length ?? 0;
  const warn = seen?.nodes.filter((node) => node.health === "warn").length ?? 0;
  const state = project?.state;
  const reasons = new Map(seen?.nodes.map((node) => [node.id, node.reason]));
  const others =
    project?.problems.filter((problem) => reasons.get(problem.about) !== problem.message) ?? [];
  const flow = seen?.nodes
    .filter((node) => node.kind === "log")
    .reduce((sum, node) => sum + (node.rate ?? 0), 0);
  return (
    <>
      <PageHead
        title="Topology"
        about={
          seen ? (
            <>
              {plural(seen.nodes.length, "node")},{" "}
              {here ? `${rate(flow)} coming in` : NOT_CONNECTED}
            </>
          ) : (
            "what flows where"
          )
        }
      >
        {bad > 0 && <Badge tone="bad">{bad} failing</Badge>}
        {warn > 0 && <Badge tone="warn">{plural(warn, "warning")}</Badge>}
        {here && state && state !== "running" && state !== "degraded" && (
          <Badge tone="warn">{state}</Badge>
        )}
        {here && seen && state === "running" && !bad && !warn && !others.length && (
          <Badge tone="ok">all well</Badge>
        )}
      </PageHead>
      <div class="content">
        {others.length > 0 && (
          <Panel title={plural(others.length, "problem")}>
            {others.map((problem) => (
              <p key={`${problem.about} ${problem.what}`}>
                <Dot tone={problem.level} /> {problem.message}
              </p>
            ))}
          </Panel>
        )}
        {seen?.nodes.length ? (
          <Graph of={seen} tall={tall} onTall={() => setTall(!tall)} />
        ) : (
          <Panel>
            <Starting />
          </Panel>
        )}
        {project &&
          project.streams.length > 0 &&
          project.streams.every((stream) => stream.balance.accepted === 0) && <FirstEvent />}
        {project && <ViewCards views={project.views} />}
      </div>
    </>
  );
}

function Starting() {
  const project = useStore(status);
  if (project?.state !== "running")
    return (
      <div class="empty">
        <Waiting what={project?.reason || "The project is starting"} />
      </div>
    );
  return (
    <Empty
      title="This project defines nothing yet"
      command={"headrace new shop && cd shop && headrace run"}
    >
      <p>A project is a folder of .sql files. Add a stream and a view, or begin with a sample.</p>
    </Empty>
  );
}

function Graph({ of, tall, onTall }: { of: Topology; tall: boolean; onTall: () => void }) {
  const asked = useStore(place).query.node ?? null;
  const [as, setAs] = useState<"graph" | "table">("graph");
  const [all, setAll] = useState(false);
  const [text, setText] = useState("");
  const [clicked, setClicked] = useState<string | null>(null);
  const known = useMemo(() => new Set(of.nodes.map((node) => node.id)), [of]);
  const [first, setFirst] = useState<string | null>(null);
  useEffect(() => {
    if (!first || !known.has(first)) setFirst(firstFocus(of));
  }, [known]);
  const focus = asked && known.has(asked) ? asked : (first ?? firstFocus(of));
  const large = of.nodes.length > NODES_SHOWN;
  const shown = useMemo(
    () => (large && !all && focus ? neighbourhood(of, focus) : known),
    [of, focus, all, large],
  );
  const tied = useMemo(() => new Set(of.edges.flatMap((edge) => [edge.source, edge.target])), [of]);
  // A view without inputs, such as the ledger of alerts, is only in the table.
  const nodes = of.nodes.filter(
    (node) => shown.has(node.id) && (node.kind !== "view" || tied.has(node.id)),
  );
  const chosen = asked && known.has(asked) ? of.nodes.find((node) => node.id === asked)! : null;
  const chain = clicked ? causes(of.nodes, clicked) : [];
  const lit = new Set(chain.length > 1 ? chain.map((node) => node.id) : []);
  // A click on a node with a problem shows the path to its cause.
  const choose = (id: string | null) => {
    setClicked(id);
    amend({ node: id ? (causes(of.nodes, id).at(-1)?.id ?? id) : null });
  };
  const found = text ? search(of.nodes, text).slice(0, 8) : [];
  return (
    <Panel
      flush
      title={worst(of.nodes) === "bad" ? "A problem needs attention" : "Flow"}
      note={
        large && !all
          ? `${nodes.length} of ${of.nodes.length} nodes, around ${of.nodes.find((node) => node.id === focus)?.name ?? ""}`
          : undefined
      }
      actions={
        <>
          {large && (
            <div class="row">
              <input
                class="input"
                type="search"
                placeholder="Find a node"
                aria-label="Find a node"
                value={text}
                list="nodes-found"
                onInput={(event) => setText(event.currentTarget.value)}
                onKeyDown={(event) => {
                  if (event.key === "Enter" && found[0]) {
                    choose(found[0].id);
                    setText("");
                  }
                }}
                onChange={(event) => {
                  const exact = of.nodes.find((node) => node.id === event.currentTarget.value);
                  if (exact) {
                    choose(exact.id);
                    setText("");
                  }
                }}
              />
              <datalist id="nodes-found">
                {found.map((node) => (
                  <option key={node.id} value={node.id}>
                    {node.name}
                  </option>
                ))}
              </datalist>
              <Button kind="tiny" onPress={() => setAll(!all)}>
                {all ? "Neighbourhood" : `All ${of.nodes.length}`}
              </Button>
            </div>
          )}
          <Switch
            label="Show as"
            of={
              [
                ["graph", "Graph"],
                ["table", "Table"],
              ] as const
            }
            value={as}
            onChange={setAs}
          />
          {as === "graph" && (
            <Button
              kind="quiet tiny"
              icon="fit"
              label={tall ? "Smaller" : "Larger"}
              onPress={onTall}
            />
          )}
        </>
      }
    >
      {as === "table" ? (
        <NodeTable nodes={of.nodes} />
      ) : (
        <GraphView
          nodes={nodes}
          edges={edgesWithin(of.edges, shown)}
          chosen={chosen?.id ?? null}
          focus={large || worst(of.nodes) === "bad" ? focus : null}
          lit={lit}
          onChoose={choose}
          tall={tall}
        >
          {chosen && (
            <Inspector
              node={chosen}
              via={chain[0] && chain[0] !== chosen ? chain[0] : null}
              onClose={() => choose(null)}
            />
          )}
        </GraphView>
      )}
    </Panel>
  );
}

/** The page with the details of a node. */
export function nodeLink(node: Pick<Node, "kind" | "name" | "id">): [string, string] | null {
  const name = node.name;
  switch (node.kind) {
    case "view":
      return [link("views", name), "Open the view"];
    case "rule":
    case "watch":
      return [link("alerts", null, { rule: name }), "See its alerts"];
    case "source":
    case "log":
      return [link("events", node.id.slice(node.id.indexOf(":") + 1)), "See its events"];
    case "speed":
    case "master":
      return [link("runs", null, { stream: name }), "See its runs"];
    case "stream":
    case "table":
      return [link("lineage", null, { object: name }), "See its lineage"];
    default:
      return null;
  }
}

function Inspector({ node, via, onClose }: { node: Node; via: Node | null; onClose: () => void }) {
  const more = nodeLink(node);
  const said: [string, preact.ComponentChildren][] = [];
  if (node.rate !== null) said.push(["rate", rate(node.rate)]);
  if (node.lag_events !== null) said.push(["waiting", plural(node.lag_events, "event")]);
  if (node.lag_ms !== null) said.push(["oldest waits", duration(node.lag_ms)]);
  if (node.watermark_gap_ms !== null) said.push(["watermark gap", duration(node.watermark_gap_ms)]);
  if (node.saturation !== null) said.push(["saturation", percent(node.saturation)]);
  for (const [name, value] of Object.entries(node.detail)) {
    if (value !== null)
      said.push([name.replaceAll("_", " "), typeof value === "number" ? count(value) : value]);
  }
  return (
    <aside class="inspector" aria-label={`About ${node.name}`}>
      <div class="row">
        <Dot tone={node.health} />
        <strong class="ellipsis grow">{node.name}</strong>
        <span class="muted small">{node.kind}</span>
        <Button kind="quiet tiny" icon="close" label="Close" onPress={onClose} />
      </div>
      {via && (
        <p class="small">
          {via.kind} <b>{via.name}</b>: {via.reason} <span class="muted">This is the cause:</span>
        </p>
      )}
      {node.reason && <p class={`small ${node.health}`}>{node.reason}</p>}
      <Facts of={said} />
      {more && <a href={more[0]}>{more[1]} →</a>}
    </aside>
  );
}

function NodeTable({ nodes }: { nodes: Node[] }) {
  return (
    <Table
      label="Nodes of the topology"
      of={nodes}
      keyOf={(node) => node.id}
      scroll
      columns={[
        {
          name: "Node",
          show: (node) => {
            const to = nodeLink(node);
            return to ? <a href={to[0]}>{node.name}</a> : node.name;
          },
        },
        { name: "Kind", show: (node) => <span class="muted">{node.kind}</span> },
        {
          name: "Health",
          show: (node) => (
            <span class="row">
              <Dot tone={node.health} />
              {node.health}
            </span>
          ),
        },
        { name: "Reason", show: (node) => node.reason, clip: true },
        { name: "Rate", right: true, show: (node) => rate(node.rate) },
        { name: "Lag", right: true, show: (node) => count(node.lag_events) },
        { name: "Watermark gap", right: true, show: (node) => duration(node.watermark_gap_ms) },
        { name: "Saturation", right: true, show: (node) => percent(node.saturation) },
      ]}
    />
  );
}
