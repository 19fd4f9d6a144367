"""Spans of OpenTelemetry.

Without a tracer (headrace/run/tracing.py sets it) a span costs a function call, and nothing is
imported. A span belongs to the one that is open in its thread or task; a thread that is given the
context of another continues its span. tests/run/test_tracing.py reads the tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_tracer: Any = None


def trace_with(tracer: Any) -> None:
    """Give all spans from now on to a tracer of OpenTelemetry; None ends it."""
    global _tracer
    _tracer = tracer


def tracing() -> bool:
    """Whether spans are given to a tracer."""
    return _tracer is not None


@contextmanager
def span(name: str, **attributes: str | int) -> Iterator[Any]:
    """A span around a block; an exception is recorded in it and raised.

    >>> with span("epoch", stream="clicks") as made:
    ...     print(made)
    None
    """
    if _tracer is None:
        yield None
        return
    said = {f"headrace.{key}": value for key, value in attributes.items()}
    with _tracer.start_as_current_span(name, attributes=said) as made:
        yield made
