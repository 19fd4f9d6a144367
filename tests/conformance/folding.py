"""The engine under the cases: the compiler's plan, Spark's columns, and the fold that Spark's tasks
run, here in this process, so that a case can be cut in many ways in little time.

tests/transcripts runs the same fold within Spark's tasks, epochs and builds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from conformance.cases import Case
from headrace.carry.match import match
from headrace.compile.carry import CarriedStream
from headrace.compile.computed import HIDDEN_DDL
from headrace.compile.match_recognize import match_stream
from headrace.compile.resolve import ResolvedQuery
from headrace.core.event import CUT, DATED, DISORDERED, HIDDEN, KEY, OFFSET, SEQ, STATE, TIME, TIMER
from headrace.core.origin import Origin
from headrace.core.time import SECOND, iso
from headrace.define.definitions import QueryDefinition
from headrace.define.dialect import parse_query, sql_of
from headrace.define.statements import read_statements
from headrace.testing.short_forms import ORIGIN_US

DDL = f"k STRING, t TIMESTAMP, v STRING, x BIGINT, {HIDDEN_DDL}"
Answer = list[list[Any]]
Rows = Sequence[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Part:
    """Some rows of a case, by their numbers, and the watermark after them, in seconds."""

    numbers: Sequence[int]
    mark: float | None = None


class Folding:
    """One case, compiled, with its rows as Spark gives them to the fold."""

    def __init__(self, spark: Any, analyser: Any, case: Case, rows: Rows, *, closed: bool) -> None:
        from pyspark.sql.pandas.types import to_arrow_schema
        from pyspark.sql.types import StructType

        self.spark, self.closed = spark, closed
        self.carried = _compiled(analyser, case, closed)
        events = [_event(number, row) for number, row in enumerate(rows)]
        schema = to_arrow_schema(StructType.fromDDL(DDL), timezone="UTC")
        by_column = zip(*events, strict=True) if events else [()] * len(schema)
        columns = [
            pa.array(column, field.type) for column, field in zip(by_column, schema, strict=True)
        ]
        spark.createDataFrame(pa.table(columns, schema=schema)).createOrReplaceTempView("s")
        found = spark.sql(self.carried.plan.sql).toArrow()
        empty = {CUT: pa.array([0] * len(found), pa.int32()), STATE: pa.nulls(len(found), "binary")}
        self.events = pa.table(
            {**dict(zip(found.column_names, found.columns, strict=True)), **empty}
        )
        made = ", ".join(f"`{name}` {type}" for name, type in self.carried.plan.made or ())
        ends = f"{KEY} STRING, {TIME} BIGINT, {SEQ} BIGINT, {STATE} BINARY, {CUT} INT"
        ddl = f"{HIDDEN_DDL}, {ends}, {made}, {TIMER} BIGINT, {DISORDERED} BOOLEAN"
        self.schema = to_arrow_schema(StructType.fromDDL(ddl.replace(", ,", ",")), timezone="UTC")

    def rows(self, parts: Sequence[Part]) -> pa.Table:
        """What comes out of the parts, one after the other, each from the states before it."""
        states, rows, since_us = self.events.slice(0, 0), list[pa.Table](), None
        for part in parts:
            mark_us = None if part.mark is None else ORIGIN_US + round(part.mark * SECOND)
            made = self._folded(states, part.numbers, mark_us, since_us)
            assert made.equals(self._folded(states, part.numbers, mark_us, since_us))
            ends = made.filter(pc.is_valid(made[STATE]))
            assert not any(ends[DISORDERED].to_pylist())
            states = _after(states, ends.select([KEY, TIME, SEQ, STATE]))
            rows.append(made.filter(pc.is_null(made[STATE])))
            since_us = mark_us
        return pa.concat_tables(rows)

    def _folded(
        self, states: pa.Table, numbers: Sequence[int], mark_us: int | None, since_us: int | None
    ) -> pa.Table:
        wanted = pc.is_in(self.events[OFFSET], pa.array(list(numbers), pa.int64()))
        both = pa.concat_tables([states, self.events.filter(wanted)], promote_options="default")
        both = both.append_column("event", pc.is_null(both[STATE]))
        keys = [(KEY, "ascending"), ("event", "ascending"), (TIME, "ascending"), (SEQ, "ascending")]
        batches = both.sort_by(keys).combine_chunks().to_batches()
        plan = self.carried.plan.match
        assert plan is not None
        marks = [(0, mark_us)]
        made = match(batches, plan, marks, since_us, self.schema, ended=self.closed)
        return pa.Table.from_batches(made, self.schema)

    def answer(self, rows: pa.Table) -> Answer:
        """The rows as the case's SELECT gives them."""
        name, select = self.carried.plan.name, self.carried.select
        if not len(rows):
            return []
        self.spark.createDataFrame(rows).createOrReplaceTempView(name)
        found = self.spark.sql(sql_of(select)).drop(*HIDDEN, CUT, DATED).collect()
        return [[_shown(value) for value in row] for row in found]


def _compiled(analyser: Any, case: Case, closed: bool) -> CarriedStream:
    [definition] = read_statements(f"CREATE STREAM m AS {case.query}", "case")
    assert isinstance(definition, QueryDefinition)
    source = parse_query(definition.query, Origin("case", 1))
    resolved = ResolvedQuery(definition, source, "s", "s", (), ())  # type: ignore[arg-type]
    name, analyse = "_carried_m", analyser.analyse
    made = match_stream(resolved, resolved.select, "t", name, analyse, closed=closed)
    analyser.relation(name, made.ddl)
    analyse(sql_of(made.select), Origin("case", 1))
    return made


def _event(number: int, row: tuple[Any, ...]) -> tuple[Any, ...]:
    key, seconds, letter, x = row
    us = None if seconds is None else ORIGIN_US + round(seconds * SECOND)
    time = None if us is None else datetime.fromtimestamp(us / SECOND, UTC)
    return (key, time, letter, x, 0, number, datetime(2026, 1, 1, tzinfo=UTC), False, 0)


def _after(states: pa.Table, ends: pa.Table) -> pa.Table:
    """The states with those replaced that have new ones; nothing is kept of an empty one."""
    old = states.filter(pc.invert(pc.is_in(states[KEY], ends[KEY].combine_chunks())))
    kept = ends.filter(pc.not_equal(pc.binary_length(ends[STATE]), 0))
    return pa.concat_tables([old, kept], promote_options="default")


def _shown(value: Any) -> Any:
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        return iso(round(moment.timestamp() * SECOND))
    return [_shown(each) for each in value] if isinstance(value, list) else value
