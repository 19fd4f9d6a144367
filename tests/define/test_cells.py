"""Each form of a cell, and each that is none."""

from __future__ import annotations

import pytest

from headrace.core.origin import Origin
from headrace.define.cells import read_results, read_test
from headrace.define.rules import CellTest, SqlFragment

AT = Origin("d.csv", 2)
TYPE = SqlFragment("type", Origin("d.csv", 1), "column 'type'")


def read(text: str) -> SqlFragment | CellTest | None:
    return read_test(text, TYPE, AT, "rule 'a', row 2, column 'type'")


@pytest.mark.parametrize(
    ("text", "operator", "values"),
    [
        ("5", "=", ("5",)),
        ("O", "=", ("O",)),
        ("two words", "=", ("two words",)),
        ("1|3 | 5", "=", ("1", "3", "5")),
        (">= 10", ">=", ("10",)),
        ("<3", "<", ("3",)),
        ("!= x", "!=", ("x",)),
        ("<> x|y", "!=", ("x", "y")),
        ("10..20", "range", ("10", "20")),
        ("-1.5 .. 0.5", "range", ("-1.5", "0.5")),
        ("2026-01-01..2026-01-31", "range", ("2026-01-01", "2026-01-31")),
        ("null", "null", ()),
        ("NOT  NULL", "not null", ()),
        ("'*'", "=", ("*",)),
        ("'NULL'", "=", ("NULL",)),
        ("'a|b'|'it''s'", "=", ("a|b", "it's")),
        ("!= '..'", "!=", ("..",)),
        ("''", "=", ("",)),
    ],
)
def test_a_test_is_read(text: str, operator: str, values: tuple[str, ...]) -> None:
    assert read(text) == CellTest(TYPE, operator, values, AT, "rule 'a', row 2, column 'type'")


def test_any_value_will_do_where_nothing_is_said() -> None:
    assert [read(""), read("*")] == [None, None]


def test_a_cell_may_be_a_condition_of_its_own() -> None:
    found = read("= type > 3 OR ok")
    assert isinstance(found, SqlFragment)
    assert (found.text, found.origin) == ("type > 3 OR ok", AT)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1||3", "a value is missing in '1||3'"),
        (">=", "a value is missing in ''"),
        ("10..", "a value is missing in '10..'"),
        ("1..2..3", "'1..2..3' is not a range such as 10..20"),
        ("> 1|2", "'>' requires a single value, got '> 1|2'"),
        ("=", "expected SQL after '='"),
    ],
)
def test_what_is_no_test_gets_its_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence.replace("|", r"\|").replace(".", r"\.")) as found:
        read(text)
    assert str(found.value) == sentence


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "-2", ""], ["1", "-2", None]),
        (["1", "2.5"], ["1", "2.5D"]),
        (["1", "x"], ["'1'", "'x'"]),
        (["0049", "1"], ["'0049'", "'1'"]),
        (["TRUE", "false"], ["true", "false"]),
        (["1", "=seconds / 2"], ["1", "seconds / 2"]),
        (["it's", "'it''s'"], ["'it''s'", "'it''s'"]),
        (["'5'", "6"], ["'5'", "'6'"]),
    ],
)
def test_results_of_a_column_are_of_one_kind(cells: list[str], expected: list[str | None]) -> None:
    assert read_results(cells) == expected
