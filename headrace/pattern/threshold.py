"""The search for thresholds: a number of events, or of different values, within an interval.

Of a key only the newest events are kept that can still reach it: one event more than the threshold,
or the last time of one value more. So a key's state has a bound, whatever its rate.
tests/pattern/test_threshold.py compares it with counting over every interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from headrace.core.pattern import Threshold
from headrace.core.storage import NAN

Row = tuple[int, Any, tuple[Any, ...]]  # time, place, values


class ThresholdMatch(NamedTuple):
    """A threshold that an event has reached: the times of the first and the last that count."""

    row: Row
    measures: tuple[int, int]


class ThresholdMatcher:
    """Begins and resumes the searches of single keys."""

    def __init__(self, threshold: Threshold) -> None:
        self.threshold = threshold

    def begin(self) -> EventCountSearch | DistinctValueSearch:
        return self.resume(None)

    def rows_in(self, state: Any) -> list[Row]:
        """The rows that a state has: none, as times and values are enough."""
        return []

    def masks(self, rows: Sequence[Row], lowers: Sequence[int]) -> list[int]:
        """A threshold has no variables."""
        return [0] * len(rows)

    def resume(
        self, state: Any, masks: Sequence[int] = ()
    ) -> EventCountSearch | DistinctValueSearch:
        state = state or []
        if self.threshold.counted is None:
            return EventCountSearch(self.threshold, list(state))
        return DistinctValueSearch(self.threshold, [tuple(pair) for pair in state])


class _Search:
    """`take` adds rows, `matches` returns the thresholds that they have reached."""

    given_up = None  # its state is bounded, so it is never given up

    def __init__(self, threshold: Threshold) -> None:
        self.threshold = threshold
        self.rows: Sequence[Row] = ()
        self.mark_us: int | None = None

    def take(self, rows: Sequence[Row], masks: Sequence[int] = ()) -> None:
        self.rows = rows

    def newest_us(self) -> int | None:
        raise NotImplementedError

    def due_us(self) -> int | None:
        """When the key can be forgotten; only events reach a threshold."""
        newest = self.newest_us()
        return None if newest is None else newest + self.threshold.within_us

    def forgotten(self) -> bool:
        due = self.due_us()
        return due is None or (self.mark_us is not None and self.mark_us >= due)


class EventCountSearch(_Search):
    """Counts events: the newest times are kept, oldest first."""

    def __init__(self, threshold: Threshold, times: list[int]) -> None:
        super().__init__(threshold)
        self.times = times

    def matches(self, mark_us: int | None, ended: bool) -> Iterator[ThresholdMatch]:
        least, within_us, times = self.threshold.least, self.threshold.within_us, self.times
        for row in self.rows:
            time = row[0]
            times.append(time)
            if len(times) < least or times[-least] <= time - within_us:
                continue
            if len(times) == least or times[-least - 1] <= time - within_us:
                yield ThresholdMatch(row, (times[-least], time))
            del times[: -least - 1]
        del times[: -least - 1]
        self.rows, self.mark_us = (), mark_us

    def state(self) -> list[int] | None:
        return None if self.forgotten() else self.times

    def newest_us(self) -> int | None:
        return self.times[-1] if self.times else None


class DistinctValueSearch(_Search):
    """Counts different values: each with the time it was last seen, oldest first."""

    def __init__(self, threshold: Threshold, seen: list[tuple[Any, int]]) -> None:
        super().__init__(threshold)
        self.seen = dict(seen)
        self.column = threshold.columns.index(threshold.counted or "")

    def matches(self, mark_us: int | None, ended: bool) -> Iterator[ThresholdMatch]:
        for row in self.rows:
            time, value = row[0], row[2][self.column]
            if value is None:
                continue
            value = NAN if value != value else value  # all NaN are one key
            before = self.seen.pop(value, None)
            self.seen[value] = time
            if (began := self.reached(time, before)) is not None:
                yield ThresholdMatch(row, (began, time))
        self.rows, self.mark_us = (), mark_us

    def reached(self, time: int, before: int | None) -> int | None:
        """When the interval's values began, if it holds enough of them only with this event."""
        least, lower = self.threshold.least, time - self.threshold.within_us
        while len(self.seen) > least + 1:
            del self.seen[next(iter(self.seen))]
        times = [at for at in self.seen.values() if at > lower]
        again = before is not None and before > lower
        return times[0] if len(times) == least and not again else None

    def state(self) -> list[tuple[Any, int]] | None:
        return None if self.forgotten() else list(self.seen.items())

    def newest_us(self) -> int | None:
        return max(self.seen.values(), default=None)
