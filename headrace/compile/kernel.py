"""Which views the vectorised kernel computes: their partials as one DuckDB query over the events.

A view takes the kernel if every function and operator of its SQL is certified to mean in DuckDB
what it means in Spark (headrace/certified); otherwise Spark SQL computes it, and the plan says why.
A carried view has two queries: one makes the rows that its fold takes, the other the partials of
the rows that the fold gives. The choice changes no answer, so it is not part of what a view is
recomputed for. tests/laws/test_kernel.py compares the partials of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from headrace.certified.fold_key import FOLD_KEY, FOLDS
from headrace.certified.relation import AnswerColumn, ReadRelation
from headrace.certified.select import CompiledQuery, compile_query
from headrace.certified.typed import quoted
from headrace.compile.plan import (
    CarryPlan,
    FoldInputPlan,
    KernelPlan,
    MatchPlan,
    StreamPlan,
    ViewPlan,
)
from headrace.core.errors import HeadraceError
from headrace.core.event import (
    ARRIVED_AT,
    CUT,
    HIDDEN,
    KEY,
    LATE,
    LATENESS,
    OFFSET,
    PARTITION,
    TIME,
)
from headrace.core.origin import Origin
from headrace.core.pattern import MatchAggregate, Threshold, Value
from headrace.core.rule import hidden
from headrace.core.schema import Schema, Type
from headrace.core.time import FIRST, LAST
from headrace.define.dialect import parse_read

_HIDDEN = {
    PARTITION: "INT", OFFSET: "BIGINT", ARRIVED_AT: "TIMESTAMP", LATE: "BOOLEAN",
    LATENESS: "BIGINT",
}  # fmt: skip
_FLOATS = ("FLOAT", "DOUBLE")
Relations = Mapping[str, ReadRelation]
TypedColumns = tuple[AnswerColumn, ...]


def kernel_of(
    view: ViewPlan, streams: Mapping[str, StreamPlan], tables: Mapping[str, Schema]
) -> KernelPlan:
    """The kernel of a view that is kept; without SQL if Spark computes it."""
    if refused := _refused(view, streams):
        return KernelPlan(refused=refused)
    events = stream_relation(streams[view.stream])
    relations = {
        view.stream.lower(): events,
        **{name.lower(): _relation(name, tables[name]) for name in view.tables},
    }
    try:
        if view.carry is None:
            sql, values = _partials(view, relations)
            return KernelPlan(
                sql, values=values, columns=_read(events, sql, *dict(values).values())
            )
        rows = _fold_input(view, view.carry, relations)
        starts = _starts(view, view.carry, rows.columns)
        sql, values = _partials(view, _folded(view.carry, rows.columns))
    except HeadraceError as error:
        return KernelPlan(refused=error.message.replace("available over views", "certified"))
    fold = FoldInputPlan(rows.sql, tuple((c.name, c.type) for c in rows.columns), starts)
    return KernelPlan(sql, fold=fold, values=values, columns=_read(events, rows.sql))


def _read(events: ReadRelation, *queries: str) -> tuple[str, ...]:
    """The columns of the stream that compiled queries read. These have every column by its quoted
    name, also where the definition says *.
    """
    written = " ".join(queries).lower()
    return tuple(c.name for c in events.columns if quoted(c.name).lower() in written)


def _partials(view: ViewPlan, relations: Relations) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The queries of the partials, and of the values behind each exact distinct count."""
    values = [
        (partial.columns[0], _compiled(view, view.values_sql(partial), relations).sql)
        for partial in view.counted
    ]
    return _compiled(view, view.partial_sql, relations).sql, tuple(values)


def _compiled(view: ViewPlan, sql: str | exp.Query, relations: Relations) -> CompiledQuery:
    query = parse_read(sql, Origin(view.name, 1)) if isinstance(sql, str) else sql
    return compile_query(query, relations.get, functions=FOLDS)


def _refused(view: ViewPlan, streams: Mapping[str, StreamPlan]) -> str:
    if view.stream not in streams:
        return "it joins streams"
    if any(map(hidden, view.tables)):
        return "it is joined with constants of watches, which change while it runs"
    # Of 0.0 and -0.0, which are one key, DuckDB gives the one that came first, and Spark 0.0.
    if key := next((key for key in view.keys if key.type in _FLOATS), None):
        return f"its key '{key.name}' is {key.type}"
    return ""


def _fold_input(view: ViewPlan, carry: CarryPlan, relations: Relations) -> CompiledQuery:
    query = parse_read(carry.sql, Origin(view.name, 1))
    for item in query.find_all(exp.Alias):
        if item.alias == KEY:
            item.set("this", _key(item.this))
    return _compiled(view, query, relations)


def _key(written: exp.Expr) -> exp.Expr:
    """The text of a key, for which Spark SQL is given to_json(struct(…), …)."""
    row = written.expressions[0]
    names = [
        part.name if isinstance(part, exp.Column) else f"col{number}"
        for number, part in enumerate(row.expressions, 1)
    ]
    pairs = zip(map(exp.Literal.string, names), row.expressions, strict=True)
    return exp.Anonymous(this=FOLD_KEY, expressions=[each for pair in pairs for each in pair])


def _starts(view: ViewPlan, carry: CarryPlan, given: TypedColumns) -> str:
    """The keys of events with which a match may begin; empty if no event may be left out."""
    if carry.match is None or carry.match.starts is None:
        return ""
    keys = f"SELECT {KEY} FROM {carry.name} WHERE {carry.match.starts}"
    return _compiled(view, keys, _named(carry.name, given)).sql


def _folded(carry: CarryPlan, given: TypedColumns) -> Relations:
    """The rows that a fold gives, as `headrace.compile.carry.relation_ddl` has them."""
    bounds = {column.name: column.bounds for column in given} | _bounds(carry.match, given)
    passed = [c for c in given if carry.made is None or c.name in (*HIDDEN, TIME)]
    made = carry.made or [(step.output, step.type) for step in carry.steps]
    added = [AnswerColumn(name, type, bounds=bounds.get(name)) for name, type in made]
    return _named(carry.name, (*passed, *added, AnswerColumn(CUT, "INT")))


def _bounds(match: MatchPlan | None, given: TypedColumns) -> dict[str, tuple[int, int] | None]:
    """The bounds of measures that are a value of a row, or the first or last time of some rows."""
    if match is None:
        return {}
    if isinstance(match.pattern, Threshold):
        return dict.fromkeys((name for name, _ in match.measured), (FIRST, LAST))
    known = {column.name: column.bounds for column in given}
    return {
        name: known.get(leaf.column or "")
        for name, leaf in match.pattern.measures
        if isinstance(leaf, Value)
        or (isinstance(leaf, MatchAggregate) and leaf.function in ("min", "max"))
    }


def _named(name: str, columns: TypedColumns) -> Relations:
    known = tuple(c for c in columns if not _other(Type.parse(c.type)))
    return {name.lower(): ReadRelation(quoted(name), known)}


def stream_relation(stream: StreamPlan) -> ReadRelation:
    """A stream's events, as a task has decoded them."""
    relation = _relation(stream.name, stream.schema.stored)
    hidden = (AnswerColumn(name, type) for name, type in _HIDDEN.items())
    columns = (
        replace(column, bounds=(FIRST, LAST)) if column.type == "TIMESTAMP" else column
        for column in (*relation.columns, *hidden)
    )
    return ReadRelation(relation.sql, tuple(columns))


def _relation(name: str, schema: Schema) -> ReadRelation:
    columns = tuple(
        AnswerColumn(column.name, column.type.spark)
        for column in schema.columns
        if not _other(column.type)
    )
    return ReadRelation(quoted(name), columns)


def _other(type: Type) -> bool:
    """Whether DuckDB has its values in another form: lists, objects and VARIANTs."""
    return type.nested or type.name == "VARIANT"
