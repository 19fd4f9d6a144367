"""The graph with metrics: rates, health, and the cause of each problem.

A node downstream of a bad one has it as its cause. It is bad too if its answers are affected:
downstream of a source that has stopped or a master that is behind they are still correct, so it
only has a warning. The nodes of a stopped project are idle.
tests/run/test_topology.py breaks a project in several places.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from headrace.api.resources.status import ProjectStatus
from headrace.api.resources.topology import Edge, Health, Node, Topology, TopologyRequest
from headrace.compile.lineage import reads_of
from headrace.compile.plan import Plan
from headrace.core.time import iso
from headrace.run.observatory.graph import Graph, GraphNode, Reads, graph_of
from headrace.run.observatory.node_metrics import NodeMetrics, NodeMetricsReader
from headrace.run.observatory.observed_project import ObservedProject
from headrace.run.observatory.samples import Samples
from headrace.serving import watches
from headrace.serving.watches import ACTIVE

STOPPED = "the project is not running"
_DECISIVE = {"log", "speed", "stream", "table", "view"}


@dataclass(frozen=True, slots=True)
class _NodeState:
    """A node with its metrics, and the id of the node that causes its problem."""

    node: GraphNode
    metrics: NodeMetrics
    cause: str | None = None


def topology(service: ObservedProject, request: TopologyRequest) -> Topology:
    return topology_of(service, service.cache.samples, service.cache.reads)


def topology_of(
    service: ObservedProject, samples: Samples | None, reads: Reads = reads_of
) -> Topology:
    """The current graph of a project."""
    now, plan = iso(service.store.clock()), service.store.deployed()
    if plan is None:
        return Topology(now, [], [])
    reader = _TopologyReader(service, plan, service.status(), samples or Samples(), reads)
    return reader.topology(now)


class _TopologyReader:
    def __init__(
        self,
        service: ObservedProject,
        plan: Plan,
        status: ProjectStatus,
        samples: Samples,
        reads: Reads,
    ) -> None:
        with service.store.read() as db:
            active = watches.statuses(db, ACTIVE)
        self.graph = graph_of(service.project, plan, [one.name for one in active], reads)
        self.metrics_reader = NodeMetricsReader(service, plan, status, active)
        self.running, self.samples = service.runtime_info().running, samples

    def topology(self, at: str) -> Topology:
        states = {p.id: _NodeState(p, self.metrics_reader.metrics(p)) for p in self.graph.nodes}
        if self.running:
            states = with_causes(self.graph, states)
        nodes = [self._node(one) for one in states.values()]
        edges = [
            Edge(a, b, self._edge_rate(states[a].node, states[b].node)) for a, b in self.graph.edges
        ]
        return Topology(at, nodes, edges)

    def _node(self, state: _NodeState) -> Node:
        node, metrics = state.node, state.metrics
        health, reason = self._shown(metrics, rate := self._rate(node))
        return Node(
            node.id,
            node.kind,
            node.name,
            health,
            reason,
            rate,
            metrics.lag_events,
            metrics.lag_ms,
            metrics.watermark_gap_ms,
            metrics.saturation,
            metrics.detail,
            state.cause,
        )

    def _shown(self, metrics: NodeMetrics, rate: float | None) -> tuple[Health, str]:
        if not self.running and metrics.health != "bad":
            return "idle", STOPPED
        if metrics.health == "ok" and rate == 0 and not metrics.lag_events:
            return "idle", metrics.reason
        return metrics.health, metrics.reason

    def _rate(self, node: GraphNode) -> float | None:
        """The rate of a stream or view is that of its flow; other nodes have their own counters."""
        if node.kind in {"stream", "view"} and node.flow:
            return self.samples.rate(f"speed:{node.flow}")
        return self.samples.rate(node.id)

    def _edge_rate(self, source: GraphNode, target: GraphNode) -> float | None:
        if source.kind == "master":
            return None  # batch reads at intervals
        return self._rate(target if source.kind in {"source", "log"} else source)


def with_causes(graph: Graph, states: dict[str, _NodeState]) -> dict[str, _NodeState]:
    """The same, with each problem inherited by all nodes downstream of it."""
    found = dict(states)
    downstream: dict[str, list[str]] = {}
    for source, target in graph.edges:
        downstream.setdefault(source, []).append(target)
    for root in [one for one in states.values() if one.metrics.health == "bad"]:
        health: Health = "bad" if root.node.kind in _DECISIVE else "warn"
        visited, waiting = {root.node.id}, deque(downstream.get(root.node.id, ()))
        while waiting:
            id = waiting.popleft()
            if id in visited:
                continue
            visited.add(id)
            waiting += downstream.get(id, ())
            if found[id].metrics.health in {"ok", "idle"}:
                metrics = replace(found[id].metrics, health=health, reason=root.metrics.reason)
                found[id] = _NodeState(found[id].node, metrics, root.node.id)
    return found
