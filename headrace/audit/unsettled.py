"""The rows of two answers that their columns do not show to be the same.

A row is settled if each answer has exactly one of its key, and all columns of the two are the same
by the rules of audit/compare.py. DuckDB settles rows in columns, and only the others become objects
of Python, all rows of a key together. So for any two answers
    compare(unsettled rows) reports what compare(all rows) reports.
The rules are written here in SQL, which may settle fewer rows than compare.py would, and never
more: what SQL cannot decide as Python does, such as lists of different types, is left to Python.
tests/audit/test_unsettled.py checks both, for each kind of column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headrace.audit.compare import DOUBLES, ERRORS_MAX, comparable
from headrace.compile.plan import WINDOW, OutputPlan, ViewPlan
from headrace.core.schema import nested

_ANSWER, _EXPECTED = "_answer_rows", "_expected_rows"
_FRESH = "fresh"  # of a row of the answer: whether speed contributed
_INTEGERS = {"BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"}
_FLOATS = {"FLOAT", "DOUBLE"}
# As math.isclose decides: 1e-9 of the larger one, or 1e-12; no infinity is close to a number.
_CLOSE = (
    "(isfinite({0}) AND isfinite({1}) "
    "AND abs({0} - {1}) <= greatest(1e-9 * greatest(abs({0}), abs({1})), 1e-12))"
)


@dataclass(frozen=True, slots=True)
class Unsettled:
    """What is left to compare row by row, and how many rows DuckDB has computed in all."""

    answer: pa.Array  # the numbers of rows
    expected: list[tuple[Any, ...]]
    total: int


def evaluate(connection: Any, view: ViewPlan, sql: str) -> None:
    """Compute DuckDB's rows of a view; `sql` selects its outputs in storage form."""
    names = ", ".join(_names(view))
    connection.execute(f"CREATE TEMP TABLE {_EXPECTED} AS SELECT * FROM ({sql}) AS rows({names})")


def unsettled(connection: Any, view: ViewPlan, answer: Sequence[pa.ChunkedArray]) -> Unsettled:
    """The rows that are left of an answer and of those that the connection has evaluated.
    `answer` has the columns of the outputs, two for a window, and whether speed contributed.
    """
    connection.register("_given", pa.table(list(answer), [*_names(view), _FRESH]))
    connection.execute(f"CREATE TEMP TABLE {_ANSWER} AS FROM _given")
    columns = _columns(connection, view)
    for column in columns:
        if column.rounded:
            connection.execute(f"CREATE TEMP TABLE {column.near} AS {_near_sql(column.name)}")
    connection.execute(f"CREATE TEMP TABLE _settled AS {_settled_sql(columns)}")
    left = connection.sql(_left_sql(_ANSWER, "answer", ["rowid"])).to_arrow_table()
    rows = connection.execute(_left_sql(_EXPECTED, "expected", _names(view))).fetchall()
    ((total,),) = connection.execute(f"SELECT count(*) FROM {_EXPECTED}").fetchall()
    return Unsettled(left.column(0).combine_chunks(), rows, total)


def _names(view: ViewPlan) -> list[str]:
    """The names of the columns here, because two outputs may have the same name."""
    return [name for n, output in enumerate(view.outputs) for name in _names_of(n, output)]


def _names_of(n: int, output: OutputPlan) -> list[str]:
    return [f"c{n}", f"c{n}_end"] if output.type == WINDOW else [f"c{n}"]


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of both answers, and DuckDB's types of it in each."""

    output: OutputPlan
    name: str
    types: tuple[str, str]

    @property
    def meets(self) -> bool:
        """Whether rows meet by it here; by fewer keys, fewer rows are settled."""
        known = self.types[0] == self.types[1] or {*self.types} <= _INTEGERS
        return bool(self.output.key) and not nested(self.output.type) and (known or self.rounded)

    @property
    def rounded(self) -> bool:
        """Whether it is a key of doubles, of which close ones are one key."""
        return bool(self.output.key) and self.output.type in DOUBLES

    @property
    def near(self) -> str:
        """The table of its doubles, each with the least that it is close to."""
        return f"_near_{self.name}"

    @property
    def key(self) -> str:
        return f"coalesce({self.near}.least, r.{self.name})" if self.rounded else f"r.{self.name}"

    @property
    def same(self) -> str:
        """SQL that is true only where the values of rows `a` and `b` are the same."""
        a, b, estimate = f"a.{self.name}", f"b.{self.name}", self.output.estimate
        exact = f"coalesce({_exact_sql(a, b, *self.types)}, false)"
        if estimate is None:
            return exact
        share = f"{ERRORS_MAX * estimate.error:.17e}"
        rough = f"coalesce(abs({a} - {b}) <= greatest(1.0, {share} * {b}), false)"
        return f"({exact} OR ({'true' if estimate.when == 'always' else _FRESH} AND {rough}))"


def _columns(connection: Any, view: ViewPlan) -> list[_Column]:
    answer, expected = (
        {row[0]: row[1] for row in connection.execute(f"DESCRIBE {rows}").fetchall()}
        for rows in (_ANSWER, _EXPECTED)
    )
    return [
        _Column(output, name, (answer[name], expected[name]))
        for n, output in enumerate(view.outputs)
        for name in _names_of(n, output)
    ]


def _exact_sql(a: str, b: str, one: str, other: str) -> str:
    """SQL that is true where two values of these types are the same; both may be NULL."""
    if one == other and one not in _FLOATS:
        return f"{a} IS NOT DISTINCT FROM {b}"
    if one.startswith("DECIMAL") and other in _FLOATS:
        # A little narrower than compare.py, because DuckDB may round a decimal to another double.
        step = f"1e-{_scale(one)}"
        off = f"abs({a}::DOUBLE - {b}) <= 0.49 * {step} + 1e-13 * greatest(abs({b}), {step})"
        return f"({a} IS NULL AND {b} IS NULL) OR {off}"
    if {one, other} <= _INTEGERS | _FLOATS:
        equal = f"{a} IS NOT DISTINCT FROM {b}"
        close = _CLOSE.format(f"{a}::DOUBLE", f"{b}::DOUBLE")
        return f"({equal} OR {close})" if {one, other} & _FLOATS else equal
    if all(type.startswith("DECIMAL") or type in _INTEGERS for type in (one, other)):
        return f"TRY({a} IS NOT DISTINCT FROM {b})"
    return f"{a} IS NULL AND {b} IS NULL"


def _scale(decimal: str) -> str:
    """
    >>> _scale("DECIMAL(18,6)")
    '6'
    """
    return decimal.rpartition(",")[2].rstrip(")")


def _near_sql(name: str) -> str:
    """SELECT of the doubles of a column, each with the least that it is close to, by neighbours."""
    values = f"SELECT {name} AS value FROM {_ANSWER} UNION SELECT {name} FROM {_EXPECTED}"
    close = _CLOSE.format("value", "lag(value) OVER (ORDER BY value)")
    return (
        "SELECT value, min(value) OVER (PARTITION BY chain) AS least FROM ("
        "SELECT value, count(*) FILTER (WHERE NOT close) OVER (ORDER BY value) AS chain FROM ("
        f"SELECT value, coalesce({close}, false) AS close FROM ({values}) "
        "WHERE value IS NOT NULL AND NOT isnan(value)))"
    )


def _settled_sql(columns: Sequence[_Column]) -> str:
    """SELECT of the numbers of the rows that are the same, one in each answer."""
    same = " AND ".join(column.same for column in columns if comparable(column.output)) or "true"
    return (
        f"WITH pairs AS ({_pairs_sql([column for column in columns if column.meets])}) "
        "SELECT answer, expected FROM pairs "
        f"JOIN {_ANSWER} AS a ON a.rowid = answer JOIN {_EXPECTED} AS b ON b.rowid = expected "
        f"WHERE {same}"
    )


def _pairs_sql(keys: Sequence[_Column]) -> str:
    """SELECT of the numbers of the rows whose key each answer has once."""
    named = "".join(f"{key.key} AS {key.name}, " for key in keys)
    near = "".join(
        f" LEFT JOIN {key.near} ON {key.near}.value = r.{key.name}" for key in keys if key.rounded
    )
    sides = (
        f"SELECT {named}r.rowid AS answer, NULL AS expected FROM {_ANSWER} AS r{near}",
        f"SELECT {named}NULL, r.rowid FROM {_EXPECTED} AS r{near}",
    )
    group = f" GROUP BY {', '.join(key.name for key in keys)}" if keys else ""
    return (
        "SELECT max(answer) AS answer, max(expected) AS expected "
        f"FROM ({' UNION ALL '.join(sides)}){group} "
        "HAVING count(answer) = 1 AND count(expected) = 1"
    )


def _left_sql(rows: str, side: str, columns: Sequence[str]) -> str:
    """SELECT of the rows of an answer that are not settled."""
    return (
        f"SELECT {', '.join(columns)} FROM {rows} "
        f"WHERE rowid NOT IN (SELECT {side} FROM _settled) ORDER BY rowid"
    )
