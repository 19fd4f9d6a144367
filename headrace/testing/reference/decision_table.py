"""A decision table in CSV: one rule per line, its tests and the fields that it sets.

The first line names the columns: `rule`, then subjects of tests, and results as `SET field`. A test
is empty or `*` (any), a value, `1|3|5` (one of), `!= x`, `>= 10`, `10..20` (both included), `NULL`,
`NOT NULL`, or `=` and a condition in SQL. A text in single quotes is that text. What a test
compares with is read as the kind of value that the subject has. A result is empty (not set), a
value, or `=` and SQL; the values of one column are numbers, or truth values, if all of them can be.
tests/testing/test_rules.py checks each form.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from headrace.core.time import from_iso
from headrace.testing.reference.expressions import evaluate
from headrace.testing.reference.names import NameScope, resolve
from headrace.testing.reference.values import Row, Timestamp, Value, order

_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?")
_SIGNS: dict[str, Callable[[int], bool]] = {
    ">=": lambda found: found >= 0,
    "<=": lambda found: found <= 0,
    "!=": lambda found: found != 0,
    "<>": lambda found: found != 0,
    ">": lambda found: found > 0,
    "<": lambda found: found < 0,
}


@dataclass(frozen=True, slots=True)
class TableRule:
    """A rule of one line: a test is SQL, or the subject's SQL and a cell."""

    name: str
    tests: tuple[str | tuple[str, str], ...]
    sets: dict[str, str]


@dataclass(frozen=True, slots=True)
class TableCell:
    """A subject, and the text of a cell that tests it."""

    subject: exp.Expr
    said: str

    def resolved(self, scope: NameScope) -> TableCell:
        return TableCell(resolve(self.subject, scope), self.said)

    def holds(self, row: Row) -> bool:
        value = evaluate(self.subject, row)
        if self.said.upper() in {"NULL", "NOT NULL"}:
            return (value is None) == (self.said.upper() == "NULL")
        return value is not None and _holds(self.said, value)


def _holds(said: str, value: Value) -> bool:
    for sign, right in _SIGNS.items():
        if said.startswith(sign):
            found = [_order(value, word) for word in _words(said[len(sign) :], "|")]
            return all(map(right, found))
    ends = _words(said, "..")
    if len(ends) == 2:
        return _order(value, ends[0]) >= 0 and _order(value, ends[1]) <= 0
    return any(_order(value, word) == 0 for word in _words(said, "|"))


def _words(said: str, separator: str) -> list[str]:
    """What stands between separators that are not in quotes."""
    pieces = re.findall(rf"'[^']*'|{re.escape(separator)}|.", said)
    words = [""]
    for piece in pieces:
        words = [*words, ""] if piece == separator else [*words[:-1], words[-1] + piece]
    return [word.strip() for word in words]


def _order(value: Value, word: str) -> int:
    """How the value stands to a word, which is read as a value of its kind."""
    plain = word[1:-1] if len(word) > 1 and word[0] == word[-1] == "'" else word
    if isinstance(value, bool):
        return order(value, plain.lower() == "true")
    if isinstance(value, int | float):
        return order(value, float(plain) if "." in plain else int(plain))
    return order(value, Timestamp(from_iso(plain)) if isinstance(value, Timestamp) else plain)


def table_rules(text: str) -> list[TableRule]:
    """The lines of a table; comments and empty ones are skipped."""
    text = text.removeprefix("\ufeff")
    head = next(line for line in text.splitlines() if line.strip() and line[0] != "#")
    separator = next((sign for sign in head if sign in ",;\t"), ",")
    rows = [
        [cell.strip() for cell in row]
        for row in csv.reader(io.StringIO(text), delimiter=separator)
        if any(cell.strip() for cell in row) and not row[0].startswith("#")
    ]
    names, *lines = rows
    columns = list(zip(*(line + [""] * (len(names) - len(line)) for line in lines), strict=True))
    written = {
        n: _results(columns[n]) for n, name in enumerate(names) if name[:4].upper() == "SET "
    }
    return [_line(names, line, {n: cells[i] for n, cells in written.items()})
            for i, line in enumerate(lines)]  # fmt: skip


def _line(names: list[str], line: list[str], results: dict[int, str]) -> TableRule:
    tests: list[str | tuple[str, str]] = []
    for n, cell in enumerate(line):
        if n and n not in results and cell not in {"", "*"}:
            tests.append(cell[1:] if cell.startswith("=") else (names[n], cell))
    sets = {names[n][4:].strip(): text for n, text in results.items() if text}
    return TableRule(line[0], tuple(tests), sets)


def _results(cells: tuple[str, ...]) -> list[str]:
    """The SQL of each cell of a column of results."""
    plain = [cell for cell in cells if cell and not cell.startswith("=")]
    if all(map(_NUMBER.fullmatch, plain)) or {cell.lower() for cell in plain} <= {"true", "false"}:
        return [cell.removeprefix("=") for cell in cells]
    return [cell.removeprefix("=") if cell[:1] in {"", "="} else _quoted(cell) for cell in cells]


def _quoted(cell: str) -> str:
    plain = cell[1:-1] if len(cell) > 1 and cell[0] == cell[-1] == "'" else cell
    return exp.Literal.string(plain).sql(dialect="spark")
