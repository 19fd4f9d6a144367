"""Names of columns, and the types that are asked for."""

from __future__ import annotations

import pytest

from headrace.define.sigma.columns import FieldColumns, column_of, quoted
from headrace.define.sigma.tree import leaves
from headrace.define.sigma.values import tree_of


@pytest.mark.parametrize(
    ("field", "column"),
    [("a.b-c", "a_b_c"), ("@timestamp", "timestamp"), ("_x", "x"), ("7z", "f_7z"), ("Ä b", "b")],
)
def test_a_field_becomes_a_column(field: str, column: str) -> None:
    assert column_of(field) == column


def test_a_field_without_letters_is_refused_and_words_of_sql_are_quoted() -> None:
    with pytest.raises(ValueError, match=r"no column name can be made from the field '@'"):
        column_of("@")
    assert [quoted(name) for name in ("user", "date")] == ["user", "`date`"]


def test_a_column_has_one_type_and_one_spelling() -> None:
    columns = FieldColumns()
    for field, value in (("N.x", 1), ("n_x", 0.5), ("t", 1), ("t", "a"), ("b", True), ("o", None)):
        columns.learn(leaves(tree_of(field, [], value)))
    assert [columns.type(c) for c in ["n_x", "t", "b", "o"]] == [
        "DOUBLE",
        "STRING",
        "BOOLEAN",
        "STRING",
    ]
    assert columns.sql("n_x") == "N_x"
