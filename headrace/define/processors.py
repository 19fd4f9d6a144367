"""Stateful processors that a project's functions.py gives to its SQL.

A processor is a class: `init` makes the state of a new key, `on_event` and `on_timer` update the
key and yield rows. It is called as `SELECT * FROM visits(TABLE(clicks) PARTITION BY user)`. State
is kept as JSON between calls, so that it is the same wherever the events are cut.
tests/define/test_processors.py checks loading and refusals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from headrace.core.errors import BadDefinition
from headrace.core.origin import Origin
from headrace.core.schema import Type
from headrace.define.functions import load_module

C = TypeVar("C", bound=type)
MARK = "__headrace_processor__"
NO_PROCESSORS: Mapping[str, ProcessorDefinition] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ProcessorDefinition:
    """One processor: its SQL name, the columns of its rows, its class and its state's type."""

    name: str
    outputs: tuple[tuple[str, Type], ...]
    body: type
    state: Any  # a dataclass or msgspec.Struct; Any for plain values


def processor(outputs: str, *, state: Any = Any, name: str | None = None) -> Callable[[C], C]:
    """Register a processor for SQL.

    >>> @processor("user STRING, clicks BIGINT")
    ... class Counted:
    ...     def init(self):
    ...         return {"clicks": 0}
    ...
    ...     def on_event(self, state, event, timers):
    ...         state["clicks"] += 1
    ...         yield event.user, state["clicks"]
    """
    columns = tuple(_column(text) for text in outputs.split(","))

    def mark(body: C) -> C:
        definition = ProcessorDefinition(name or body.__name__, columns, body, state)
        for method in ("init", "on_event"):
            if not callable(getattr(body, method, None)):
                raise BadDefinition(f"the processor '{definition.name}' has no {method}()")
        setattr(body, MARK, definition)
        return body

    return mark


def load_processors(path: Path) -> dict[str, ProcessorDefinition]:
    """The processors of a project's Python file, by their lowercase names."""
    marked = {
        id(value): getattr(value, MARK)
        for value in vars(load_module(path)).values()
        if isinstance(value, type) and MARK in vars(value)
    }
    found: dict[str, ProcessorDefinition] = {}
    for definition in marked.values():
        if found.setdefault(definition.name.lower(), definition) is not definition:
            raise BadDefinition(
                f"the processor '{definition.name}' is defined twice",
                hint="give one of them another name: @processor(…, name=…).",
                origin=Origin(path.name, 1),
            )
    return found


def _column(text: str) -> tuple[str, Type]:
    name, _, type = text.strip().partition(" ")
    if not name.isidentifier() or name.startswith("_") or not type.strip():
        raise BadDefinition(
            f"'{text.strip()}' is not a column name followed by a type",
            hint='write @processor("user STRING, clicks BIGINT").',
        )
    return name, Type.parse(type.strip())
