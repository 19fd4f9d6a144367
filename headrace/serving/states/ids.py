"""An exact set of integers: sorted, delta-encoded, compressed.

Spark writes the numbers of an epoch or a build as comma-separated text; a merged set is packed.
Ids that are close together take a fraction of a byte each, random ones of 64 bits about eight. A
merge reads the whole set, so its cost depends on the size of the set, not of the epoch.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

_LOWEST = -(1 << 63)
_PACKED = b"x"  # the first byte of zlib data; no number starts with it


def merge(states: Sequence[bytes]) -> bytes:
    return _packed(set().union(*map(_ids, states)))


def count(state: bytes) -> int:
    return len(set(_ids(state)))


def same(a: bytes, b: bytes) -> bool:
    return set(_ids(a)) == set(_ids(b))


def _ids(state: bytes) -> Iterable[int]:
    if not state.startswith(_PACKED):
        return map(int, state.decode().split(",")) if state else ()
    steps = array("Q")
    steps.frombytes(zlib.decompress(state))
    return accumulate(steps[1:], initial=steps[0] + _LOWEST) if steps else ()


def _packed(ids: set[int]) -> bytes:
    ordered = sorted(ids)
    # The first step is the distance from the lowest 64-bit integer, so that no step is negative.
    first = [ordered[0] - _LOWEST] if ordered else []
    steps = array("Q", first + [b - a for a, b in pairwise(ordered)])
    return zlib.compress(steps.tobytes(), 1)
