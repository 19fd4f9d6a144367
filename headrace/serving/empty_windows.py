"""What a window says that no event came for.

A window without events has no row. SQL says what its values would be: a count is 0, and a sum, an
average or a maximum is NULL. Each is the output's own finish over the merged row of no events.
HAVING and LIMIT leave out rows that have events, so there nothing is known.
tests/serving/test_empty_windows.py checks it.
"""

from __future__ import annotations

import msgspec

from headrace.compile.finish import compile_finish
from headrace.compile.plan import MERGED, WINDOW, ViewPlan
from headrace.core.time import MILLISECOND
from headrace.serving.answer import Windows
from headrace.serving.engine import run
from headrace.serving.merged_rows import nothing

KNOWN_MAX = 1_000
_KNOWN: dict[str, Windows] = {}  # it follows from the plan alone, and every read asks for it


def windows_of(plan: ViewPlan) -> Windows | None:
    """None for a view without windows that begin at a fixed pace, such as one of sessions."""
    slide = plan.windowed[1].slide if plan.windowed else 0
    if not slide or not any(out.type == WINDOW for out in plan.outputs):
        return None
    if plan.fingerprint not in _KNOWN:
        if len(_KNOWN) >= KNOWN_MAX:
            _KNOWN.clear()
        _KNOWN[plan.fingerprint] = Windows(slide / MILLISECOND, _empty(plan))
    return _KNOWN[plan.fingerprint]


def _empty(plan: ViewPlan) -> dict[str, float | int]:
    outputs = tuple(out for out in plan.outputs if out.key is None)
    if plan.having or plan.limit is not None or not outputs:
        return {}
    values = msgspec.structs.replace(plan, outputs=outputs, order=())
    (row,) = run(compile_finish(values, MERGED).sql, {MERGED: nothing(plan)}).to_pylist()
    return {name: value for name, value in row.items() if type(value) in (int, float)}
