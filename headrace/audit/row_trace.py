"""Traces a row: DuckDB with every record up to the answer's position, and which of them belong to
the row.

The row, the position, the history and what speed has shed are read in one transaction of the store.
A trace has a timeout. tests/audit/test_why.py checks it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.audit.compare import compare
from headrace.audit.duck import oracle_sql
from headrace.audit.events import name_events, records_name, register_records, shed_positions
from headrace.audit.limits import search_timeout, within_time
from headrace.audit.oracle import connect
from headrace.audit.view_row import ViewRow, event_positions_sql, find_row
from headrace.compile.plan import Plan, StreamPlan
from headrace.core.errors import Unsupported
from headrace.core.event import OFFSET, PARTITION, STATUS, EventStatus
from headrace.define.functions import FunctionDefinition
from headrace.define.layout import Layout
from headrace.serving.answer import AsOf, as_of
from headrace.serving.conditions import Keys
from headrace.serving.database_store import DatabaseStore
from headrace.serving.history import EpochRecord, GenerationRecord, read_epochs, read_generations
from headrace.serving.progress import read_stream
from headrace.serving.shed_epochs import read_shed_epochs
from headrace.serving.store import ShedEpoch, StreamState

# What is added to a stream's columns begins with '_', as no column of a user's does.
ROW = "_row"  # the records behind the row
PASSED = "_passed_over"  # speed has shed them, and no generation has absorbed them
EVER_PASSED = "_ever_passed"  # speed has shed them at some time


@dataclass(frozen=True, slots=True)
class RowSnapshot:
    """A row and the state of its stream, from one transaction."""

    view_row: ViewRow
    state: StreamState
    shed: tuple[ShedEpoch, ...]  # of all epochs that are kept
    epochs: tuple[EpochRecord, ...]
    generations: tuple[GenerationRecord, ...]
    as_of: dict[str, AsOf]


def read_row(store: DatabaseStore, name: str, keys: Keys, window: str | None) -> RowSnapshot:
    """Read the row with these keys, and its history."""
    with store.read() as db:
        view_row = find_row(db, name, keys, window)
        stream = view_row.view.stream
        state = read_stream(db, stream)
        return RowSnapshot(
            view_row,
            state,
            tuple(read_shed_epochs(db, stream)),
            tuple(read_epochs(db, stream)),
            tuple(read_generations(db, stream)),
            as_of([state], store.clock()),
        )


class RowTrace:
    """A connection with `records_name(stream)` and `ROW`."""

    def __init__(
        self, connection: Any, snapshot: RowSnapshot, stream: StreamPlan, seconds_max: float
    ) -> None:
        self.connection, self.snapshot, self.stream = connection, snapshot, stream
        self.seconds_max, self._deadline = seconds_max, time.monotonic() + seconds_max

    @property
    def records(self) -> str:
        return records_name(self.stream.name)

    def run(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement. One that takes too long is interrupted; none begins after the time."""
        if time.monotonic() >= self._deadline:
            raise search_timeout(self.seconds_max)
        return self.connection.execute(sql, list(values))

    def fetch(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        return list(self.run(sql, values).fetchall())

    def mark_positions(self, table: str, relaxed: str = "") -> None:
        """Create a table of all positions that count in some row, and whether in this one."""
        sql = event_positions_sql(self.snapshot.view_row, relaxed=relaxed)
        self.run(f"CREATE TEMP TABLE {table} AS {sql}", self.snapshot.view_row.stored)

    def mark_positions_relaxed(self, table: str, relaxed: str) -> None:
        """The same without the definition's conditions, if the definition is valid without them."""
        import duckdb

        try:
            self.mark_positions(table, relaxed)
        except duckdb.InterruptException:
            raise
        except duckdb.Error:
            # A condition may protect what stands beside it, such as a cast from bad values.
            self.run(f"CREATE TEMP TABLE {table} AS FROM _placed LIMIT 0")

    def row(self, condition: str) -> tuple[Any, ...] | None:
        """The row that the second engine computes from its records for which this holds."""
        name_events(self.connection, self.stream, ROW, condition)
        mark = self.stream.watermark
        rows = self.fetch(oracle_sql(self.snapshot.view_row.view, mark[0] if mark else None))
        view_row = self.snapshot.view_row
        return next((tuple(row) for row in rows if view_row.same_keys(row)), None)

    def agreement(self, events: int) -> tuple[bool, str]:
        """Whether exactly these events produce the served row."""
        view_row, made = self.snapshot.view_row, self.row(f"NOT {PASSED}")
        answer = [view_row.answer] if view_row.answer else []
        found = compare(view_row.view, answer, [made] if made else [])
        which = "this event" if events == 1 else f"these {events:,} events"
        if found.differences:
            return False, f"recomputed from {which}, the row differs: {found.examples[0]}"
        if view_row.answer is None:
            return True, f"there is no such row, also when recomputed from {which}"
        return True, f"recomputed from {which}, the row is the same"


@contextmanager
def open_trace(
    snapshot: RowSnapshot,
    plan: Plan,
    layout: Layout,
    folder: Path,
    functions: Iterable[FunctionDefinition],
    seconds_max: float,
) -> Iterator[RowTrace]:
    """DuckDB with the records of a row, for the time of a block."""
    import duckdb

    view, stream = snapshot.view_row.view, plan.stream(snapshot.view_row.view.stream)
    connection = connect(plan, view, folder, functions)
    try:
        with within_time(connection, seconds_max):
            traced = RowTrace(connection, snapshot, stream, seconds_max)
            _register(traced, layout)
            yield traced
    except duckdb.Error as error:
        raise Unsupported(
            f"DuckDB cannot evaluate the definition of view '{view.name}'",
            detail=str(error).splitlines()[0],
            hint="only Spark supports a part of it; read its events with `headrace query`.",
        ) from error
    finally:
        connection.close()


def _register(traced: RowTrace, layout: Layout) -> None:
    connection, snapshot = traced.connection, traced.snapshot
    register_records(connection, traced.stream, snapshot.state.position, layout)
    name_events(connection, traced.stream, traced.records, f"{STATUS} = {int(EventStatus.EVENT)}")
    connection.register("_passed", shed_positions(snapshot.shed))
    connection.register("_missing", shed_positions(_missing(snapshot)))
    traced.mark_positions("_placed")
    traced.run(
        f"CREATE TEMP TABLE {ROW} AS SELECT e.*, m.{OFFSET} IS NOT NULL AS {PASSED}, "
        f"s.{OFFSET} IS NOT NULL AS {EVER_PASSED} FROM {traced.records} e "
        f"JOIN _placed p ON p.here AND {_same('p')} "
        f"LEFT JOIN _missing m ON {_same('m')} LEFT JOIN _passed s ON {_same('s')}"
    )


def _missing(snapshot: RowSnapshot) -> list[ShedEpoch]:
    """What was shed and not yet absorbed."""
    return [shed for shed in snapshot.shed if not shed.range.upper <= snapshot.state.boundary]


def _same(other: str) -> str:
    return f"e.{PARTITION} = {other}.{PARTITION} AND e.{OFFSET} = {other}.{OFFSET}"
