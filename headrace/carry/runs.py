"""Runs of rows with one key, in rows that are sorted by key."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc


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
