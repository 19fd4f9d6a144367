"""Permission to read: one object, a flow, or all of a project. tests/api/test_named.py checks the
lists that are filtered by it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from headrace.access.caller import Caller
from headrace.access.object import object_of
from headrace.access.operation import Operation
from headrace.core.flow import stream_names


class HasName(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=HasName)
# The kind of object that a caller must be allowed to read, to see a node of the graph.
_OBJECTS = dict.fromkeys(("source", "log", "master", "stream"), "stream") | {
    "table": "table", "view": "view", "rule": "rule", "watch": "rule",
}  # fmt: skip
_FLOWS = ("speed", "flow")


def readable(kind: str, found: Iterable[T], caller: Caller) -> list[T]:
    """The items of a kind that the caller may read."""
    return [each for each in found if may_read(caller, kind, each.name)]


def may_read(caller: Caller, kind: str, name: str) -> bool:
    return caller.allows(Operation.READ, object_of(kind, name))


def may_read_all(caller: Caller) -> bool:
    return caller.allows(Operation.READ, caller.whole_job)


def may_read_flow(caller: Caller, flow: str) -> bool:
    """Whether the caller may read each stream of a flow."""
    return all(may_read(caller, "stream", stream) for stream in stream_names(flow))


def may_read_node(caller: Caller, kind: str, name: str) -> bool:
    """Whether the caller may read a node of the graph."""
    if kind in _FLOWS:
        return may_read_flow(caller, name)
    return kind in _OBJECTS and may_read(caller, _OBJECTS[kind], name)
