"""docs/functions.md: what may follow the aggregates of a view, and stand in queries over views.

`python -m headrace.certified.page` writes it from the tables; tests/docs/test_functions_page.py
checks that it is up to date.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from headrace.certified.aggregates import AGGREGATES, ORDERED_SETS, SYNONYMS
from headrace.certified.function import Scalar
from headrace.certified.functions import choices, nested, numbers, texts, times

PAGE = Path(__file__).parents[2] / "docs" / "functions.md"
_HEAD = """# Functions over answers

These functions may follow the aggregates of a view, and stand in views over views and in queries
over views. They give what Spark gives: each is compared with Spark over typed values and their
edges by `tests/certified`. Before the aggregates, a definition may use all of Spark's deterministic
functions. `headrace.certified.page` writes this page.

An argument of another type is cast as Spark casts it; `NUMBER` is any number, `SAME` the widest
type of all arguments that are marked so, `LITERAL` a literal, `COLLECTION` an ARRAY or a MAP. A
date or time that is computed and lies outside the years 1 to 9999 is NULL.
"""
_OPERATORS = """## Operators

`+ - * / % div`, `= <> < <= > >= <=>`, `AND OR NOT`, `IS [NOT] NULL | TRUE | FALSE`, `BETWEEN`,
`IN`, `LIKE` and `ILIKE` with a literal and `ESCAPE`, `RLIKE` with a literal, `||`, `CASE`, `CAST`,
`EXISTS`, `extract`, a date or time `± INTERVAL …`, `object.field`, `list[0]`, `map['key']`, and
`LATERAL VIEW [OUTER] explode(…) t AS x` after FROM.

Of two objects or lists there are `=`, `<>`, `<=>` and `IN`, where a NULL inside is a value like
others; rows are grouped by them and by maps. They have no order, nor has a `VARIANT`, which is only
shown.

Casts are between `STRING`, `BOOLEAN`, `TINYINT`, `SMALLINT`, `INT`, `BIGINT`, `FLOAT`, `DOUBLE`,
`DECIMAL`, `DATE` and `TIMESTAMP`, between `TIMESTAMP_NTZ` and the last two, and of it to `STRING`,
as Spark makes them with `spark.sql.ansi.enabled = false`: what does not fit is NULL, and an integer
wraps. Left out are casts of a double to text, whose digits depend on the version of Java, of
numbers to times, of times to numbers but `TIMESTAMP` to `BIGINT` and `DOUBLE`, and of lists, maps,
objects, `BINARY` and `VARIANT`.
"""

_MOMENTS = """## The time of a query

In ad-hoc queries over views `now()`, `current_timestamp` and `current_date` are the time at which
the query is answered. A definition may not use them.
"""


def page() -> str:
    families = {
        "Text": texts.ROWS, "Numbers": numbers.ROWS, "Dates and times": times.ROWS,
        "Choices": choices.ROWS, "Lists and maps": nested.ROWS,
    }  # fmt: skip
    parts = [_HEAD, _OPERATORS, *(_family(name, rows) for name, rows in families.items())]
    return "\n".join([*parts, _MOMENTS, _aggregates()])


def _family(name: str, rows: Iterable[Scalar]) -> str:
    forms: dict[str, list[str]] = {}
    for row in rows:
        takes = ", ".join(kind.replace("*", " …").removesuffix("!") for kind in row.takes)
        forms.setdefault(row.name, []).append(f"`{row.name}({takes})`")
    return _table(name, {name: ", ".join(calls) for name, calls in sorted(forms.items())})


def _table(name: str, rows: Mapping[str, str]) -> str:
    lines = [f"| `{function}` | {forms} |" for function, forms in rows.items()]
    return "\n".join([f"## {name}", "", "| function | forms |", "|---|---|", *lines, ""])


def _aggregates() -> str:
    plain = sorted(row.name for row in AGGREGATES.values() if not row.window_only)
    windows = sorted(row.name for row in AGGREGATES.values() if row.window_only)
    also = ", ".join(f"`{name}` is `{meant}`" for name, meant in sorted(SYNONYMS.items()))
    return f"""## Aggregates and window functions

In queries over views, with `DISTINCT`, `FILTER` and `OVER`: {_listed(plain)}.

With `OVER` only: {_listed(windows)}.

With `WITHIN GROUP (ORDER BY …)`: {_listed(sorted(ORDERED_SETS))}.

With `ROLLUP`, `CUBE` or `GROUPING SETS`: `grouping`, `grouping_id`.

{also}.
"""


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    PAGE.write_text(page())
