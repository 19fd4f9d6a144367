"""A cell of a decision table as an SQL condition, given the type of its subject.

The value of a cell is parsed as that type: for an INT, 5 is a number; for a STRING it is text.
tests/compile/test_cell_sql.py reads each type and each error.
"""

from __future__ import annotations

from datetime import date

from headrace.core.time import from_iso, iso
from headrace.define.cells import NUMBER, number, quoted
from headrace.define.rules import CellTest

_NUMBERS = {"tinyint", "smallint", "int", "bigint", "float", "double"}
_ORDERS = {">=", "<=", ">", "<", "range"}


def cell_sql(cell: CellTest, subject: str, type: str) -> str:
    """The condition; ValueError if the cell is not valid for the type."""
    subject = f"({subject})"
    if cell.operator in {"null", "not null"}:
        return f"{subject} IS {cell.operator.upper()}"
    if type == "string" and cell.operator in _ORDERS:
        _refuse_numbers(cell)
    values = [_literal(value, type, cell.subject.text) for value in cell.values]
    match cell.operator:
        case "range":
            return f"{subject} BETWEEN {values[0]} AND {values[1]}"
        case "=" | "!=" if len(values) > 1:
            return f"{subject} {'NOT ' if cell.operator == '!=' else ''}IN ({', '.join(values)})"
    return f"{subject} {'<>' if cell.operator == '!=' else cell.operator} {values[0]}"


def _refuse_numbers(cell: CellTest) -> None:
    """As text, '10' is less than '9', which is never intended by > 9."""
    if all(map(NUMBER.fullmatch, cell.values)):
        name = cell.subject.text
        raise ValueError(
            f"{name} is STRING and cannot be compared with a number; write "
            f"=CAST({name} AS BIGINT) > … to compare it as a number"
        )


def _literal(value: str, type: str, name: str) -> str:
    if type == "string":
        return quoted(value)
    if type in _NUMBERS or type.startswith("decimal"):
        if not NUMBER.fullmatch(value):
            raise ValueError(f"'{value}' is not a number, and {name} is {type.upper()}")
        return number(value)
    if type == "boolean":
        if value.lower() not in {"true", "false"}:
            raise ValueError(f"'{value}' is neither true nor false, and {name} is BOOLEAN")
        return value.lower()
    return _time(value, type, name)


def _time(value: str, type: str, name: str) -> str:
    try:
        if type == "timestamp":
            return f"TIMESTAMP '{iso(from_iso(value))}'"
        if type == "date":
            return f"DATE '{date.fromisoformat(value).isoformat()}'"
    except ValueError as error:
        raise ValueError(f"'{value}' is not a {type}, and {name} is {type.upper()}") from error
    raise ValueError(f"{name} is {type.upper()}, so a cell cannot be compared with it; write =SQL")
