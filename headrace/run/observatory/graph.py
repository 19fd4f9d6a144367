"""The graph of a project without metrics: its nodes, and the edges along which events flow.

It is derived from the definitions and the plan, so it changes only when another plan is deployed.
An event flows from its source into the log, and from there into the master and into speed.
tests/run/test_topology.py reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from headrace.api.resources.topology import NodeKind
from headrace.compile.flow import flows_of
from headrace.compile.lineage import reads_of
from headrace.compile.plan import Plan
from headrace.define.project import Project

WATCHES_MAX = 100  # shown as nodes; there may be very many


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node without metrics. `flow` is the flow whose position it has, if it has one."""

    kind: NodeKind
    name: str
    flow: str | None = None

    @property
    def id(self) -> str:
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, slots=True)
class Graph:
    """All nodes, and the edges as pairs of their ids."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[tuple[str, str], ...]


Reads = Callable[[Project], dict[str, list[str]]]


class ReadsCache:
    """Caches what each definition of a project reads, because its queries must be parsed for it."""

    def __init__(self) -> None:
        self._known: tuple[Project, dict[str, list[str]]] | None = None

    def __call__(self, project: Project) -> dict[str, list[str]]:
        known = self._known
        if known is None or known[0] is not project:
            self._known = known = project, reads_of(project)
        return known[1]


def graph_of(
    project: Project, plan: Plan, watches: Iterable[str] = (), reads: Reads = reads_of
) -> Graph:
    """The graph of a deployed project with these watches."""
    nodes = list(nodes_of(project, plan, list(watches)[:WATCHES_MAX]))
    edges = dict.fromkeys((*_ingest_edges(plan), *_reader_edges(reads(project), plan, nodes)))
    known = {node.id for node in nodes}
    return Graph(tuple(nodes), tuple(e for e in edges if e[0] in known and e[1] in known))


def nodes_of(project: Project, plan: Plan, watches: Iterable[str] = ()) -> Iterator[GraphNode]:
    """All nodes of a deployed project."""
    for stream in plan.streams:
        yield GraphNode("source", stream.name)
        yield GraphNode("log", stream.name)
        yield GraphNode("master", stream.name)
    yield from (GraphNode("speed", flow.name, flow.name) for flow in flows_of(plan))
    yield from (GraphNode("table", table.name) for table in plan.shown_tables)
    yield from (GraphNode("stream", made.name, made.stream) for made in plan.shown_derived)
    yield from (GraphNode("view", view.name, view.stream or None) for view in plan.shown_views)
    yield from (GraphNode("rule", rule.name, _first(rule.streams)) for rule in plan.rules)
    yield from (GraphNode("watch", name) for name in watches)
    yield from (GraphNode("sink", sink.name) for sink in plan.sinks)


def _first(flows: tuple[str, ...]) -> str | None:
    return flows[0] if flows else None


def _ingest_edges(plan: Plan) -> Iterator[tuple[str, str]]:
    for stream in plan.streams:
        yield f"source:{stream.name}", f"log:{stream.name}"
        yield f"log:{stream.name}", f"master:{stream.name}"
    for flow in flows_of(plan):
        yield from ((f"log:{stream.name}", f"speed:{flow.name}") for stream in flow.streams)
    for view in plan.shown_views:
        for name in view.streams:
            yield f"master:{name}", f"view:{view.name}"


def _reader_edges(
    reads: dict[str, list[str]], plan: Plan, nodes: list[GraphNode]
) -> Iterator[tuple[str, str]]:
    """From speed, tables and views to their readers, and from sinks into the logs of streams."""
    readers = {node.name: node for node in nodes if node.kind not in {"source", "log", "master"}}
    declared = {stream.name for stream in plan.streams}
    for name, sources in reads.items():
        target = readers.get(name)
        for source in sources:
            if name in declared:
                yield readers[source].id if source in readers else source, f"log:{name}"
            elif target is not None and source in declared:
                yield f"speed:{target.flow or source}", target.id
            elif target is not None and source in readers:
                yield readers[source].id, target.id
