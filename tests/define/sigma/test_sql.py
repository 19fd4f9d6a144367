"""Conditions mean in SQL what they mean in Sigma: each is asked of an event, in DuckDB."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from headrace.core.origin import Origin
from headrace.define.dialect import parse_query
from headrace.define.sigma.columns import FieldColumns
from headrace.define.sigma.detection import detection_tree
from headrace.define.sigma.sql import condition, literal
from headrace.define.sigma.tree import leaves


def holds(detection: dict[str, Any], event: dict[str, Any]) -> bool:
    """Whether a WHERE with the detection's SQL lets the event through."""
    tree, columns = detection_tree(detection, "message"), FieldColumns()
    columns.learn(leaves(tree))
    kinds = {column: columns.type(column) for column in columns.types}
    given = [f"CAST({_said(event.get(c))} AS {kind}) AS {c}" for c, kind in kinds.items()]
    text = f"SELECT * FROM (SELECT {', '.join(given)}) WHERE {condition(tree, columns, 2)}"
    found = duckdb.connect().sql(parse_query(text, Origin("t", 1)).sql("duckdb")).fetchall()
    return bool(found)


def _said(value: Any) -> str:
    return "NULL" if value is None else literal(str(value))


@pytest.mark.parametrize(
    ("key", "said", "yes", "no"),
    [
        ("a", "Admin", ["admin", "ADMIN"], ["admins", "", None]),
        ("a|cased", "Admin", ["Admin"], ["admin"]),
        ("a", ["x", "y", 7], ["X", "y", "7"], ["z", None]),
        ("a", "x*z?", ["xz1", "XyyZ2"], ["xz", "axz1"]),
        ("a", r"x\*", ["x*"], ["xx", "x"]),
        ("a", r"C:\x", [r"c:\X"], ["C:x", r"C:\\x"]),
        ("a", "", [""], ["x", None]),
        ("a", "*", ["", "x"], [None]),
        ("a", None, [None], ["", "x"]),
        ("a", 7, [7], [8, None]),
        ("a", True, [True], [False, None]),
        ("a|contains", "50%_!", ["a 50%_! b"], ["a 50 b", "a 50x_! b"]),
        ("a|contains|all", ["x", "y"], ["a y x"], ["x", "y"]),
        ("a|startswith", "it's", ["IT'S me"], ["is it's"]),
        ("a|endswith", "\\cmd.exe", [r"c:\CMD.exe"], ["cmd.exe", r"\cmd.exe "]),
        ("a|re", r"^s\d+$", ["s12"], ["S12", "s"]),
        ("a|re|i", "^s", ["S12"], ["as"]),
        ("a|cidr", "10.1.0.0/15", ["10.0.9.9", "10.1.0.1"], ["10.2.0.1", "110.0.0.1", "10.1"]),
        ("a|cidr", "192.0.2.7/32", ["192.0.2.7"], ["192.0.2.70"]),
        ("a|cidr", "0.0.0.0/0", ["192.0.2.7"], ["::1"]),
        ("a|gt", 5, [6], [5, None]),
        ("a|lte", 0.5, [0.5, 0], [0.6]),
        ("a|exists", True, ["x"], [None]),
        ("a|exists", False, [None], ["x"]),
        ("a|neq", "x", ["y", None], ["X"]),
    ],
)
def test_a_test_means_what_sigma_says(key: str, said: Any, yes: list[Any], no: list[Any]) -> None:
    detection = {"s": {key: said}, "condition": "s"}
    opposite = {"s": {key: said}, "condition": "not s"}
    for value in yes:
        assert holds(detection, {"a": value})
        assert not holds(opposite, {"a": value})
    for value in no:
        assert not holds(detection, {"a": value})
        assert holds(opposite, {"a": value}), "not of what is missing is true"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a and b", False),
        ("a or b", True),
        ("a and not b", True),
        ("not (a and b)", True),
        ("not a or not b", True),
        ("not not a", True),
        ("1 of *", True),
        ("all of them", False),
        ("not b and a or b", True),
        ("not (not b and a)", False),
    ],
)
def test_a_condition_over_a_missing_field_is_true_or_false(condition: str, expected: bool) -> None:
    detection = {"a": {"x": 1}, "b": {"y": 1}, "condition": condition}
    assert holds(detection, {"x": 1, "y": None}) is expected
    # A number that is compared with texts elsewhere is a text itself.
    texts = {"a": {"x": 1}, "b": [{"y": 1}, {"y": "no", "x": "no"}], "condition": condition}
    assert holds(texts, {"x": 1, "y": None}) is expected


def test_keywords_are_searched_in_the_column_that_is_named() -> None:
    detection = {"words": ["Dump", 7], "condition": "words"}
    assert holds(detection, {"message": "a dump"})
    assert holds(detection, {"message": "at 17"})
    assert not holds(detection, {"message": "nothing"})
