"""HLL sketches made by Spark, merged and read with the datasketches package.

Both are Apache DataSketches, so the bytes travel. The number of a sketch is always read from a
union, whatever it was made of, so that equal registers give equal numbers.
tests/serving/test_sketches.py checks this against Spark's own union.
"""

from __future__ import annotations

from collections.abc import Iterable

from headrace.core.aggregate import HLL_LG_K


def union(sketches: Iterable[bytes | None]) -> bytes | None:
    """One sketch for all; NULL where there is none."""
    merged = _union(sketches)
    return bytes(merged.get_result().serialize_compact()) if merged else None


def estimate(sketches: Iterable[bytes | None]) -> float | None:
    """How many distinct values the sketches hold together."""
    merged = _union(sketches)
    return float(merged.get_estimate()) if merged else None


class UnionAll:
    """`union` as an aggregate of SQL."""

    def __init__(self) -> None:
        self.sketches: list[bytes | None] = []

    def step(self, sketch: bytes | None) -> None:
        self.sketches.append(sketch)

    def finalize(self) -> bytes | None:
        return union(self.sketches)


def _union(sketches: Iterable[bytes | None]):  # type: ignore[no-untyped-def]
    # Imported when needed: most answers need no sketch, and the import is slow.
    from datasketches import hll_sketch, hll_union

    merged = None
    for sketch in sketches:
        if sketch is not None:
            merged = merged or hll_union(HLL_LG_K)
            merged.update(hll_sketch.deserialize(bytes(sketch)))
    return merged
