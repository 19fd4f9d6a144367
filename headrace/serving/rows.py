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
    width = len(plan.keys)
    gaps = _gaps(plan)
    encode = msgspec.json.encode
    for row in lifted:
        key = encode(row[:width]).decode()
        if gaps:
            values = list(row)
            for place in gaps:
                values.insert(place, None)
            yield (key, *before, *values)
        else:
            yield (key, *before, *row)


def _gaps(plan: ViewPlan) -> list[int]:
    """Where a stored column has no lifted one."""
    gaps: list[int] = []
    place = len(plan.keys)
    for partial in plan.partials:
        gaps += range(place + len(partial.lifts), place + len(partial.columns))
        place += len(partial.columns)
    return gaps
