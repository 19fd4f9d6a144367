"""A view's definition in DuckDB's SQL, with each output in storage form.

Windows become edges in microseconds, ties of max_by are decided by the place in the log, and
estimates are computed exactly. A window is two columns, its start and its end.
tests/audit/test_oracle.py compares it with the reference interpreter.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headrace.audit.duck_aggregates import SEQ, duckdb_call
from headrace.audit.ordered import check_comparable, is_ordered, number_events, ordered_over, timed
from headrace.audit.windows import NAMES, DuckWindows, is_window, windows_of
from headrace.compile.plan import WINDOW, OutputPlan, ViewPlan
from headrace.core.origin import Origin
from headrace.define.dialect import parse_translatable

_BIGINT = (
    "CASE WHEN {0} BETWEEN -9223372036854775808 AND 9223372036854775807 "
    "THEN CAST({0} AS BIGINT) END"
)


def oracle_sql(
    plan: ViewPlan, time: str | None = None, watermarks: Sequence[int | None] = ()
) -> str:
    """SELECT of the view's outputs in storage form; ORDER BY and LIMIT are left to the comparison.
    `time` is the column of the stream's event time; an outer join of streams requires their
    watermarks."""
    select = parse_translatable(plan.definition, Origin("plan", 1))
    assert isinstance(select, exp.Select)
    select.transform(lambda node: _from_the_beginning(node, watermarks), copy=False)
    if plan.carry:
        check_comparable(plan, select)
        timed(select, time)
        number_events(select, _plain_keys(select), time)
    for part in ("order", "limit"):
        select.set(part, None)
    windows = _windows(select)
    duck = to_duckdb(select, time, windows)
    if windows:
        windows.apply(duck)
    if plan.join:
        _qualify_place(duck)
    inner = []
    for n, (item, output) in enumerate(zip(duck.expressions, plan.outputs, strict=True)):
        inner.append(f"{item.unalias().sql(dialect='duckdb')} AS _o{n}")
        if windows and output.type == WINDOW:
            inner.append(f"{windows.end} AS _o{n}_end")
    body = _with_items(duck, inner)
    items = [form for n, output in enumerate(plan.outputs) for form in _storage_forms(output, n)]
    return f"SELECT {', '.join(items)} FROM ({body})"


def to_duckdb(
    query: exp.Query, time: str | None = None, windows: DuckWindows | None = None
) -> exp.Expr:
    """The query in DuckDB's dialect, with what it lacks or defines differently rewritten."""
    return query.transform(lambda node: duckdb_call(node, time) or _translated(node, windows))


def _windows(select: exp.Select) -> DuckWindows | None:
    """The windows of a definition, which has one call for them however often it is written."""
    call = next((node for node in select.find_all(exp.Anonymous) if is_window(node)), None)
    return windows_of(call, select, _plain_keys(select)) if call else None


def _plain_keys(select: exp.Select) -> list[exp.Expr]:
    """The GROUP BY expressions of a view other than its window."""
    group = select.args.get("group")
    items = [item.unalias() for item in select.expressions]
    aliases = {i.alias.lower(): i.this for i in select.expressions if isinstance(i, exp.Alias)}
    meant = [_meant(e, aliases, items) for e in group.expressions] if group else []
    if group and (group.args.get("all") or [e.name.upper() for e in meant] == ["ALL"]):
        meant = [item for item in items if not item.find(exp.AggFunc)]
    keys = [node.unnest() for node in meant]
    return [key for key in keys if not is_window(key) and not is_ordered(key)]


def _from_the_beginning(node: exp.Expr, watermarks: Sequence[int | None]) -> exp.Expr:
    """Every event is new, there was no watermark before, and there are these now."""
    if isinstance(node, exp.Column) and node.name == "_new":
        return exp.true()
    if not isinstance(node, exp.Placeholder):
        return node
    when, _, number = node.name.partition("_")
    mark = watermarks[int(number)] if when == "after" else None
    return exp.null() if mark is None else exp.Literal.number(mark)


def _qualify_place(select: exp.Expr) -> None:
    """A row of a join has the place of its left event."""
    left = select.args["from_"].this.alias_or_name
    for column in select.find_all(exp.Column):
        place = column.name in {"_offset", "_partition"} and not column.table
        if place and column.parent_select is select:
            column.set("table", exp.to_identifier(left))


def _with_items(select: exp.Expr, items: list[str]) -> str:
    """The SELECT with other items; aliases in GROUP BY and HAVING are resolved first."""
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


def _translated(node: exp.Expr, windows: DuckWindows | None) -> exp.Expr:
    if isinstance(node, exp.Window) and not node.args.get("spec"):
        return ordered_over(node)
    if windows and is_window(node):
        return windows.edge("start")
    if windows and isinstance(node, exp.Column) and node.table.lower() in NAMES:
        return windows.edge(node.name.lower())
    if windows and isinstance(node, exp.Dot) and is_window(node.this):
        return windows.edge(node.expression.name.lower())
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
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.JSONExtract):
        # A value of a VARIANT is cast as itself, and not as its JSON text.
        value = exp.JSONExtractScalar(this=node.this.this, expression=node.this.expression)
        return exp.TryCast(this=value, to=node.args["to"])
    return node


_SPARK_NAMES = {"every": "bool_and", "some": "bool_or", "std": "stddev_samp", "mean": "avg"}


def _by(node: exp.ArgMax | exp.ArgMin, condition: str = "") -> exp.Expr:
    """The value of the event with the greatest or least order; the latest in the log among equals,
    and among the parts of one event the value itself decides.
    """
    value, order = node.this.sql(dialect="duckdb"), node.expression.sql(dialect="duckdb")
    pick, latest = ("last", "ASC") if isinstance(node, exp.ArgMax) else ("first", "DESC")
    ranked = f"ORDER BY {order} ASC, {SEQ} {latest}, {value} ASC NULLS FIRST"
    text = f"{pick}({value} {ranked}) FILTER (WHERE {order} IS NOT NULL{condition})"
    return exp.maybe_parse(text, dialect="duckdb")


def _storage_forms(output: OutputPlan, number: int) -> list[str]:
    columns = [f"_o{number}", f"_o{number}_end"] if output.type == WINDOW else [f"_o{number}"]
    return [_storage_form(output, column) for column in columns]


def _storage_form(output: OutputPlan, column: str) -> str:
    match output.type:
        case "TIMESTAMP" | "TIMESTAMP_NTZ" | "WINDOW":
            return f"epoch_us({column})"
        case "DATE":
            return f"date_diff('day', DATE '1970-01-01', CAST({column} AS DATE))"
        case "BOOLEAN":
            return f"CAST({column} AS INTEGER)"
        case "FLOAT" | "DOUBLE":
            return f"CAST({column} AS DOUBLE)"
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT":
            return _BIGINT.format(column)
    return column
