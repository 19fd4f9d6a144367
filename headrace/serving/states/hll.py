"""HLL sketches made by Spark, merged and read with the datasketches package.

Both are Apache DataSketches with the same bytes. The estimate of a sketch is always read from a
union, so that equal registers give equal estimates.
tests/serving/test_sketches.py checks this against Spark's own union.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headrace.core.aggregate import HLL_LG_K


def merge(sketches: Sequence[bytes]) -> bytes:
    """The union of sketches."""
    return bytes(_union(sketches).get_result().serialize_compact())


def count(sketch: bytes) -> int:
    """The estimated number of distinct values."""
    return round(float(_union((sketch,)).get_estimate()))


def _union(sketches: Iterable[bytes]) -> Any:
    # Imported on use: most answers need no sketch, and the import is slow.
    from datasketches import hll_sketch, hll_union

    merged = hll_union(HLL_LG_K)
    for sketch in sketches:
        merged.update(hll_sketch.deserialize(sketch))
    return merged
