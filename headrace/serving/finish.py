"""From merged partials to the answer's columns, in storage form and in readable form.

Reading is one SELECT: where conditions on keys go inside, to the indexes of both tables; HAVING,
ORDER BY and LIMIT outside. The plan's finish expressions are Spark SQL; sqlglot says them in the
store's SQL.
"""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp

from headrace.compile.plan import WINDOW, OutputPlan, ViewPlan
from headrace.compile.windows import Span
from headrace.core.origin import Origin
from headrace.core.time import FIRST, LAST
from headrace.define.dialect import parse_translatable
from headrace.serving.merge import in_windows, merged, source


def typed_sql(
    plan: ViewPlan, generation: str, speed: str, where: str = "", span: Span | None = None
) -> str:
    """SELECT of a mergeable view's outputs in storage form, and `_fresh`: 1 where speed took
    part. With a `span`, only windows that begin in it are of interest.
    """
    sources = [
        source(plan, generation, group="0", where=where),
        source(plan, speed, group="_group", where=where),
    ]
    items = [item for output in plan.outputs for item in _typed_items(output)]
    inner = merged(plan, [in_windows(plan, rows, span) for rows in sources])
    having = f" WHERE {store_sql(plan.having)}" if plan.having else ""
    order = f" ORDER BY {', '.join(store_sql(o) for o in plan.order)}" if plan.order else ""
    limit = f" LIMIT {plan.limit}" if plan.limit is not None else ""
    items.append("coalesce(_group, 0) > 0 AS _fresh")
    return f"SELECT {', '.join(items)} FROM ({inner}){having}{order}{limit}"


def _typed_items(output: OutputPlan) -> list[str]:
    value = store_sql(output.finish)
    if output.end is None:
        return [f"{value} AS {quoted(output.name)}"]
    return [
        f"{value} AS {quoted(output.name + '_start')}",
        f"{store_sql(output.end)} AS {quoted(output.name + '_end')}",
    ]


def readable_sql(plan: ViewPlan, typed: str) -> str:
    """SELECT of the outputs as a person reads them, over the relation in storage form."""
    items = []
    for output in plan.outputs:
        edges = ("_start", "_end") if output.type == WINDOW else ("",)
        for edge in edges:
            column = quoted(output.name + edge)
            items.append(f"{_readable(output.type, column)} AS {column}")
    return f"SELECT {', '.join(items)} FROM {typed}"


def _readable(type: str, column: str) -> str:
    if type == "DATE":
        return f"date({column} * 86400, 'unixepoch')"
    if type not in {"TIMESTAMP", WINDOW}:
        return column
    clipped = f"min(max({column}, {FIRST}), {LAST})"
    fraction = f"((({clipped} % 1000000) + 1000000) % 1000000)"
    second = f"strftime('%Y-%m-%dT%H:%M:%S', ({clipped} - {fraction}) / 1000000, 'unixepoch')"
    return f"{second} || CASE {fraction} WHEN 0 THEN 'Z' ELSE printf('.%06dZ', {fraction}) END"


@lru_cache(maxsize=10_000)  # every read of a view asks for the same expressions again
def store_sql(text: str) -> str:
    """A finish expression, or one of ORDER BY, in the store's SQL."""
    tree = parse_translatable(f"SELECT 1 ORDER BY {text}", Origin("plan", 1))
    ordered: exp.Ordered = tree.args["order"].expressions[0]
    return ordered.sql(dialect="sqlite")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
