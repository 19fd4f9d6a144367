"""What a window says that no event came for.

A window without events has no row. SQL says what its values would be: a count is 0, and a sum, an
average or a maximum is NULL. Each is the output's own finish over partials that are NULL, which is
the zero of every merge. HAVING and LIMIT leave out rows that have events, so there nothing is
known.
tests/serving/test_empty.py checks it.
"""

from __future__ import annotations

import sqlite3

from headrace.compile.plan import WINDOW, ViewPlan
from headrace.core.time import MILLISECOND
from headrace.serving.answer import Windows
from headrace.serving.finish import quoted, store_sql


def windows_of(db: sqlite3.Connection, plan: ViewPlan) -> Windows | None:
    """None for a view without windows that begin at a fixed pace, such as one of sessions."""
    if plan.windowed is None or not any(out.type == WINDOW for out in plan.outputs):
        return None
    window = plan.windowed[1]
    if window.kind != "sliding":
        return None
    return Windows(window.slide / MILLISECOND, _empty(db, plan))


def _empty(db: sqlite3.Connection, plan: ViewPlan) -> dict[str, float | int]:
    outputs = [out for out in plan.outputs if out.key is None]
    if plan.having or plan.limit is not None or not outputs:
        return {}
    columns = [key.column for key in plan.keys]
    columns += [column for partial in plan.partials for column in partial.columns]
    items = ", ".join(f"{store_sql(out.finish)} AS {quoted(out.name)}" for out in outputs)
    nothing = ", ".join(f"NULL AS {column}" for column in columns)
    row = db.execute(f"SELECT {items} FROM (SELECT {nothing})").fetchone()
    found = {out.name: value for out, value in zip(outputs, row, strict=True)}
    return {name: value for name, value in found.items() if isinstance(value, int | float)}
