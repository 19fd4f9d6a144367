"""How long a build is expected to take."""

from __future__ import annotations

from headrace.run.build_time import BuildTimeEstimate


def test_before_the_first_build_nothing_is_expected() -> None:
    assert BuildTimeEstimate().seconds(100) is None


def test_a_build_that_read_nothing_tells_nothing() -> None:
    build_time = BuildTimeEstimate()
    build_time.add(0, 3.0)
    assert build_time.seconds(100) is None


def test_more_events_take_longer_in_proportion_and_fewer_no_longer() -> None:
    build_time = BuildTimeEstimate()
    build_time.add(1_000, 4.0)
    assert (build_time.seconds(2_500), build_time.seconds(1_000), build_time.seconds(10)) == (
        10.0,
        4.0,
        4.0,
    )


def test_small_builds_do_not_change_what_the_largest_has_told() -> None:
    build_time = BuildTimeEstimate()
    build_time.add(1_000, 4.0)
    build_time.add(10, 3.0)
    assert build_time.seconds(1_000) == 4.0
    build_time.add(1_000, 6.0)
    assert build_time.seconds(1_000) == 6.0
