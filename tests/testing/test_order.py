"""The order of events: by event time, then by place in the log."""

from __future__ import annotations

import pytest
from sqlglot import exp

from headrace.testing.reference.order import EVENT_TIME, by_key, event_time, in_order
from headrace.testing.reference.values import Row, Timestamp


def row(us: int | None, offset: int, partition: int = 0) -> Row:
    time = None if us is None else Timestamp(us)
    return {("s", EVENT_TIME): time, ("s", "_offset"): offset, ("s", "_partition"): partition}


def test_time_comes_before_place_and_offset_before_partition() -> None:
    rows = [row(2, 0), row(1, 3), row(1, 2, partition=1), row(1, 2)]
    assert in_order(rows) == [row(1, 2), row(1, 2, partition=1), row(1, 3), row(2, 0)]


def test_an_event_without_a_time_has_no_place() -> None:
    assert in_order([row(None, 0), row(1, 1)]) == [row(1, 1)]


def test_in_a_stream_without_a_watermark_the_order_is_that_of_the_log() -> None:
    rows: list[Row] = [{("s", "_offset"): offset} for offset in (2, 0, 1)]
    assert [r["s", "_offset"] for r in in_order(rows)] == [0, 1, 2]


def test_of_a_pair_the_time_of_the_left_event_counts() -> None:
    left: Row = {("a", EVENT_TIME): Timestamp(5)}
    right: Row = {("b", EVENT_TIME): Timestamp(1)}
    assert event_time(left | right) == Timestamp(5)
    assert event_time({}) is None


@pytest.mark.parametrize("values", [(1, None, 1), (float("nan"), 2.0, float("nan"))])
def test_null_and_nan_are_keys(values: tuple[object, ...]) -> None:
    column = exp.column("k", table="s")
    groups = by_key([column], [{("s", "k"): value} for value in values])
    assert [len(group) for group in groups] == [2, 1]
