"""A view's definition in DuckDB's SQL, with each output in storage form.

Spark's `window` becomes a bucket of microseconds, ties of max_by are decided by the place in the
log, and estimates are asked for exactly.
tests/audit/test_oracle.py compares it with the reference interpreter.
"""

from __future__ import annotations

from sqlglot import exp

from headrace.audit.duck_aggregates import SEQ, in_duck
from headrace.compile.plan import OutputPlan, ViewPlan
from headrace.core.origin import Origin
from headrace.core.time import duration_us
from headrace.define.dialect import parse_query

_BIGINT = (
    "CASE WHEN {0} BETWEEN -9223372036854775808 AND 9223372036854775807 "
    "THEN CAST({0} AS BIGINT) END"
)


def oracle_sql(plan: ViewPlan, time: str | None = None) -> str:
    """SELECT of the view's outputs in storage form; ORDER BY and LIMIT are left to the
    comparison. `time` is the column of the stream's event time."""
    tree = parse_query(plan.definition, Origin("plan", 1))
    select = tree.copy()
    for part in ("order", "limit"):
        select.set(part, None)
    windows = [node for node in select.find_all(exp.Anonymous) if node.name.lower() == "window"]
    if windows:
        select.where(
            exp.Not(this=exp.Is(this=windows[0].expressions[0].copy(), expression=exp.null())),
            copy=False,
        )
    duck = select.transform(lambda node: in_duck(node, time) or _translated(node, windows))
    inner = [
        f"{item.unalias().sql(dialect='duckdb')} AS o{n}" for n, item in enumerate(duck.expressions)
    ]
    body = _with_items(duck, inner)
    items = [_storage_form(output, f"o{n}") for n, output in enumerate(plan.outputs)]
    return f"SELECT {', '.join(items)} FROM ({body})"


def _with_items(select: exp.Expr, items: list[str]) -> str:
    """The SELECT with other items; aliases that GROUP BY and HAVING speak of are written out
    first."""
    aliases = {i.alias.lower(): i.this for i in select.expressions if isinstance(i, exp.Alias)}
    expressions = [item.unalias() for item in select.expressions]
    if group := select.args.get("group"):
        group.set("expressions", [_meant(e, aliases, expressions) for e in group.expressions])
    if having := select.args.get("having"):
        having.set("this", having.this.transform(lambda n: _alias(n, aliases)))
    marker = "'_items_'"
    select.set("expressions", [exp.Literal.string("_items_")])
    return select.sql(dialect="duckdb").replace(marker, ", ".join(items), 1)


def _meant(node: exp.Expr, aliases: dict[str, exp.Expr], items: list[exp.Expr]) -> exp.Expr:
    if isinstance(node, exp.Literal) and not node.is_string:
        return items[int(node.name) - 1].copy()
    return _alias(node, aliases)


def _alias(node: exp.Expr, aliases: dict[str, exp.Expr]) -> exp.Expr:
    plain = isinstance(node, exp.Column) and not node.table and node.name.lower() in aliases
    found = aliases[node.name.lower()] if plain else None
    # An alias of its own column (url AS url) means the column.
    return (
        exp.paren(found.copy())
        if found is not None and found.name.lower() != node.name.lower()
        else node
    )


def _translated(node: exp.Expr, windows: list[exp.Anonymous]) -> exp.Expr:
    if node in windows or (isinstance(node, exp.Anonymous) and node.name.lower() == "window"):
        return _bucket(node)
    if isinstance(node, exp.Column) and node.table.lower() == "window" and windows:
        return _edge(windows[0], node.name.lower())
    if (
        isinstance(node, exp.Dot)
        and isinstance(node.this, exp.Anonymous)
        and node.this.name.lower() == "window"
    ):
        return _edge(node.this, node.expression.name.lower())
    if isinstance(node, exp.Filter) and isinstance(node.this, (exp.ArgMax, exp.ArgMin)):
        return _by(node.this, f" AND ({node.expression.this.sql(dialect='duckdb')})")
    if isinstance(node, (exp.ArgMax, exp.ArgMin)):
        return _by(node)
    if isinstance(node, exp.ApproxDistinct):
        return exp.Count(this=exp.Distinct(expressions=[node.this]))
    if isinstance(node, exp.Anonymous) and node.name.lower() in _SPARK_NAMES:
        return exp.Anonymous(this=_SPARK_NAMES[node.name.lower()], expressions=node.expressions)
    if isinstance(node, exp.Any):
        return exp.LogicalOr(this=node.this.unnest())
    return node


_SPARK_NAMES = {"every": "bool_and", "some": "bool_or", "std": "stddev_samp", "mean": "avg"}


def _bucket(node: exp.Expr) -> exp.Expr:
    size = duration_us(node.expressions[1].name)
    time = f"epoch_us({node.expressions[0].sql(dialect='duckdb')})"
    return exp.maybe_parse(
        f"make_timestamp({time} - (({time} % {size}) + {size}) % {size})", dialect="duckdb"
    )


def _edge(window: exp.Anonymous, name: str) -> exp.Expr:
    size = duration_us(window.expressions[1].name)
    start = _bucket(window)
    return (
        start
        if name == "start"
        else exp.maybe_parse(f"{start.sql('duckdb')} + to_microseconds({size})", dialect="duckdb")
    )


def _by(node: exp.ArgMax | exp.ArgMin, condition: str = "") -> exp.Expr:
    """The value of the event with the greatest or least order; the latest in the log among equals,
    and among the parts of one event the value itself decides.
    """
    value, order = node.this.sql(dialect="duckdb"), node.expression.sql(dialect="duckdb")
    pick, latest = ("last", "ASC") if isinstance(node, exp.ArgMax) else ("first", "DESC")
    ranked = f"ORDER BY {order} ASC, {SEQ} {latest}, {value} ASC NULLS FIRST"
    text = f"{pick}({value} {ranked}) FILTER (WHERE {order} IS NOT NULL{condition})"
    return exp.maybe_parse(text, dialect="duckdb")


def _storage_form(output: OutputPlan, column: str) -> str:
    match output.type:
        case "TIMESTAMP" | "WINDOW":
            return f"epoch_us({column})"
        case "DATE":
            return f"date_diff('day', DATE '1970-01-01', CAST({column} AS DATE))"
        case "BOOLEAN":
            return f"CAST({column} AS INTEGER)"
        case "DOUBLE":
            return f"CAST({column} AS DOUBLE)"
        case "INT" | "BIGINT":
            return _BIGINT.format(column)
        case "ARRAY<TIMESTAMP>":
            return f"[epoch_us(v) for v in {column}]"
        case "ARRAY<DATE>":
            return f"[date_diff('day', DATE '1970-01-01', v) for v in {column}]"
    return column
