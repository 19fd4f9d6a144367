"""The project as a graph without numbers: what there is, and where events go from each.

Read off the definitions and the plan, so it changes only when another plan is deployed. An event
goes from its source into the log, and from there two ways: through the master, and through speed.
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
class Place:
    """A node without numbers. `flow` is whose position it has come to, if it is kept of one."""

    kind: NodeKind
    name: str
    flow: str | None = None

    @property
    def id(self) -> str:
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, slots=True)
class Graph:
    """All places, and pairs of their ids."""

    places: tuple[Place, ...]
    edges: tuple[tuple[str, str], ...]


Reads = Callable[[Project], dict[str, list[str]]]


class LastReads:
    """What each name of a project reads, found out once for the same project: its queries are
    parsed for it, which would take most of the time of a look at it.
    """

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
    places = list(places_of(project, plan, list(watches)[:WATCHES_MAX]))
    edges = dict.fromkeys((*_ways_in(plan), *_ways_on(reads(project), plan, places)))
    known = {place.id for place in places}
    return Graph(tuple(places), tuple(e for e in edges if e[0] in known and e[1] in known))


def places_of(project: Project, plan: Plan, watches: Iterable[str] = ()) -> Iterator[Place]:
    """All places of a deployed project."""
    for stream in plan.streams:
        yield Place("source", stream.name)
        yield Place("log", stream.name)
        yield Place("master", stream.name)
    yield from (Place("speed", flow.name, flow.name) for flow in flows_of(plan))
    yield from (Place("table", table.name) for table in plan.shown_tables)
    yield from (Place("stream", made.name, made.stream) for made in plan.shown_derived)
    yield from (Place("view", view.name, view.stream or None) for view in plan.shown_views)
    yield from (Place("rule", rule.name, _first(rule.streams)) for rule in plan.rules)
    yield from (Place("watch", name) for name in watches)
    yield from (Place("sink", sink.name) for sink in plan.sinks)


def _first(flows: tuple[str, ...]) -> str | None:
    return flows[0] if flows else None


def _ways_in(plan: Plan) -> Iterator[tuple[str, str]]:
    for stream in plan.streams:
        yield f"source:{stream.name}", f"log:{stream.name}"
        yield f"log:{stream.name}", f"master:{stream.name}"
    for flow in flows_of(plan):
        yield from ((f"log:{stream.name}", f"speed:{flow.name}") for stream in flow.streams)
    for view in plan.shown_views:
        for name in view.streams:
            yield f"master:{name}", f"view:{view.name}"


def _ways_on(
    reads: dict[str, list[str]], plan: Plan, places: list[Place]
) -> Iterator[tuple[str, str]]:
    """From speed, tables and views to what reads them, and back into the logs that they feed."""
    behind = {
        place.name: place for place in places if place.kind not in {"source", "log", "master"}
    }
    declared = {stream.name for stream in plan.streams}
    for name, sources in reads.items():
        target = behind.get(name)
        for source in sources:
            if name in declared:
                yield behind[source].id if source in behind else source, f"log:{name}"
            elif target is not None and source in declared:
                yield f"speed:{target.flow or source}", target.id
            elif target is not None and source in behind:
                yield behind[source].id, target.id
