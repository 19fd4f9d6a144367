"""What is shed is a function of the decision and the place, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.position import Interval, Position, PositionRange
from headrace.core.shedding import Shedding, decide_shedding

RANGE = PositionRange(Position((10, 0)), Position((1_010, 3_000)))


def taken(shedding: Shedding, partition: int, lower: int, upper: int) -> list[int]:
    offsets = np.arange(lower, upper)
    return offsets[shedding.takes(partition, Interval(lower, upper), offsets)].tolist()


def test_nothing_is_decided_up_to_the_lag_and_a_share_above_it() -> None:
    assert decide_shedding(RANGE, "random", 4_000, 10) is None
    assert decide_shedding(RANGE, "random", 1_000, 5_000) == Shedding("random", 0.25)
    assert decide_shedding(RANGE, "oldest", 3_999, 400) == Shedding("oldest", 0.1)


@pytest.mark.parametrize("how", ["random", "oldest"])
def test_a_decision_survives_being_written_down(how: str) -> None:
    shedding = Shedding(how, 0.123457)
    assert Shedding.parse(str(shedding)) == shedding


def test_the_oldest_events_of_each_partition_are_passed_over() -> None:
    assert taken(Shedding("oldest", 0.5), 0, 10, 20) == [15, 16, 17, 18, 19]
    assert taken(Shedding("oldest", 0.5), 1, 4, 7) == [5, 6]


@pytest.mark.parametrize("share", [0.05, 0.42, 0.9])
@pytest.mark.parametrize("partition", [0, 1, 63])
def test_about_the_share_is_taken_at_random(partition: int, share: float) -> None:
    many = len(taken(Shedding("random", share), partition, 7_000, 27_000))
    assert abs(many / 20_000 - share) < 0.02


@given(st.integers(0, 99), st.integers(0, 99), st.floats(0.01, 0.99))
def test_chance_is_a_matter_of_the_place_and_not_of_the_range(a: int, b: int, share: float) -> None:
    shedding, (lower, upper) = Shedding("random", share), sorted((a, b))
    whole = taken(shedding, 2, 0, 100)
    assert taken(shedding, 2, lower, upper) == [n for n in whole if lower <= n < upper]


def test_partitions_do_not_shed_the_same_offsets() -> None:
    shedding = Shedding("random", 0.5)
    assert taken(shedding, 0, 0, 200) != taken(shedding, 1, 0, 200)


@pytest.mark.parametrize("how", ["random", "oldest"])
def test_what_is_passed_over_and_what_is_taken_are_the_whole(how: str) -> None:
    shedding = Shedding(how, 0.3)
    for partition, passed in shedding.passed_over(RANGE):
        lower, upper = RANGE.lower.offsets[partition], RANGE.upper.offsets[partition]
        both = [*taken(shedding, partition, lower, upper), *passed.tolist()]
        assert sorted(both) == list(range(lower, upper))
