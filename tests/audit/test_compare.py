"""Rows of an answer and of DuckDB, made by hand: which of them are the same."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.audit.compare import compare
from headrace.compile.plan import OutputPlan, ViewPlan
from headrace.core.aggregate import Estimate

SPEED, ALWAYS = Estimate("speed", 0.01), Estimate("always", 0.01)
RANK = Estimate("always", 0.01, of="rank")


def found(
    type: str, ours: Any, theirs: Any, estimate: Estimate | None = None, fresh: int = 1
) -> int:
    key = OutputPlan("k", "STRING", "k0", key="k0")
    outputs = (key, OutputPlan("x", type, "p0", estimate=estimate))
    view = ViewPlan("v", "mergeable", "", outputs)
    return compare(view, [("a", ours, fresh)], [("a", theirs)]).differences


@pytest.mark.parametrize(
    ("estimate", "fresh", "ours", "differences"),
    [
        (ALWAYS, 0, 1_060, 0),
        (ALWAYS, 0, 1_061, 1),
        (SPEED, 1, 1_060, 0),
        (SPEED, 0, 1_001, 1),
        (None, 1, 1_001, 1),
        (RANK, 1, 5_000, 0),
    ],
)
def test_an_estimate_may_be_off_by_six_errors(
    estimate: Estimate | None, fresh: int, ours: int, differences: int
) -> None:
    assert found("BIGINT", ours, 1_000, estimate, fresh) == differences


@pytest.mark.parametrize(
    ("type", "ours", "theirs", "differences"),
    [
        ("ARRAY<BIGINT>", "[1, 2]", [1, 2], 0),
        ("ARRAY<BIGINT>", '{"cut": [1, 2]}', [1, 2], 0),
        ("ARRAY<BIGINT>", "[1, 2]", [2, 1], 1),
        ("ARRAY<BOOLEAN>", "[false, true]", [False, True], 0),
        ("ARRAY<TIMESTAMP>", '["1970-01-01T00:00:01Z"]', [1_000_000], 0),
        ("ARRAY<STRING>", '["\\u00fc"]', ["ü"], 0),
        ("STRUCT<below: BIGINT, bins: ARRAY<BIGINT>>", '{"below": 1, "bins": [2]}',
         {"below": 1, "bins": [2]}, 0),
        ("STRUCT<below: BIGINT, bins: ARRAY<BIGINT>>", '{"below": 1, "bins": [2]}',
         {"below": 0, "bins": [2]}, 1),
    ],
)  # fmt: skip
def test_lists_and_objects_must_be_equal(
    type: str, ours: str, theirs: Any, differences: int
) -> None:
    assert found(type, ours, theirs) == differences


def test_what_was_not_compared_is_named() -> None:
    outputs = (
        OutputPlan("p", "BIGINT", "p0", estimate=RANK),
        OutputPlan("n", "BIGINT", "p1", estimate=ALWAYS),
    )
    result = compare(ViewPlan("v", "mergeable", "", outputs), [(1, 2, 0)], [(None, 2)])
    assert (result.differences, result.note) == (0, "not compared, being estimates: p")
