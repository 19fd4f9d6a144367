"""The rows in which one event counts: the view's own definition, over that event alone.

The keys that the second engine computes for one event are the same as among all others, because in
a traceable view each event counts by itself. tests/audit/test_counted.py compares it with the
events behind each row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from headrace.audit.events import name_events
from headrace.audit.limits import within_time
from headrace.audit.oracle import connect, live_view
from headrace.audit.view_row import (
    ViewRow,
    check_traceable,
    key_outputs,
    positions_by_key,
    stored_keys,
)
from headrace.compile.plan import OutputPlan, Plan, StreamPlan, ViewPlan
from headrace.core.errors import Unsupported
from headrace.core.event import STATUS, EventStatus
from headrace.define.functions import FunctionDefinition
from headrace.serving.conditions import Condition
from headrace.serving.database_store import DatabaseStore
from headrace.serving.read import read_view_rows

ROWS_MAX = 100  # of one view; an event is in many windows where they slide in small steps


@dataclass(frozen=True, slots=True)
class OneEvent:
    """An event as a table of one row, with all that DuckDB needs to evaluate definitions on it."""

    plan: Plan
    stream: StreamPlan
    record: Any  # an Arrow table
    folder: Path
    functions: tuple[FunctionDefinition, ...]
    seconds_max: float


def counted_rows(event: OneEvent, store: DatabaseStore, view: str) -> tuple[list[ViewRow], int]:
    """The first rows of a view in which the event counts, as they are now, and how many there are;
    an error says why not.
    """
    with store.read() as db:
        live = live_view(db, view)
    check_traceable(live)
    keys = _keys(event, live)
    return [_row(store, ViewRow(live, stored, None)) for stored in keys[:ROWS_MAX]], len(keys)


def _keys(event: OneEvent, view: ViewPlan) -> list[tuple[Any, ...]]:
    """The keys of those rows, in storage form; of a window its start."""
    import duckdb

    sql, names = positions_by_key(view)
    keys = ", ".join(f"k{n}" for n, _ in enumerate(key_outputs(view))) or "1"
    connection = connect(event.plan, view, event.folder, event.functions)
    try:
        with within_time(connection, event.seconds_max):
            connection.register("_one", event.record)
            name_events(connection, event.stream, "_one", f"{STATUS} = {int(EventStatus.EVENT)}")
            asked = f"SELECT DISTINCT {keys} FROM ({sql}) AS c({names})"
            rows = connection.execute(asked).fetchall()
    except duckdb.Error as error:
        raise Unsupported(
            f"DuckDB cannot evaluate the definition of view '{view.name}'",
            detail=str(error).splitlines()[0],
        ) from error
    finally:
        connection.close()
    return sorted((tuple(row) if view.keys else () for row in rows), key=repr)


def _row(store: DatabaseStore, asked: ViewRow) -> ViewRow:
    """The row with these keys; doubles are compared as an audit compares them."""
    pairs = zip(asked.keys, asked.stored, strict=True)
    conditions = [condition for pair in pairs for condition in _conditions(*pair)]
    whole = msgspec.structs.replace(asked.view, order=(), limit=None)
    with store.read() as db:
        rows = read_view_rows(db, whole, conditions)
    found = next((tuple(row) for row in rows if asked.same_keys(row)), None)
    return ViewRow(asked.view, stored_keys(asked.view, found), found) if found else asked


def _conditions(output: OutputPlan, value: Any) -> list[Condition]:
    """The values that may be this one; of a double a range of values near it."""
    if not isinstance(value, float) or not math.isfinite(value):
        return [Condition(output, "IS", value)]
    margin = 1e-8 * abs(value) + 1e-11
    return [Condition(output, ">=", value - margin), Condition(output, "<=", value + margin)]
