"""What a fold needs of one stream: the columns of its key, and an event time that orders it."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.compile.resolve import Resolved
from headrace.core.errors import UnknownColumn, Unsupported


def known_keys(resolved: Resolved, keys: Sequence[str], columns: Sequence[str]) -> list[str]:
    """The key's columns as the stream below declares them."""
    declared = {column.lower(): column for column in columns if not column.startswith("_")}
    if missing := [key for key in keys if key.lower() not in declared]:
        raise UnknownColumn(
            f"stream '{resolved.definition.name}' is partitioned by a column that "
            f"'{resolved.stream}' does not have: '{missing[0]}'",
            detail=f"{resolved.stream} has: {', '.join(declared.values())}.",
            origin=resolved.definition.query_origin,
        )
    return [declared[key.lower()] for key in keys]


def needed_time(resolved: Resolved, time: str | None) -> str:
    """The event time column, without which there is no order."""
    if time is None:
        raise Unsupported(
            f"stream '{resolved.definition.name}' needs its events in order, and their "
            "stream has no event time",
            hint="declare WATERMARK ts DELAY OF INTERVAL … in CREATE STREAM.",
            origin=resolved.definition.query_origin,
        )
    return time
