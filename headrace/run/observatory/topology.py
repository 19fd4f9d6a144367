"""The graph with numbers: rates from samples, judgements, and what each trouble is caused by.

A place behind one that is bad names that one as its cause. It is bad too if its answers suffer:
behind a source that has stopped, or a master that falls behind, they are still right, and it is
only warned of. A project that does not run is idle.
tests/run/test_topology.py breaks a project in several places.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from headrace.api.resources.topology import Edge, Health, Node, Topology, TopologyRequest
from headrace.api.service import ProjectStatus
from headrace.compile.lineage import reads_of
from headrace.compile.plan import Plan
from headrace.core.time import iso
from headrace.run.observatory.graph import Graph, Place, Reads, graph_of
from headrace.run.observatory.numbers import Judging, NodeMetrics
from headrace.run.observatory.samples import Samples
from headrace.run.observatory.subject import Subject
from headrace.serving import watches
from headrace.serving.watches import ACTIVE

STOPPED = "the project does not run"
_DECISIVE = {"log", "speed", "stream", "table", "view"}


@dataclass(frozen=True, slots=True)
class _Judged:
    """A place with its numbers and what explains them."""

    place: Place
    numbers: NodeMetrics
    cause: str | None = None


def topology(subject: Subject, asked: TopologyRequest) -> Topology:
    return topology_of(subject, subject.memory.samples, subject.memory.reads)


def topology_of(subject: Subject, samples: Samples | None, reads: Reads = reads_of) -> Topology:
    """The project at this moment."""
    now, plan = iso(subject.store.clock()), subject.store.deployed()
    if plan is None:
        return Topology(now, [], [])
    looking = _Looking(subject, plan, subject.status(), samples or Samples(), reads)
    return looking.topology(now)


class _Looking:
    def __init__(
        self, subject: Subject, plan: Plan, status: ProjectStatus, samples: Samples, reads: Reads
    ) -> None:
        with subject.store.read() as db:
            active = watches.statuses(db, ACTIVE)
        self.graph = graph_of(subject.project, plan, [one.name for one in active], reads)
        self.judging = Judging(subject, plan, status, active)
        self.running, self.samples = subject.signs().running, samples

    def topology(self, at: str) -> Topology:
        judged = {p.id: _Judged(p, self.judging.numbers(p)) for p in self.graph.places}
        if self.running:
            judged = explained(self.graph, judged)
        nodes = [self._node(one) for one in judged.values()]
        edges = [
            Edge(a, b, self._edge_rate(judged[a].place, judged[b].place))
            for a, b in self.graph.edges
        ]
        return Topology(at, nodes, edges)

    def _node(self, judged: _Judged) -> Node:
        place, numbers = judged.place, judged.numbers
        health, reason = self._shown(numbers, rate := self._rate(place))
        return Node(
            place.id,
            place.kind,
            place.name,
            health,
            reason,
            rate,
            numbers.lag_events,
            numbers.lag_ms,
            numbers.watermark_gap_ms,
            numbers.saturation,
            numbers.detail,
            judged.cause,
        )

    def _shown(self, numbers: NodeMetrics, rate: float | None) -> tuple[Health, str]:
        if not self.running and numbers.health != "bad":
            return "idle", STOPPED
        if numbers.health == "ok" and rate == 0 and not numbers.lag_events:
            return "idle", numbers.reason
        return numbers.health, numbers.reason

    def _rate(self, place: Place) -> float | None:
        """What is kept of a flow takes its events; the others have counters of their own."""
        if place.kind in {"stream", "view"} and place.flow:
            return self.samples.rate(f"speed:{place.flow}")
        return self.samples.rate(place.id)

    def _edge_rate(self, source: Place, target: Place) -> float | None:
        if source.kind == "master":
            return None  # batch takes what it needs, now and then
        return self._rate(target if source.kind in {"source", "log"} else source)


def explained(graph: Graph, judged: dict[str, _Judged]) -> dict[str, _Judged]:
    """The same, with trouble told to all that is behind it."""
    found = dict(judged)
    behind: dict[str, list[str]] = {}
    for source, target in graph.edges:
        behind.setdefault(source, []).append(target)
    for root in [one for one in judged.values() if one.numbers.health == "bad"]:
        health: Health = "bad" if root.place.kind in _DECISIVE else "warn"
        reached, waiting = {root.place.id}, deque(behind.get(root.place.id, ()))
        while waiting:
            id = waiting.popleft()
            if id in reached:
                continue
            reached.add(id)
            waiting += behind.get(id, ())
            if found[id].numbers.health in {"ok", "idle"}:
                numbers = replace(found[id].numbers, health=health, reason=root.numbers.reason)
                found[id] = _Judged(found[id].place, numbers, root.place.id)
    return found
