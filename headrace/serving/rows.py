"""Rows on their way into the store: from lifted columns to stored columns.

A stored row begins with `_key`, the key values as JSON: SQL's NULL is equal to nothing, but a
NULL key is one key. A column that is not lifted, such as a number that batch counts, is filled in
by the store. NaN is a text there (core/storage.py), but in sums, which are added.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from headrace.compile.plan import ViewPlan
from headrace.core.aggregate import Merge
from headrace.core.schema import Type
from headrace.core.storage import Storage, without_nan
from headrace.serving.store import Row

_KEPT = {Merge.MIN, Merge.MAX, Merge.MIN_BY, Merge.MAX_BY}


def stored_rows(plan: ViewPlan, lifted: Iterable[Row], *before: object) -> Iterator[Row]:
    """`_key`, then `before`, then key and partial columns, for each lifted row."""
    gaps, reals = _gaps(plan), _reals(plan)
    if gaps or reals:
        lifted = (_filled(row, gaps, reals) for row in lifted)
    return with_key(plan, lifted, *before)


def with_key(plan: ViewPlan, rows: Iterable[Row], *before: object) -> Iterator[Row]:
    """`_key`, then `before`, then the row, for each row of key and partial columns."""
    width = len(plan.keys)
    encode = msgspec.json.encode
    for row in rows:
        yield (encode(row[:width]).decode(), *before, *row)


def _filled(row: Row, gaps: list[int], reals: list[int]) -> Row:
    values = list(row)
    for place in gaps:
        values.insert(place, None)
    for place in reals:
        values[place] = without_nan(values[place])
    return tuple(values)


def _reals(plan: ViewPlan) -> list[int]:
    """Where a stored column has a double that is kept as it is."""
    keys = ["" if key.window else Storage(Type.of(key.type)).column for key in plan.keys]
    kept = [
        storage if partial.merge in _KEPT else ""
        for partial in plan.partials
        for storage in partial.storages
    ]
    return [place for place, storage in enumerate([*keys, *kept]) if storage == "REAL"]


def _gaps(plan: ViewPlan) -> list[int]:
    """Where a stored column has no lifted one."""
    gaps: list[int] = []
    place = len(plan.keys)
    for partial in plan.partials:
        gaps += range(place + len(partial.lifts), place + len(partial.columns))
        place += len(partial.columns)
    return gaps
