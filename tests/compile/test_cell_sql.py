"""A cell means what the type of its column says; what it cannot mean gets a sentence."""

from __future__ import annotations

import pytest

from headrace.compile.cell_sql import cell_sql
from headrace.core.origin import Origin
from headrace.define.cells import read_test
from headrace.define.rules import CellTest, SqlFragment


def written(text: str, type: str) -> str:
    at = Origin("d.csv", 1)
    cell = read_test(text, SqlFragment("x", at, "column 'x'"), at, "row 2")
    assert isinstance(cell, CellTest)
    return cell_sql(cell, "x", type)


@pytest.mark.parametrize(
    ("text", "type", "expected"),
    [
        ("5", "int", "(x) = 5"),
        ("5", "string", "(x) = '5'"),
        ("01", "string", "(x) = '01'"),
        ("2.5", "int", "(x) = 2.5D"),
        ("1|3", "bigint", "(x) IN (1, 3)"),
        ("a|it's", "string", "(x) IN ('a', 'it''s')"),
        ("!= a", "string", "(x) <> 'a'"),
        ("!= 1|2", "double", "(x) NOT IN (1, 2)"),
        (">= 10", "decimal(10,2)", "(x) >= 10"),
        ("10..20", "int", "(x) BETWEEN 10 AND 20"),
        ("a..f", "string", "(x) BETWEEN 'a' AND 'f'"),
        ("True", "boolean", "(x) = true"),
        ("< 2026-01-01", "timestamp", "(x) < TIMESTAMP '2026-01-01T00:00:00Z'"),
        ("2026-01-01..2026-01-31", "date", "(x) BETWEEN DATE '2026-01-01' AND DATE '2026-01-31'"),
        ("NULL", "array<string>", "(x) IS NULL"),
        ("NOT NULL", "int", "(x) IS NOT NULL"),
    ],
)
def test_a_cell_is_written_by_the_type_of_its_column(text: str, type: str, expected: str) -> None:
    assert written(text, type).replace("\\'", "''") == expected


@pytest.mark.parametrize(
    ("text", "type", "sentence"),
    [
        ("O", "int", "'O' is not a number, and x is INT"),
        ("007", "bigint", "'007' is not a number, and x is BIGINT"),
        ("yes", "boolean", "'yes' is neither true nor false, and x is BOOLEAN"),
        ("new year", "timestamp", "'new year' is not a timestamp, and x is TIMESTAMP"),
        ("31.1.2026", "date", "'31.1.2026' is not a date, and x is DATE"),
        ("a", "array<string>", "x is ARRAY<STRING>, so a cell cannot be compared with it"),
        ("> 9", "string", "x is STRING and cannot be compared with a number"),
        ("1..5", "string", "x is STRING and cannot be compared with a number"),
    ],
)
def test_what_a_cell_cannot_mean_gets_its_sentence(text: str, type: str, sentence: str) -> None:
    with pytest.raises(ValueError, match="x is") as caught:
        written(text, type)
    assert str(caught.value).startswith(sentence)
