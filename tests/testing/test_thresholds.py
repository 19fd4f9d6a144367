"""The reference's thresholds: which words it reads, and which events reach them."""

from __future__ import annotations

import pytest

from headrace.core.errors import UnknownColumn
from headrace.testing.reference import Reference, StreamWatermark, Timestamp
from headrace.testing.reference.thresholds import threshold_of

SECOND = 1_000_000


def reached(query: str, *events: tuple[str, str, int]) -> list[dict[str, object]]:
    """The rows of a threshold over (user, url, second); the watermark passes all but the last."""
    rows = [
        {"user": user, "url": url, "ts": Timestamp(second * SECOND), "_offset": n, "_partition": 0}
        for n, (user, url, second) in enumerate(events)
    ]
    reference = Reference(
        {"clicks": ["user", "url", "ts"]},
        {},
        {"t": query},
        watermarks={"clicks": StreamWatermark("ts", 0)},
    )
    return reference.answer("t", {"clicks": rows})


def times(rows: list[dict[str, object]]) -> list[tuple[object, object]]:
    return [(str(row["began"])[-3:-1], str(row["ended"])[-3:-1]) for row in rows]


COUNT = "count(*) >= 2 WITHIN INTERVAL 10 SECONDS PER user FROM clicks"


def test_other_queries_are_no_thresholds() -> None:
    assert threshold_of("SELECT count(*) AS n FROM clicks") is None


def test_an_event_reaches_it_if_without_it_the_interval_has_too_few() -> None:
    found = reached(COUNT, ("a", "", 1), ("a", "", 5), ("a", "", 6), ("b", "", 7), ("z", "", 50))
    assert times(found) == [("01", "05")]
    assert [row["user"] for row in found] == ["a"]


def test_the_interval_is_half_open() -> None:
    assert reached(COUNT, ("a", "", 1), ("a", "", 11), ("z", "", 50)) == []
    assert times(reached(COUNT, ("a", "", 2), ("a", "", 11), ("z", "", 50))) == [("02", "11")]


def test_an_event_that_the_watermark_has_not_passed_does_not_count() -> None:
    assert reached(COUNT, ("a", "", 1), ("a", "", 5)) == []


def test_a_value_counts_once_and_from_its_last_time() -> None:
    query = "count(DISTINCT url) > 1 WITHIN INTERVAL 10 SECONDS PER user FROM clicks"
    events = (("a", "x", 1), ("a", "x", 4), ("a", "y", 5), ("a", "x", 6), ("z", "", 50))
    assert times(reached(query, *events)) == [("04", "05")]


def test_a_key_that_is_no_column_is_refused() -> None:
    with pytest.raises(UnknownColumn, match="there is no column 'ip' to count by"):
        reached("count(*) >= 2 WITHIN INTERVAL 1 MINUTE PER ip FROM clicks", ("a", "", 1))
