"""How late the events of each window were, and which generation has absorbed them.

Law: lateness is computed by the same merge as the view itself, from partials in the same rows. So
it covers the same events, in every kind of window, and for every window
    late = absorbed + waiting,
where `absorbed` are in a generation and `waiting` only in speed. HAVING and LIMIT are ignored.
tests/serving/test_late.py checks this over epochs and generations.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from headrace.compile.plan import (
    ABSORBED,
    ABSORBED_BY,
    EVENTS,
    LATE,
    WINDOW,
    CallPlan,
    KeyPlan,
    OutputPlan,
    ViewPlan,
)
from headrace.core.errors import BadRequest
from headrace.serving.answer import Answer, AsOf


class LateWindow(msgspec.Struct, frozen=True):
    """One window of one key: how many of its events were late, and by how much."""

    key: dict[str, Any]  # all keys of the view, including the window
    on_time: int
    late: int
    late_by_max_ms: float | None  # None: no event was late
    late_by_mean_ms: float | None
    absorbed: int  # late events that a generation contains
    absorbed_by: int | None  # the newest generation that absorbed any of them
    waiting: int  # late events that only speed contains so far


class LateAnswer(msgspec.Struct, frozen=True):
    """The lateness of a view's windows, newest window first."""

    view: str
    windows: list[LateWindow]
    as_of: dict[str, AsOf]
    truncated: bool = False
    total: int | None = None  # how many windows match


_TYPES = {"late_by_max_ms": "DOUBLE", "late_by_mean_ms": "DOUBLE"}
_NUMBERS = {
    "on_time": f"{EVENTS} - {LATE}",
    "late": LATE,
    "late_by_max_ms": f"{LATE}_max / 1000.0",
    "late_by_mean_ms": f"{LATE}_sum / 1000.0 / nullif({LATE}, 0)",
    "absorbed": f"coalesce({ABSORBED}, 0)",
    "absorbed_by": ABSORBED_BY,
    "waiting": f"{LATE} - coalesce({ABSORBED}, 0)",
}
# No key can have this prefix, so numbers are distinguished from keys.
_MARK = "late."


def late_plan(plan: ViewPlan) -> ViewPlan:
    """The plan of the view with its keys and the numbers of lateness as outputs."""
    if not plan.has_lateness:
        raise BadRequest(
            f"view '{plan.name}' does not record lateness",
            detail=_reason(plan),
            hint="lateness requires a view with a window over a stream with a WATERMARK.",
        )
    calls = [
        CallPlan(f"c{n}", name, _TYPES.get(name, "BIGINT"), finish)
        for n, (name, finish) in enumerate(_NUMBERS.items())
    ]
    outputs = [_key_output(plan, key) for key in plan.keys]
    outputs += [OutputPlan(_MARK + call.name, call.type, call.column) for call in calls]
    return msgspec.structs.replace(
        plan, calls=tuple(calls), outputs=tuple(outputs), having=None, order=(), limit=None
    )


def newest_first(plan: ViewPlan) -> str:
    """The order of windows: newest first."""
    return ",".join(f"-{output.name}" for output in plan.outputs if output.type == WINDOW)


def _reason(plan: ViewPlan) -> str:
    if not plan.kept:
        return f"it reads other views: {', '.join(plan.reads)}."
    windowed = any(key.type == WINDOW for key in plan.keys)
    return f"stream '{plan.stream}' has no watermark." if windowed else "it has no time window."


def _key_output(plan: ViewPlan, key: KeyPlan) -> OutputPlan:
    """The output that shows a key, also where the view itself does not."""
    shown = next((output for output in plan.outputs if output.key == key.column), None)
    return shown or OutputPlan(key.name, key.type, key.column, key=key.column)


def late_answer(view: str, answer: Answer) -> LateAnswer:
    """The answer of `late_plan`, with keys and numbers separated."""
    windows = list(_windows(answer.rows))
    return LateAnswer(view, windows, answer.as_of, answer.truncated, answer.total)


def _windows(rows: Iterable[dict[str, Any]]) -> Iterable[LateWindow]:
    for row in rows:
        numbers = {name: row.pop(_MARK + name) for name in _NUMBERS}
        yield LateWindow(key=row, **numbers)
