"""The order of a view's rows in a request: "-minute,-hits" is the newest minute first, and within
it the largest hits.

All rows are compared, so the first n are the first n of all, and their number is known without
another read. tests/serving/test_order.py checks it.
"""

from __future__ import annotations

from headrace.certified.typed import quoted
from headrace.compile.plan import OutputPlan, ViewPlan
from headrace.core.errors import BadRequest, did_you_mean
from headrace.core.schema import nested


def order_by(plan: ViewPlan, order: str) -> str:
    """ORDER BY for the reading engine; windows are compared by their start."""
    return "ORDER BY " + ", ".join(_item(plan, name) for name in order.split(","))


def _item(plan: ViewPlan, text: str) -> str:
    output = _output(plan, text.removeprefix("-"))
    way = "DESC" if text.startswith("-") else "ASC"
    return f"{quoted(output.name)} {way} NULLS LAST"


def _output(plan: ViewPlan, name: str) -> OutputPlan:
    output = plan.output(name)
    if output is not None and not nested(output.type):
        return output
    names = [out.name for out in plan.outputs if not nested(out.type)]
    raise BadRequest(
        f"view '{plan.name}' cannot be ordered by '{name[:40]}'",
        detail=f"available columns: {', '.join(names)}.",
        hint=did_you_mean(name, names),
    )
