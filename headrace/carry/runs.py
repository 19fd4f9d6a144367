"""Runs of rows with one key, in rows that are sorted by key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Indices = NDArray[np.int64]


def runs(keys: pa.Array) -> Iterator[tuple[str, int, int]]:
    """(key, lower, upper) of each run.

    >>> list(runs(pa.array(["a", "a", "b"])))
    [('a', 0, 2), ('b', 2, 3)]
    """
    encoded = pc.run_end_encode(keys)
    lower = 0
    for key, upper in zip(encoded.values.to_pylist(), encoded.run_ends.to_pylist(), strict=True):
        yield key, lower, upper
        lower = upper


@dataclass(frozen=True, slots=True)
class EventRuns:
    """The runs of a batch, of which the first row may be a state. The intervals are of its events,
    without these rows.

    >>> found = EventRuns.of(pa.array(["a", "a", "b", "c"]), np.array([True, False, False, True]))
    >>> found.keys, found.lowers.tolist(), found.uppers.tolist(), found.states.tolist()
    (['a', 'b', 'c'], [0, 1, 2], [1, 2, 2], [0, 3])
    """

    keys: list[str]
    lowers: Indices
    uppers: Indices
    stated: NDArray[np.bool_]  # the run begins with a state
    states: Indices  # the rows of these states

    @classmethod
    def of(cls, keys: pa.Array, is_state: NDArray[np.bool_]) -> EventRuns:
        encoded = pc.run_end_encode(keys)
        ends = encoded.run_ends.to_numpy().astype(np.int64)
        begins = np.concatenate((np.zeros(1, np.int64), ends[:-1]))[: len(ends)]
        stated = is_state[begins]
        before = np.cumsum(stated)
        return cls(
            encoded.values.to_pylist(), begins + stated - before, ends - before, stated,
            begins[stated],
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.keys)
