"""The key columns of a query's answer: those that its GROUP BY names, by their expression, alias or
position, or as GROUP BY ALL. They identify the rows, so a chart draws none of them as its measure.

Only the outermost SELECT is read; a query that cannot be parsed here has no known keys.
tests/run/test_key_columns.py checks it.
"""

from __future__ import annotations

from msgspec.structs import replace
from sqlglot import exp, parse_one

from headrace.certified.select import grouping_items
from headrace.compile.calls import has_aggregate
from headrace.define.dialect import Headrace
from headrace.serving.answer import Answer


def with_keys(text: str, answer: Answer) -> Answer:
    """The answer of a query, with its key columns marked."""
    items = _items(text)
    # A star and duplicate names shift the columns.
    if len(items) != len(answer.columns) or any(item.is_star for item, _ in items):
        return answer
    columns = {
        name: replace(info, key=info.key or key)
        for (name, info), (_, key) in zip(answer.columns.items(), items, strict=True)
    }
    return replace(answer, columns=columns)


def _items(text: str) -> list[tuple[exp.Expr, bool]]:
    """The items of the select list, and whether each is a key."""
    try:
        query = parse_one(text, dialect=Headrace)
    except Exception:
        return []
    if not isinstance(query, exp.Select) or not (group := query.args.get("group")):
        return []
    named = [_word(node) for node in grouping_items(group.expressions)]
    every = group.args.get("all") or named == ["all"]
    return [
        (item, not has_aggregate(item) and bool(every or _words(item, position) & {*named}))
        for position, item in enumerate(query.selects, 1)
    ]


def _words(item: exp.Expr, position: int) -> set[str]:
    """What GROUP BY may call an item: its expression, alias or position."""
    return {_word(item.unalias()), item.alias.lower(), str(position)}


def _word(node: exp.Expr) -> str:
    """An expression as it is compared: `c.status` and `Status` are one column."""
    return (node.name if isinstance(node, exp.Column) else node.sql()).lower()
