"""Rules and decision tables of the reference."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.testing.reference import Reference, Timestamp
from headrace.testing.reference.rules import rules_of

EVENT = {"n": 5, "x": 2.5, "s": "a", "ok": True, "ts": Timestamp(1_500_000), "_offset": 7}


def answer(text: str, files: dict[str, str] | None = None) -> list[dict[str, Any]]:
    columns = ["n", "x", "s", "ok", "ts"]
    reference = Reference({"e": columns}, {}, {"d": text, "v": "SELECT * FROM d"}, files=files)
    return reference.answer("v", {"e": [EVENT]})


def deciding(cell: str, column: str = "n") -> str | None:
    table = f'rule,"{column}",SET f\na,"{cell}",x\n'
    (row,) = answer("ON e FROM 't.csv'", {"t.csv": table})
    found: str | None = row["rule"]
    return found


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("n", ""), ("n", "*"), ("n", "5"), ("n", "4|5"), ("n", "!= 4"), ("n", "!= 3|4"),
        ("n", ">= 5"), ("n", "<6"), ("n", "5..6"), ("n", "4 .. 5"), ("n", "NOT NULL"),
        ("n", "=n = 5"), ("n", "=s = 'a'"), ("n * 2", "10"), ("x", "2.5"), ("x", "> 2"),
        ("s", "a"), ("s", "'a'"), ("s", "b|a"), ("s", "!= 'NULL'"), ("ok", "TRUE"),
        ("ts", "< 1970-01-01T00:00:02Z"), ("e.n", "5"),
    ],
)  # fmt: skip
def test_a_cell_holds(column: str, cell: str) -> None:
    assert deciding(cell, column) == "a"


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("n", "4"), ("n", "3|4"), ("n", "!= 5"), ("n", "!= 4|5"), ("n", "> 5"), ("n", "6..9"),
        ("n", "NULL"), ("n", "=NULL"), ("s", "A"), ("s", "'*'"), ("ok", "false"),
        ("nullif(n, 5)", "5"), ("nullif(n, 5)", "!= 5"), ("nullif(n, 5)", "NOT NULL"),
    ],
)  # fmt: skip
def test_a_cell_does_not_hold(column: str, cell: str) -> None:
    assert deciding(cell, column) is None


def test_what_is_no_definition_of_rules_is_none() -> None:
    assert rules_of("SELECT * FROM e", {}) is None


def test_the_place_of_an_event_stays_and_its_columns_come_first() -> None:
    text = "ON e AS c RULE a WHEN c.n > 1 THEN SET f = c._offset, n = c.n + 1"
    (row,) = answer(text)
    assert list(row) == ["n", "x", "s", "ok", "ts", "f", "rule"]
    assert (row["n"], row["f"], row["rule"]) == (6, 7, "a")


def test_words_in_texts_and_cases_are_no_clauses() -> None:
    (row,) = answer(
        "ON e RULE a WHEN CASE WHEN ok THEN true ELSE false END AND s <> 'then' "
        "THEN SET f = 'RULE x WHEN, ELSE', g = concat(s, ',') ELSE SET f = 'no'"
    )
    assert (row["f"], row["g"]) == ("RULE x WHEN, ELSE", "a,")
