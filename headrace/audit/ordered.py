"""What needs the events of a key in order, in DuckDB's SQL.

Running values are window functions there too, and the windows of counts and punctuation are made of
one, so they do not use the engine's folds. What DuckDB does not support is not compared, and the
audit says so. tests/audit/test_ordered.py compares it with the reference interpreter.
"""

from __future__ import annotations

from sqlglot import exp

from headrace.audit.duck_aggregates import SEQ
from headrace.compile.plan import ViewPlan

_WORDS = ("count_window", "punctuated_window")
# The running values that DuckDB has too.
_RUNNING = {
    exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.RowNumber, exp.FirstValue, exp.LastValue,
    exp.Lag,
}  # fmt: skip


class NotComparable(Exception):
    """DuckDB does not support the definition; the text is the reason."""


def is_ordered(node: exp.Expr) -> bool:
    """Whether a call is a window in the order of events."""
    return isinstance(node, exp.Anonymous) and node.name.lower() in _WORDS


def check_comparable(plan: ViewPlan, select: exp.Select) -> None:
    """Raise NotComparable if DuckDB does not support a carried view."""
    if plan.carry and plan.carry.processor:
        raise NotComparable("a processor is written in Python")
    if plan.carry and plan.carry.match:
        raise NotComparable("DuckDB does not support patterns")
    for over in select.find_all(exp.Window):
        if type(over.this) not in _RUNNING:
            raise NotComparable(f"DuckDB does not support {over.this.name.lower()}")
    call = next((node for node in select.find_all(exp.Anonymous) if is_ordered(node)), None)
    if call and (select.args.get("joins") or select.args.get("laterals")):
        raise NotComparable("the audit does not support count or punctuated windows over a join")
    if call and call.name.lower() == "punctuated_window" and len(call.expressions) > 1:
        raise NotComparable("DuckDB does not support punctuated windows with limits")


def ordered_over(node: exp.Window) -> exp.Expr:
    """A running value whose ties are decided by the place in the log."""
    partition = ", ".join(part.sql(dialect="duckdb") for part in node.args["partition_by"] or ())
    time = node.args["order"].expressions[0].this.sql(dialect="duckdb")
    by = f"PARTITION BY {partition} " if partition else ""
    call = node.this.sql(dialect="duckdb")
    text = f"{call} OVER ({by}ORDER BY {time}, {SEQ} ROWS UNBOUNDED PRECEDING)"
    return exp.maybe_parse(text, dialect="duckdb")


def timed(select: exp.Select, time: str | None) -> None:
    """Events without a time have no running value and no row."""
    for inner in select.find_all(exp.Select):
        if time and any(item.find(exp.Window) for item in inner.expressions):
            inner.where(f"{time} IS NOT NULL", copy=False, dialect="duckdb")


def number_events(select: exp.Select, keys: list[exp.Expr], time: str | None) -> None:
    """Give each event the starts of its windows as `_start`, once for each, and group by them."""
    calls = [node for node in select.find_all(exp.Anonymous) if is_ordered(node)]
    if not calls:
        return
    parts = ", ".join(key.sql(dialect="duckdb") for key in keys)
    order = f"{time}, {SEQ}" if time else SEQ
    over = f"({f'PARTITION BY {parts} ' if parts else ''}ORDER BY {order} ROWS "
    inner = select.copy()
    for part in ("group", "having", "order", "limit", "distinct"):
        inner.set(part, None)
    number, starts = _numbers(calls[0], over)
    inner.set("expressions", [exp.Star(), exp.maybe_parse(number, dialect="duckdb")])
    if time:
        inner.where(f"{time} IS NOT NULL", copy=False, dialect="duckdb")
    alias = select.args["from_"].this.alias_or_name
    body = f"SELECT *, {starts} AS _start FROM ({inner.sql(dialect='duckdb')})"
    source: exp.Subquery = exp.maybe_parse(body, dialect="duckdb").subquery(alias)
    select.set("from_", exp.From(this=source))
    select.set("where", None)
    for node in calls:
        node.replace(exp.column("_start"))


def _numbers(call: exp.Anonymous, over: str) -> tuple[str, str]:
    """SQL of an event's number, and of the starts of its windows."""
    if call.name.lower() == "punctuated_window":
        ends = call.expressions[0].sql(dialect="duckdb")
        before = f"{over}BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
        passed = f"coalesce(sum(CASE WHEN {ends} THEN 1 ELSE 0 END) OVER {before}, 0)"
        return f"{passed} AS _number", "CAST(_number AS BIGINT)"
    size = int(call.expressions[0].name)
    slide = int(call.expressions[-1].name)
    newest = f"(_number - _number % {slide})"
    oldest = f"({newest} - (({size} - _number % {slide} + {slide} - 1) // {slide} - 1) * {slide})"
    starts = f"unnest(range({oldest}, {newest} + 1, {slide}))"
    return f"row_number() OVER {over}UNBOUNDED PRECEDING) - 1 AS _number", starts
