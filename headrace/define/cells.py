"""Parses the cells of a decision table.

    tests     empty or * (any) · O (equal) · 1|3|5 (one of) · != x · != 1|3 (none of) · >= 10 · < 3
              10..20 (both included) · NULL · NOT NULL · =SQL (a condition of its own)
    results   empty (not set) · a value · =SQL

A text in single quotes is that text: '*', 'NULL', 'a|b'. tests/define/test_cells.py reads each.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from headrace.core.origin import Origin
from headrace.define.dialect import sql_of
from headrace.define.rules import CellTest, SqlFragment

NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?")
_SIGN = re.compile(r"(>=|<=|!=|<>|>|<)(.*)", re.DOTALL)
_QUOTED = re.compile(r"'((?:[^']|'')*)'")
_RANGE = ".."


def read_test(
    text: str, subject: SqlFragment, origin: Origin, where: str
) -> SqlFragment | CellTest | None:
    """The test of a cell; None if any value passes. ValueError says what is wrong."""
    if text in {"", "*"}:
        return None
    if text.startswith("="):
        if not _sql(text):
            raise ValueError("expected SQL after '='")
        return SqlFragment(_sql(text), origin, where)
    word = " ".join(text.lower().split())
    operator, values = (word, ()) if word in {"null", "not null"} else _compared(text)
    return CellTest(subject, operator, values, origin, where)


def _compared(text: str) -> tuple[str, tuple[str, ...]]:
    sign = _SIGN.fullmatch(text)
    if sign:
        operator = "!=" if sign[1] == "<>" else sign[1]
        values = _values(sign[2], "|")
        if len(values) > 1 and operator != "!=":
            raise ValueError(f"'{operator}' requires a single value, got '{text}'")
        return operator, values
    if len(_split(text, _RANGE)) > 1:
        values = _values(text, _RANGE)
        if len(values) > 2:
            raise ValueError(f"'{text}' is not a range such as 10..20")
        return "range", values
    return "=", _values(text, "|")


def _values(text: str, separator: str) -> tuple[str, ...]:
    parts = [part.strip() for part in _split(text, separator)]
    if "" in parts:
        raise ValueError(f"a value is missing in '{text.strip()}'")
    return tuple(map(_plain, parts))


def _split(text: str, separator: str) -> list[str]:
    """The parts between separators that are not in quotes."""
    pieces = re.findall(rf"'(?:[^']|'')*'|{re.escape(separator)}|.", text, re.DOTALL)
    parts = [""]
    for piece in pieces:
        if piece == separator:
            parts.append("")
        else:
            parts[-1] += piece
    return parts


def _plain(text: str) -> str:
    quoted = _QUOTED.fullmatch(text)
    return quoted[1].replace("''", "'") if quoted else text


def read_results(cells: list[str]) -> list[str | None]:
    """The SQL of each result of a column, None where nothing is set.

    Values are numbers if all of the column's are, truth values if all are, and text otherwise:

    >>> read_results(["1", "", "2.5", "=seconds * 2"])
    ['1', None, '2.5D', 'seconds * 2']
    >>> read_results(["0049", "1"])
    ["'0049'", "'1'"]
    """
    plain = [cell for cell in cells if cell and not cell.startswith("=")]
    if all(map(NUMBER.fullmatch, plain)):
        write: Callable[[str], str] = number
    elif {cell.lower() for cell in plain} <= {"true", "false"}:
        write = str.lower
    else:
        write = literal
    return [(_sql(cell) if cell.startswith("=") else write(cell)) or None for cell in cells]


def _sql(cell: str) -> str:
    return cell[1:].strip()


def number(text: str) -> str:
    """A number in Spark SQL: without D, 2.5 would be a decimal."""
    return f"{text}D" if "." in text else text


def literal(text: str) -> str:
    """A cell's text in Spark SQL; an empty cell stays empty."""
    return quoted(_plain(text)) if text else ""


def quoted(text: str) -> str:
    """A text in Spark SQL."""
    return sql_of(exp.Literal.string(text))
