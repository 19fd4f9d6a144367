"""Which views the vectorised kernel computes: their partials as one DuckDB query over the events.

A view takes the kernel if every function and operator of its SQL is certified to mean in DuckDB
what it means in Spark (headrace/certified); otherwise Spark SQL computes it, and the plan says why.
The choice changes no answer, so it is not part of what a view is recomputed for.
tests/laws/test_kernel.py compares the partials of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from headrace.certified.lifts import LIFTS
from headrace.certified.relation import AnswerColumn, ReadRelation
from headrace.certified.select import compile_query
from headrace.certified.typed import quoted
from headrace.compile.plan import KernelPlan, StreamPlan, ViewPlan
from headrace.core.errors import HeadraceError
from headrace.core.event import ARRIVED_AT, LATE, LATENESS, OFFSET, PARTITION
from headrace.core.origin import Origin
from headrace.core.rule import hidden
from headrace.core.schema import Schema
from headrace.define.dialect import parse_read

_HIDDEN = {
    PARTITION: "INT", OFFSET: "BIGINT", ARRIVED_AT: "TIMESTAMP", LATE: "BOOLEAN",
    LATENESS: "BIGINT",
}  # fmt: skip
_FLOATS = ("FLOAT", "DOUBLE")
# Microseconds of all times that a decoder accepts, from year 1 to 9999, and many more.
_TIMES = (-(2**60), 2**60)


def kernel_of(
    view: ViewPlan, streams: Mapping[str, StreamPlan], tables: Mapping[str, Schema]
) -> KernelPlan:
    """The kernel of a view that is kept; without SQL if Spark computes it."""
    if refused := _refused(view, streams):
        return KernelPlan(refused=refused)
    relations = {
        view.stream.lower(): stream_relation(streams[view.stream]),
        **{name.lower(): _relation(name, tables[name]) for name in view.tables},
    }
    texts = {"": view.partial_sql} | {p.columns[0]: view.values_sql(p) for p in view.counted}
    try:
        queries = {name: parse_read(text, Origin(view.name, 1)) for name, text in texts.items()}
        compiled = {
            name: compile_query(query, relations.get, functions=LIFTS).sql
            for name, query in queries.items()
        }
    except HeadraceError as error:
        return KernelPlan(refused=error.message.replace("available over views", "certified"))
    # Compiled queries have every column by its quoted name, also where the definition says *.
    written = " ".join(compiled.values()).lower()
    events = relations[view.stream.lower()].columns
    columns = tuple(c.name for c in events if quoted(c.name).lower() in written)
    return KernelPlan(compiled.pop(""), values=tuple(compiled.items()), columns=columns)


def _refused(view: ViewPlan, streams: Mapping[str, StreamPlan]) -> str:
    if view.carry:
        return "it takes the events of each key in order"
    if view.stream not in streams:
        return "it joins streams"
    if any(map(hidden, view.tables)):
        return "it is joined with constants of watches, which change while it runs"
    # Of 0.0 and -0.0, which are one key, DuckDB gives the one that came first, and Spark 0.0.
    if key := next((key for key in view.keys if key.type in _FLOATS), None):
        return f"its key '{key.name}' is {key.type}"
    return ""


def stream_relation(stream: StreamPlan) -> ReadRelation:
    """A stream's events, as a task has decoded them."""
    relation = _relation(stream.name, stream.schema.stored)
    hidden = (AnswerColumn(name, type) for name, type in _HIDDEN.items())
    columns = (
        replace(column, bounds=_TIMES) if column.type == "TIMESTAMP" else column
        for column in (*relation.columns, *hidden)
    )
    return ReadRelation(relation.sql, tuple(columns))


def _relation(name: str, schema: Schema) -> ReadRelation:
    """The columns whose values DuckDB has as they are: no lists, objects and VARIANTs."""
    columns = tuple(
        AnswerColumn(column.name, column.type.spark)
        for column in schema.columns
        if not column.type.nested and column.type.name != "VARIANT"
    )
    return ReadRelation(exp.to_identifier(name, quoted=True).sql("duckdb"), columns)
