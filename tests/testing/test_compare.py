"""The sentences that `differences` says."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.testing import differences

WINDOW = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:00:10Z"}


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ([], []),
        ([{"n": 1}, {"n": 2}], [{"n": 2}, {"n": 1}]),
        ([{"n": 1}, {"n": 1}], [{"n": 1}, {"n": 1}]),
        ([{"x": 0.1 + 0.2}], [{"x": 0.3}]),
        ([{"x": 3}], [{"x": 3.0}]),
        ([{"x": 0.0}], [{"x": 1e-13}]),
        ([{"x": float("nan")}], [{"x": float("nan")}]),
        ([{"w": WINDOW, "t": ["a", None]}], [{"w": dict(WINDOW), "t": ["a", None]}]),
    ],
)
def test_answers_that_are_the_same(expected: Any, actual: Any) -> None:
    assert differences(expected, actual) == []


@pytest.mark.parametrize(
    ("expected", "actual", "sentences"),
    [
        ([{"n": 1}], [{"n": 2}], ["row: n should be 1 but is 2"]),
        ([{"n": 1}, {"n": 1}], [{"n": 1}], ["missing row n=1"]),
        ([{"n": 1}], [{"n": 1}, {"n": 1}], ["unexpected row n=1"]),
        ([{"n": 1}], [{"n": True}], ["row: n should be 1 but is True"]),
        ([{"n": 2**60 + 1}], [{"n": 2**60}], [f"row: n should be {2**60 + 1} but is {2**60}"]),
        ([{"n": None}], [{"n": 0}], ["row: n should be None but is 0"]),
        ([{"n": 1}], [{}], ["row: the column n is missing"]),
        ([{"n": 1}], [{"n": 1, "m": 2}], ["row n=1: the column m is not expected"]),
        ([{"u": "a", "n": 1.0}], [{"u": "a", "n": 1.1}], ["row u='a': n should be 1.0 but is 1.1"]),
        ([{"u": ""}], [{"u": None}], ["missing row u=''", "unexpected row u=None"]),
        ([{"w": WINDOW}], [], ["missing row w=[2026-01-01T00:00:00Z, 2026-01-01T00:00:10Z)"]),
    ],
)  # fmt: skip
def test_each_difference_is_a_sentence(expected: Any, actual: Any, sentences: list[str]) -> None:
    assert differences(expected, actual) == sentences


def test_an_approximate_column_may_differ_by_its_error() -> None:
    assert differences([{"n": 100}], [{"n": 104}], {"n": 0.05}) == []
    assert differences([{"n": 100}], [{"n": 120}], {"n": 0.05}) == [
        "row: n should be 100 but is 120"
    ]
