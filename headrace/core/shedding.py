"""Shedding: which events of an epoch speed skips when it cannot keep up.

The decision is made once, when the epoch begins, and is kept with it: how, and which share is
taken. From then on it is a function of an event's place, so a replayed epoch skips the same events.
Nothing is lost: the events stay in the log and the master, and batch counts them.
tests/core/test_shedding.py checks both ways of shedding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.core.position import Interval, PositionRange

_MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


@dataclass(frozen=True, slots=True)
class Shedding:
    """`how` is "random" or "oldest"; about `share` of the events are taken.

    >>> Shedding.parse("oldest 0.25").takes(0, Interval(8, 16), np.arange(8, 16)).tolist()
    [False, False, False, False, False, False, True, True]
    """

    how: str
    share: float

    @staticmethod
    def parse(text: str) -> Shedding:
        how, _, share = text.partition(" ")
        return Shedding(how, float(share))

    def __str__(self) -> str:
        return f"{self.how} {self.share!r}"

    def takes(
        self, partition: int, interval: Interval, offsets: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """For each offset of an epoch's `interval`, whether its event is taken."""
        if self.how == "oldest":
            return offsets >= interval.upper - round(self.share * len(interval))
        return _mixed(partition, offsets) < self.share

    def passed_over(self, range: PositionRange) -> list[tuple[int, NDArray[np.int64]]]:
        """The offsets of a range that are not taken, in each partition."""
        found = []
        for partition, interval in range.intervals():
            offsets = np.arange(interval.lower, interval.upper, dtype=np.int64)
            found.append((partition, offsets[~self.takes(partition, interval, offsets)]))
        return found


def decide_shedding(
    range: PositionRange, how: str, lag_max: int, taken_max: int
) -> Shedding | None:
    """The shedding of an epoch with all events that are waiting; None if there is no overload."""
    if len(range) <= lag_max:
        return None
    return Shedding(how, round(min(lag_max, taken_max) / len(range), 6))


def _mixed(partition: int, offsets: NDArray[np.int64]) -> NDArray[Any]:
    """A number in [0, 1) for each place: splitmix64, so that neighbours have nothing in common."""
    places = offsets.astype(np.uint64) + (np.uint64(partition + 1) << np.uint64(48))
    mixed = places * np.uint64(0x9E3779B97F4A7C15)
    for shift, multiplier in zip((30, 27), _MULTIPLIERS, strict=True):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(multiplier)
    return (mixed ^ (mixed >> np.uint64(31))).astype(np.float64) / 2.0**64
