"""Rows on their way into the store: from lifted columns to stored columns.

A stored row begins with `_key`, the key values as JSON: SQL's NULL is equal to nothing, but a
NULL key is one key. A column that is not lifted, such as a number that batch counts, is filled in
by the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from headrace.compile.plan import ViewPlan
from headrace.serving.store import Row


def stored_rows(plan: ViewPlan, lifted: Iterable[Row], *before: object) -> Iterator[Row]:
    """`_key`, then `before`, then key and partial columns, for each lifted row."""
    gaps = _gaps(plan)
    return with_key(plan, (_widened(row, gaps) for row in lifted) if gaps else lifted, *before)


def with_key(plan: ViewPlan, rows: Iterable[Row], *before: object) -> Iterator[Row]:
    """`_key`, then `before`, then the row, for each row of key and partial columns."""
    width = len(plan.keys)
    encode = msgspec.json.encode
    for row in rows:
        yield (encode(row[:width]).decode(), *before, *row)


def _widened(row: Row, gaps: list[int]) -> Row:
    values = list(row)
    for place in gaps:
        values.insert(place, None)
    return tuple(values)


def _gaps(plan: ViewPlan) -> list[int]:
    """Where a stored column has no lifted one."""
    gaps: list[int] = []
    place = len(plan.keys)
    for partial in plan.partials:
        gaps += range(place + len(partial.lifts), place + len(partial.columns))
        place += len(partial.columns)
    return gaps
