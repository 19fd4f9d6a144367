"""Rounds: the first events of all runs, then the second ones, and so on.

A run is the rows of one key. Within a round no event depends on another, so a step computes a whole
round at once; and the events of each run are taken in their order. Rounds end where so few runs are
left that a call for each of them is faster. tests/carry/test_vector_steps.py checks that every
event is in one round or in what is left.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]
RUNS_MIN = 32  # of a round


class Rounds:
    """`order` are the runs, longest first; a round takes the first so many of them.

    >>> found = Rounds(np.array([0, 1]), np.array([1, 4]), runs_min=1)
    >>> [rows.tolist() for rows in found], list(found.left())
    ([[1, 0], [2], [3]], [])
    """

    def __init__(self, lowers: Rows, uppers: Rows, runs_min: int = RUNS_MIN) -> None:
        lengths = uppers - lowers
        self.order = np.argsort(-lengths, kind="stable")
        self.lowers, self.uppers = lowers[self.order], uppers[self.order]
        rising = lengths[self.order][::-1]
        longest = int(rising[-1]) if len(rising) else 0
        counts = len(rising) - np.searchsorted(rising, np.arange(longest), side="right")
        self.counts: list[int] = counts[counts >= runs_min].tolist()

    def __iter__(self) -> Iterator[Rows]:
        """The rows of each round, in the order of the runs."""
        for number, count in enumerate(self.counts):
            yield self.lowers[:count] + number

    def left(self) -> Iterator[tuple[int, int, int]]:
        """What no round takes: the place of a run in `order`, and its interval of rows."""
        return self._after(len(self.counts))

    def all(self) -> Iterator[tuple[int, int, int]]:
        """Every run that has rows, as in `left`."""
        return self._after(0)

    def _after(self, rounds: int) -> Iterator[tuple[int, int, int]]:
        lowers = self.lowers + rounds
        for place in np.flatnonzero(lowers < self.uppers).tolist():
            yield place, int(lowers[place]), int(self.uppers[place])
