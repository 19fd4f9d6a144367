"""A row under the glass: DuckDB with every record up to the answer's position, and which of them
are the row's.

What is said of the row comes from one transaction of the store: the row, the position, the history,
and what speed has passed over. Looking takes a stated time at most. tests/audit/test_why.py looks.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.audit.cell import Cell, find_cell, placed_sql
from headrace.audit.compare import compare
from headrace.audit.duck import oracle_sql
from headrace.audit.events import every, name_events, places, register_records
from headrace.audit.limits import too_long, within_time
from headrace.audit.oracle import connect
from headrace.compile.plan import Plan, StreamPlan
from headrace.core.errors import Unsupported
from headrace.core.event import OFFSET, PARTITION, STATUS, Status
from headrace.define.functions import FunctionDefinition
from headrace.define.layout import Layout
from headrace.serving.answer import AsOf, as_of
from headrace.serving.conditions import Keys
from headrace.serving.history import EpochRecord, GenerationRecord, read_epochs, read_generations
from headrace.serving.progress import read_stream
from headrace.serving.shed import shed_epochs
from headrace.serving.sqlite_store import SqliteStore
from headrace.serving.store import Shed, StreamState

# What is added to a stream's columns begins with '_', as no column of a user's does.
ROW = "_row"  # the records behind the row
PASSED = "_passed_over"  # where speed has passed over them, and no generation has absorbed them
EVER_PASSED = "_ever_passed"  # where speed has passed over them at all


@dataclass(frozen=True, slots=True)
class Asked:
    """A row, and all that the store knew of its stream at the same moment."""

    cell: Cell
    state: StreamState
    shed: tuple[Shed, ...]  # of all epochs that are kept
    epochs: tuple[EpochRecord, ...]
    generations: tuple[GenerationRecord, ...]
    as_of: dict[str, AsOf]


def ask(store: SqliteStore, name: str, keys: Keys, window: str | None) -> Asked:
    """Read the row with these keys, and its history."""
    with store.read() as db:
        cell = find_cell(db, name, keys, window)
        stream = cell.view.stream
        state = read_stream(db, stream)
        return Asked(
            cell,
            state,
            tuple(shed_epochs(db, stream)),
            tuple(read_epochs(db, stream)),
            tuple(read_generations(db, stream)),
            as_of([state], store.clock()),
        )


class Tracing:
    """A connection in which `every(stream)` and `ROW` are known."""

    def __init__(
        self, connection: Any, asked: Asked, stream: StreamPlan, seconds_max: float
    ) -> None:
        self.connection, self.asked, self.stream = connection, asked, stream
        self.seconds_max, self._deadline = seconds_max, time.monotonic() + seconds_max

    @property
    def every(self) -> str:
        return every(self.stream.name)

    def run(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement. One that takes too long is interrupted; none begins after the time."""
        if time.monotonic() >= self._deadline:
            raise too_long(self.seconds_max)
        return self.connection.execute(sql, list(values))

    def fetch(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        return list(self.run(sql, values).fetchall())

    def place(self, table: str, relaxed: str = "") -> None:
        """Make a table of all places that count in some row, and whether in this one."""
        sql = placed_sql(self.asked.cell, relaxed=relaxed)
        self.run(f"CREATE TEMP TABLE {table} AS {sql}", self.asked.cell.stored)

    def place_relaxed(self, table: str, relaxed: str) -> None:
        """The same without the definition's conditions, where it can be asked without them."""
        import duckdb

        try:
            self.place(table, relaxed)
        except duckdb.InterruptException:
            raise
        except duckdb.Error:
            # A condition may protect what stands beside it, such as a cast from bad values.
            self.run(f"CREATE TEMP TABLE {table} AS FROM _placed LIMIT 0")

    def row(self, condition: str) -> tuple[Any, ...] | None:
        """What the second engine makes of those records behind the row for which this holds."""
        name_events(self.connection, self.stream, ROW, condition)
        mark = self.stream.watermark
        rows = self.fetch(oracle_sql(self.asked.cell.view, mark[0] if mark else None))
        cell = self.asked.cell
        return next((tuple(row) for row in rows if cell.mine(row)), None)

    def agreement(self, events: int) -> tuple[bool, str]:
        """Whether exactly these events give the answer's row."""
        cell, made = self.asked.cell, self.row(f"NOT {PASSED}")
        answer = [cell.answer] if cell.answer else []
        found = compare(cell.view, answer, [made] if made else [])
        which = "this event gives" if events == 1 else f"these {events:,} events give"
        if found.differences:
            return False, f"{which} the answer's row: no: {found.examples[0]}"
        if cell.answer is None:
            return True, f"there is no such row, and {which} none: yes"
        return True, f"{which} the answer's row: yes"


@contextmanager
def tracing(
    asked: Asked,
    plan: Plan,
    layout: Layout,
    folder: Path,
    functions: Iterable[FunctionDefinition],
    seconds_max: float,
) -> Iterator[Tracing]:
    """DuckDB with the records of a row, for the time of a block."""
    import duckdb

    view, stream = asked.cell.view, plan.stream(asked.cell.view.stream)
    connection = connect(plan, view, folder, functions)
    try:
        with within_time(connection, seconds_max):
            traced = Tracing(connection, asked, stream, seconds_max)
            _register(traced, layout)
            yield traced
    except duckdb.Error as error:
        raise Unsupported(
            f"DuckDB cannot follow the definition of view '{view.name}'",
            detail=str(error).splitlines()[0],
            hint="something in it only Spark knows; ask for its events with `headrace query`.",
        ) from error
    finally:
        connection.close()


def _register(traced: Tracing, layout: Layout) -> None:
    connection, asked = traced.connection, traced.asked
    register_records(connection, traced.stream, asked.state.position, layout)
    name_events(connection, traced.stream, traced.every, f"{STATUS} = {int(Status.EVENT)}")
    connection.register("_passed", places(asked.shed))
    connection.register("_missing", places(_missing(asked)))
    traced.place("_placed")
    traced.run(
        f"CREATE TEMP TABLE {ROW} AS SELECT e.*, m.{OFFSET} IS NOT NULL AS {PASSED}, "
        f"s.{OFFSET} IS NOT NULL AS {EVER_PASSED} FROM {traced.every} e "
        f"JOIN _placed p ON p.here AND {_same('p')} "
        f"LEFT JOIN _missing m ON {_same('m')} LEFT JOIN _passed s ON {_same('s')}"
    )


def _missing(asked: Asked) -> list[Shed]:
    """What is passed over and not yet absorbed."""
    return [shed for shed in asked.shed if not shed.range.upper <= asked.state.boundary]


def _same(other: str) -> str:
    return f"e.{PARTITION} = {other}.{PARTITION} AND e.{OFFSET} = {other}.{OFFSET}"
