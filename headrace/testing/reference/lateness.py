"""How late the events of a view's windows were: the view's own SELECT with other aggregates.

The keys stay; HAVING, ORDER BY and LIMIT go; every group counts its events and those that are late.
tests/testing/test_reference_engine.py checks it.
"""

from __future__ import annotations

from sqlglot import exp

from headrace.testing.reference.aggregates import aggregating
from headrace.testing.reference.clauses import name_of

NUMBERS = {
    "on_time": "count_if(NOT {event}._late)",
    "late": "count_if({event}._late)",
    "late_by_max": "max({event}._lateness) FILTER (WHERE {event}._late)",
    "late_by_mean": "avg({event}._lateness) FILTER (WHERE {event}._late)",
}
_MARK = "lateness_"


def lateness_query(query: exp.Select) -> tuple[exp.Select, list[str]]:
    """The query for lateness, with its numbers named `lateness_…`, and the names of its keys."""
    plain = [item for item in query.expressions if not any(map(aggregating, item.walk()))]
    query = query.copy()
    for clause in ("having", "order", "limit"):
        query.set(clause, None)
    event = query.args["from_"].this.alias_or_name
    for name, text in NUMBERS.items():
        query.select(f"{text.format(event=event)} AS {_MARK}{name}", dialect="spark", copy=False)
    return query, [name_of(item) for item in plain]


def numbers_of(row: dict[str, object]) -> dict[str, object]:
    return {name: row[_MARK + name] for name in NUMBERS}
