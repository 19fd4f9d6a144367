"""The project as a graph: what events flow through, how fast, and what is wrong where.

A node's id is its kind and its name, as in `view:visitors`. What is not known, as all rates of a
stopped project, is null.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from headrace.core.learned import learn

NodeKind = Literal[
    "source", "log", "master", "speed", "stream", "table", "view", "rule", "watch", "sink"
]
Health = Literal["ok", "warn", "bad", "idle"]
Detail = dict[str, int | float | str | None]


class Node(msgspec.Struct, frozen=True):
    """One thing that events come to."""

    id: str
    kind: NodeKind
    name: str
    health: Health
    reason: str = ""  # why it is not ok, as a sentence
    rate: float | None = None  # events a second over the last ten seconds or so
    lag_events: int | None = None  # how many events wait for it
    lag_ms: int | None = None  # how long the oldest of them has waited
    watermark_gap_ms: int | None = None
    saturation: float | None = None  # time of an epoch as a share of the trigger's interval
    detail: Detail = {}
    cause: str | None = None  # id of the node that explains why this one is not well


class Edge(msgspec.Struct, frozen=True):
    """Events go from one node to another."""

    source: str
    target: str
    rate: float | None = None


class Topology(msgspec.Struct, frozen=True):
    """All nodes and edges at one moment."""

    at: str
    nodes: list[Node]
    edges: list[Edge]


learn(Topology)
