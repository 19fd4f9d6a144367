"""The rows in which one event counts: the view's own definition, over that event alone.

The keys that the second engine computes for one event are the same as among all others, because in
a traceable view each event counts by itself. tests/audit/test_counted.py compares it with the
events behind each row.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from headrace.audit.events import name_events
from headrace.audit.limits import within_time
from headrace.audit.oracle import connect, live_view
from headrace.audit.view_row import ViewRow, check_traceable, key_outputs, positions_by_key
from headrace.compile.plan import Plan, StreamPlan, ViewPlan
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


def counted_rows(event: OneEvent, store: DatabaseStore, view: str) -> list[ViewRow]:
    """The rows of a view in which the event counts, as they are now; an error says why not."""
    with store.read() as db:
        live = live_view(db, view)
    check_traceable(live)
    return [_cell(store, live, stored) for stored in _keys(event, live)]


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
            asked = f"SELECT DISTINCT {keys} FROM ({sql}) AS c({names}) LIMIT {ROWS_MAX}"
            rows = connection.execute(asked).fetchall()
    except duckdb.Error as error:
        raise Unsupported(
            f"DuckDB cannot follow the definition of view '{view.name}'",
            detail=str(error).splitlines()[0],
        ) from error
    finally:
        connection.close()
    return sorted((tuple(row) if view.keys else () for row in rows), key=repr)


def _cell(store: DatabaseStore, view: ViewPlan, stored: tuple[Any, ...]) -> ViewRow:
    """The row with these keys."""
    conditions = [
        Condition(output, "IS", value)
        for output, value in zip(key_outputs(view), stored, strict=True)
    ]
    whole = msgspec.structs.replace(view, order=(), limit=None)
    with store.read() as db:
        rows = read_view_rows(db, whole, conditions)
    return ViewRow(view, stored, rows[0] if rows else None)
