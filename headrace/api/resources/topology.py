"""The project as a graph of nodes and edges, with rates, lag and problems.

A node's id is its kind and its name, as in `view:visitors`. Unknown values, such as all rates of a
stopped project, are null.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec.structs import replace

from headrace.access.caller import Caller
from headrace.api.get_request import Endpoint, GetRequest, RequestHandler
from headrace.api.needs import ANY_USER
from headrace.api.read_access import may_read_all, may_read_node
from headrace.core.msgspec_types import prepare_types

NodeKind = Literal[
    "source", "log", "master", "speed", "stream", "table", "view", "rule", "watch", "sink"
]
Health = Literal["ok", "warn", "bad", "idle"]
Detail = dict[str, int | float | str | None]


class Node(msgspec.Struct, frozen=True):
    """A source, log, stream, view or other stage of processing."""

    id: str
    kind: NodeKind
    name: str
    health: Health
    reason: str = ""  # why it is not ok, as a sentence
    rate: float | None = None  # events a second over the last ten seconds or so
    lag_events: int | None = None  # number of events that wait for it
    lag_ms: int | None = None  # waiting time of the oldest of them
    watermark_gap_ms: int | None = None
    saturation: float | None = None  # time of an epoch as a share of the trigger's interval
    detail: Detail = {}
    cause: str | None = None  # id of the node that causes the problem of this one


class Edge(msgspec.Struct, frozen=True):
    """A flow of events from one node to another."""

    source: str
    target: str
    rate: float | None = None


class Topology(msgspec.Struct, frozen=True):
    """A snapshot of all nodes and edges."""

    at: str
    nodes: list[Node]
    edges: list[Edge]


class TopologyRequest(GetRequest[Topology], frozen=True):
    """The graph of the project, with rates, lag and problems."""

    endpoint = Endpoint("/v1/topology", "topology", ANY_USER, stored=True)

    def readable(self, service: RequestHandler, caller: Caller) -> Topology:
        return readable_topology(service.ask(self), caller)


def readable_topology(topology: Topology, caller: Caller) -> Topology:
    """Only nodes that the caller may read, the edges between them, and causes among them."""
    if may_read_all(caller):
        return topology
    seen = {node.id for node in topology.nodes if may_read_node(caller, node.kind, node.name)}
    # A sink has the permissions of its view, as in the status.
    seen |= {e.target for e in topology.edges if e.target.startswith("sink:") and e.source in seen}
    nodes = [_explained_within(node, seen) for node in topology.nodes if node.id in seen]
    edges = [edge for edge in topology.edges if edge.source in seen and edge.target in seen]
    return replace(topology, nodes=nodes, edges=edges)


def _explained_within(node: Node, seen: set[str]) -> Node:
    hidden = node.cause is not None and node.cause not in seen
    return replace(node, cause=None, reason="") if hidden else node


prepare_types(Topology)
