/** The lineage of columns: boxes of columns, lines between them. */

import dagre from "@dagrejs/dagre";
import { useMemo, useState } from "preact/hooks";
import { api } from "../api";
import { plural } from "../format";
import { at, related } from "../lineage";
import { amend, place } from "../place";
import { useStore } from "../store";
import { useAsked } from "../ui/hooks";
import { PageHead } from "../ui/page";
import { Badge, Empty, Notice, Panel, Switch, Waiting } from "../ui/parts";
import { Table } from "../ui/table";
import type { Catalog, Lineage } from "../wire";

const [WIDTH, HEAD, LINE] = [210, 31, 24];

interface Box {
  name: string;
  kind: string;
  columns: string[];
  x: number;
  y: number;
  height: number;
}

export function LineagePage() {
  const { query } = useStore(place);
  const lineage = useAsked(() => api.ask("lineage"), []);
  const catalog = useAsked(() => api.ask("catalog"), []);
  const [as, setAs] = useState<"graph" | "table">("graph");
  const object = query.object ?? "";
  const names = catalog.value ? kinds(catalog.value) : new Map<string, string>();
  const problem = lineage.problem ?? catalog.problem;
  return (
    <>
      <PageHead
        title="Lineage"
        about="press a column to see what it is made of, and what is made of it"
      >
        <select
          class="input"
          aria-label="Around"
          value={object}
          onChange={(event) => amend({ object: event.currentTarget.value || null, column: null })}
        >
          <option value="">whole project</option>
          {[...names.keys()].map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
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
      </PageHead>
      <div class="content">
        {problem && <Notice of={problem} />}
        {!problem && (!lineage.value || !catalog.value) && <Waiting />}
        {lineage.value && catalog.value && <Touched lineage={lineage.value} object={object} />}
        {lineage.value &&
          catalog.value &&
          (lineage.value.columns.length ? (
            <Panel flush>
              {as === "graph" ? (
                <Boxes
                  lineage={lineage.value}
                  catalog={catalog.value}
                  object={object}
                  chosen={query.column ?? null}
                />
              ) : (
                <ColumnTable lineage={lineage.value} object={object} />
              )}
            </Panel>
          ) : (
            <Panel>
              <Empty title="Nothing is derived yet">
                <p>
                  Define a view over a stream; its columns and what they are made of appear here.
                </p>
              </Empty>
            </Panel>
          ))}
      </div>
    </>
  );
}

function kinds(catalog: Catalog): Map<string, string> {
  return new Map([
    ...catalog.streams.map((one): [string, string] => [one.name, "stream"]),
    ...catalog.tables.map((one): [string, string] => [one.name, "table"]),
    ...catalog.views.map((one): [string, string] => [one.name, "view"]),
  ]);
}

function Touched({ lineage, object }: { lineage: Lineage; object: string }) {
  const touched = object ? (lineage.touched_by[object] ?? []) : [];
  if (!object) return null;
  return (
    <p class="row">
      A change of <b>{object}</b> touches{" "}
      {touched.length
        ? touched.map((name) => (
            <Badge key={name} tone="accent">
              {name}
            </Badge>
          ))
        : "nothing else"}
    </p>
  );
}

/** The objects to draw: all, or those upstream and downstream of one. */
function shownObjects(lineage: Lineage, catalog: Catalog, object: string): Set<string> {
  if (!object) {
    // A view without known sources, such as the ledger of alerts, is not drawn.
    const made = new Set(lineage.columns.map((one) => one.object));
    return new Set(
      [...kinds(catalog)]
        .filter(([name, kind]) => kind !== "view" || made.has(name))
        .map(([name]) => name),
    );
  }
  const down = lineage.touched_by[object] ?? [];
  const up = Object.entries(lineage.touched_by)
    .filter(([, touched]) => touched.includes(object))
    .map(([name]) => name);
  return new Set([object, ...down, ...up]);
}

function boxes(
  lineage: Lineage,
  catalog: Catalog,
  object: string,
): { boxes: Box[]; width: number; height: number } {
  const shown = shownObjects(lineage, catalog, object);
  const all = [...catalog.streams, ...catalog.tables, ...catalog.views].filter((one) =>
    shown.has(one.name),
  );
  const counted = new Set(
    lineage.columns
      .flatMap((one) => one.from)
      .filter((ref) => ref.column === "*")
      .map((ref) => ref.object),
  );
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 20, ranksep: 90, marginx: 20, marginy: 20 });
  graph.setDefaultEdgeLabel(() => ({}));
  const columns = new Map(
    all.map((one) => [
      one.name,
      [...(counted.has(one.name) ? ["*"] : []), ...one.columns.map((column) => column.name)],
    ]),
  );
  for (const [name, own] of columns)
    graph.setNode(name, { width: WIDTH, height: HEAD + LINE * own.length });
  for (const one of lineage.columns) {
    for (const ref of one.from)
      if (columns.has(one.object) && columns.has(ref.object)) graph.setEdge(ref.object, one.object);
  }
  dagre.layout(graph);
  const kind = kinds(catalog);
  const made = all.map(({ name }): Box => {
    const node = graph.node(name) as { x: number; y: number; height: number };
    return {
      name,
      kind: kind.get(name) ?? "",
      columns: columns.get(name)!,
      x: node.x - WIDTH / 2,
      y: node.y - node.height / 2,
      height: node.height,
    };
  });
  const size = graph.graph() as { width?: number; height?: number };
  return { boxes: made, width: size.width ?? 0, height: size.height ?? 0 };
}

function Boxes({
  lineage,
  catalog,
  object,
  chosen,
}: {
  lineage: Lineage;
  catalog: Catalog;
  object: string;
  chosen: string | null;
}) {
  const drawn = useMemo(() => boxes(lineage, catalog, object), [lineage, catalog, object]);
  const lit = useMemo(
    () => (chosen ? related(lineage, chosen.replace(".", "\n")) : new Set<string>()),
    [lineage, chosen],
  );
  const spot = new Map(
    drawn.boxes.flatMap((box) =>
      box.columns.map((column, index): [string, { box: Box; y: number }] => [
        at(box.name, column),
        { box, y: box.y + HEAD + LINE * (index + 0.5) },
      ]),
    ),
  );
  const lines = lineage.columns.flatMap((one) =>
    one.from.flatMap((ref) => {
      const [to, from] = [
        spot.get(at(one.object, one.column)),
        spot.get(at(ref.object, ref.column)),
      ];
      if (!to || !from) return [];
      const [x1, x2] = [from.box.x + WIDTH, to.box.x];
      const bright = lit.has(at(one.object, one.column)) && lit.has(at(ref.object, ref.column));
      return [
        {
          key: `${ref.object}.${ref.column}>${one.object}.${one.column}`,
          bright,
          d: `M${x1} ${from.y}C${x1 + 45} ${from.y} ${x2 - 45} ${to.y} ${x2} ${to.y}`,
        },
      ];
    }),
  );
  return (
    <section
      class={`lineage${chosen ? " some" : ""}`}
      tabIndex={0}
      aria-label="Columns and what they are made of"
    >
      <div class="boxes" style={{ width: `${drawn.width}px`, height: `${drawn.height}px` }}>
        <svg width={drawn.width} height={drawn.height} aria-hidden="true">
          {lines.map((line) => (
            <path key={line.key} d={line.d} class={line.bright ? "lit" : undefined} />
          ))}
        </svg>
        {drawn.boxes.map((box) => (
          <section
            class="box"
            key={box.name}
            aria-label={`${box.kind} ${box.name}`}
            style={{ transform: `translate(${box.x}px, ${box.y}px)`, height: `${box.height}px` }}
          >
            <header>
              <span class="ellipsis grow">{box.name}</span>
              <span class="kind">{box.kind}</span>
            </header>
            {box.columns.map((column) => {
              const id = `${box.name}.${column}`;
              return (
                <button
                  type="button"
                  key={column}
                  class={lit.has(at(box.name, column)) ? "lit" : undefined}
                  aria-pressed={chosen === id}
                  onClick={() => amend({ column: chosen === id ? null : id })}
                >
                  {column === "*" ? "rows" : column}
                </button>
              );
            })}
          </section>
        ))}
      </div>
    </section>
  );
}

function ColumnTable({ lineage, object }: { lineage: Lineage; object: string }) {
  const shown = lineage.columns.filter(
    (one) => !object || one.object === object || one.from.some((ref) => ref.object === object),
  );
  return (
    <Table
      label={plural(shown.length, "column")}
      of={shown}
      keyOf={(one) => `${one.object}.${one.column}`}
      columns={[
        { name: "Column", mono: true, show: (one) => `${one.object}.${one.column}` },
        {
          name: "Made of",
          mono: true,
          show: (one) =>
            one.from
              .map((ref) =>
                ref.column === "*" ? `rows of ${ref.object}` : `${ref.object}.${ref.column}`,
              )
              .join(", ") || "a constant",
        },
      ]}
    />
  );
}
