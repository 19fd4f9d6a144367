"""Computed columns: `total DECIMAL(18,2) GENERATED ALWAYS AS (price * qty)`.

It is stored neither in the log nor in the master. Its value is CAST(expression AS type) over the
stored columns of the same event. Like a derived stream, it is inlined into the queries that name
it: so a version of a view keeps the expression that it was built with, its fingerprint changes with
the expression, and a query that names no computed column is unaffected. A query with a star names
all. tests/transcripts/computed_*.yaml define the semantics, tests/plans/error_*computed_*.sql what
is refused.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlglot import exp

from headrace.compile.analyser import Analyser
from headrace.compile.calls import has_aggregate
from headrace.compile.determinism import refuse_relative_times
from headrace.core.errors import BadDefinition, HeadraceError, Unsupported
from headrace.core.event import ARRIVED_AT, HIDDEN, OFFSET, PARTITION, RAW
from headrace.core.origin import Origin
from headrace.core.schema import Column, ComputedExpression, Schema
from headrace.define.definitions import StreamDefinition
from headrace.define.dialect import parse_expression, sql_of

HIDDEN_DDL = (
    "`_partition` INT, `_offset` BIGINT, `_arrived_at` TIMESTAMP, `_late` BOOLEAN, "
    "`_lateness` BIGINT"
)
_IN_REACH = (RAW, ARRIVED_AT, PARTITION, OFFSET)
_AGGREGATES = ("MISSING_GROUP_BY", "MISSING_AGGREGATION", "UNSUPPORTED_EXPR_FOR_OPERATOR")


@dataclass(frozen=True, slots=True)
class NamedColumns:
    """The computed columns of a stream that a query names, and whether it names `_raw`."""

    schema: Schema
    computed: tuple[Column, ...]
    names_raw: bool

    @property
    def raw(self) -> bool:
        """Whether `_raw` is read, also by a computed column."""
        said = [c.generated for c in self.computed if c.generated]
        return self.names_raw or any(RAW in names_in(parse_expression(g)) for g in said)

    @property
    def items(self) -> tuple[str, ...]:
        """SQL of the stored columns, of these, and of the hidden columns."""
        columns = self.schema.columns
        shown = (c for c in columns if c.generated is None or c in self.computed)
        return (*map(_item, shown), *HIDDEN, *([RAW] if self.names_raw else []))


def named_columns(
    stream: StreamDefinition, select: exp.Select, words: Collection[str]
) -> NamedColumns:
    """The computed columns that a query with these words names. A star names all of them, but not
    `_raw`.
    """
    star = any(not isinstance(node.parent, exp.Count) for node in select.find_all(exp.Star))
    computed = (c for c in stream.schema.computed if star or c.name.lower() in words)
    return NamedColumns(stream.schema, tuple(computed), RAW in words)


def _item(column: Column) -> str:
    if column.generated is None:
        return f"`{column.name}`"
    return f"{_value(column.generated, column)} AS `{column.name}`"


def _value(said: ComputedExpression, column: Column) -> str:
    return f"CAST({sql_of(parse_expression(said))} AS {column.type.spark})"


# Errors


def check_computed(stream: StreamDefinition) -> None:
    """Refuse computed columns that are wrong, as far as this is known without Spark."""
    for column in stream.schema.computed:
        assert column.generated is not None
        _check(stream, column, parse_expression(column.generated), column.generated.origin)


def _check(stream: StreamDefinition, column: Column, said: exp.Expr, origin: Origin) -> None:
    what = f"column '{column.name}' of stream '{stream.name}'"
    refuse_relative_times(said, origin)
    for found, word in ((exp.Select, "a subquery"), (exp.Window, "OVER"), (exp.Star, "*")):
        if said.find(found):
            raise _not_in_column(what, word, origin)
    if has_aggregate(said):
        raise _not_in_column(what, "an aggregate", origin)
    computed = {other.name.lower(): other.name for other in stream.schema.computed}
    for name in names_in(said):
        if name in computed:
            raise BadDefinition(
                f"{what} refers to '{computed[name]}', which is also a computed column",
                hint="repeat its expression; a computed column can refer only to stored columns.",
                origin=origin,
            )
        if name.startswith("_") and name not in _IN_REACH:
            raise BadDefinition(
                f"{what} refers to the hidden column '{name}'",
                hint=f"it can refer only to the hidden columns {', '.join(_IN_REACH)}.",
                origin=origin,
            )
        if name == RAW and stream.format != "json":
            raise no_raw(stream.name, origin)


def names_in(said: exp.Expr) -> set[str]:
    """The columns that an expression names, in lower case, without struct fields."""
    return {column.parts[0].name.lower() for column in said.find_all(exp.Column)}


def _not_in_column(what: str, word: str, origin: Origin) -> Unsupported:
    return Unsupported(
        f"{what} contains {word}, but a computed column is computed from a single event",
        hint="aggregate and join in a CREATE VIEW or a CREATE STREAM … AS that reads the stream.",
        origin=origin,
    )


def no_raw(stream: str, origin: Origin) -> Unsupported:
    return Unsupported(
        f"{RAW} is not available in stream '{stream}': its events are CSV, not JSON",
        hint="declare the fields as columns.",
        origin=origin,
    )


def analyse_stream(stream: StreamDefinition, analyser: Analyser, *, raw: bool) -> None:
    """Register a stream with Spark's analyser, which checks its computed columns. It has `_raw`
    only if a query reads it, so that error messages do not suggest it.
    """
    schema, also = stream.schema, f", {HIDDEN_DDL}" + (f", `{RAW}` VARIANT" if raw else "")
    if schema.computed:
        analyser.relation(stream.name, schema.stored.spark_ddl + also)
    for column in schema.computed:
        try:
            _analyse(stream, column, analyser)
        except HeadraceError as error:
            raise _with_column(error, stream, column) from error
    analyser.relation(stream.name, schema.spark_ddl + also)


def _analyse(stream: StreamDefinition, column: Column, analyser: Analyser) -> None:
    assert column.generated is not None
    said = column.generated
    # Next to a column that is not aggregated, Spark refuses aggregates.
    analyser.analyse(f"SELECT {said.sql}\n, {OFFSET} FROM {stream.name}", said.origin)
    analyser.analyse(f"SELECT {_value(said, column)} FROM {stream.name}", said.origin)


def _with_column(error: HeadraceError, stream: StreamDefinition, column: Column) -> HeadraceError:
    """The error with the name of its column and stream."""
    what, origin = f"column '{column.name}' of stream '{stream.name}'", error.origin
    if (error.detail or "").startswith(_AGGREGATES):
        assert column.generated is not None
        return _not_in_column(what, "an aggregate", column.generated.origin)
    message = f"{what}: {error.message}"
    return type(error)(message, detail=error.detail, hint=error.hint, origin=origin)
