"""The inputs that a fold requires of a stream: the columns of its key, and an event time."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.compile.resolve import ResolvedQuery
from headrace.core.errors import UnknownColumn, Unsupported


def declared_keys(
    resolved: ResolvedQuery, keys: Sequence[str], columns: Sequence[str]
) -> list[str]:
    """The key's columns, spelled as the stream below declares them."""
    declared = {column.lower(): column for column in columns if not column.startswith("_")}
    if missing := [key for key in keys if key.lower() not in declared]:
        raise UnknownColumn(
            f"stream '{resolved.definition.name}' is partitioned by a column that "
            f"'{resolved.stream}' does not have: '{missing[0]}'",
            detail=f"{resolved.stream} has: {', '.join(declared.values())}.",
            origin=resolved.definition.query_origin,
        )
    return [declared[key.lower()] for key in keys]


def require_event_time(resolved: ResolvedQuery, time: str | None) -> str:
    """The event time column; Unsupported if there is none, because a fold needs an order."""
    if time is None:
        raise Unsupported(
            f"stream '{resolved.definition.name}' needs its events in order, and their "
            "stream has no event time",
            hint="declare WATERMARK ts DELAY OF INTERVAL … in CREATE STREAM.",
            origin=resolved.definition.query_origin,
        )
    return time
