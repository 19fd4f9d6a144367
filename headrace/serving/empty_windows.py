"""The values of a window without events.

A window without events has no row. Its values follow from SQL: a count is 0, and a sum, an average
or a maximum is NULL. Each is the output's own finish over the merged row without events. HAVING and
LIMIT omit rows that have events, so the values are not known there.
tests/serving/test_empty_windows.py checks it.
"""

from __future__ import annotations

import msgspec

from headrace.compile.finish import compile_finish
from headrace.compile.plan import MERGED, WINDOW, ViewPlan
from headrace.core.time import MILLISECOND
from headrace.serving.answer import Windows
from headrace.serving.engine import run
from headrace.serving.merged_rows import empty_row

CACHED_MAX = 1_000
_CACHE: dict[str, Windows] = {}  # it depends on the plan alone, and every read needs it


def windows_of(plan: ViewPlan) -> Windows | None:
    """None for a view without windows of a fixed interval, such as one of sessions."""
    slide = plan.windowed[1].slide if plan.windowed else 0
    if not slide or not any(out.type == WINDOW for out in plan.outputs):
        return None
    if plan.fingerprint not in _CACHE:
        if len(_CACHE) >= CACHED_MAX:
            _CACHE.clear()
        _CACHE[plan.fingerprint] = Windows(slide / MILLISECOND, _empty(plan))
    return _CACHE[plan.fingerprint]


def _empty(plan: ViewPlan) -> dict[str, float | int]:
    outputs = tuple(out for out in plan.outputs if out.key is None)
    if plan.having or plan.limit is not None or not outputs:
        return {}
    values = msgspec.structs.replace(plan, outputs=outputs, order=())
    (row,) = run(compile_finish(values, MERGED).sql, {MERGED: empty_row(plan)}).to_pylist()
    return {name: value for name, value in row.items() if type(value) in (int, float)}
