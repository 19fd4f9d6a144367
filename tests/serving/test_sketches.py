"""Spark's HLL sketches and ours are the same: merged by either, they give the same number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from headrace.core.aggregate import HLL_LG_K, Merge
from headrace.serving.states import finished, merged

# Small sketches are lists and sets of hashes, large ones registers; each pair crosses an edge.
PARTS = [(0, 0), (0, 1), (1, 1), (5, 5), (20, 30), (150, 200), (50, 5_000), (4_000, 6_000)]


@pytest.fixture(scope="module")
def sketches(spark: Any) -> list[tuple[bytes | None, bytes | None, bytes | None, int | None]]:
    """For each pair: both sketches, Spark's union of them, and Spark's number of that."""
    half = f"hll_sketch_agg(v, {HLL_LG_K}) FILTER (WHERE side = '{{}}')"
    rows = " UNION ALL ".join(
        f"SELECT {n} AS pair, '{side}' AS side, concat('user ', id + {shift}) AS v "
        f"FROM range({size})"
        for n, (a, b) in enumerate(PARTS)
        for side, size, shift in (("a", a, 0), ("b", b, a // 2))
    )
    found = spark.sql(
        f"SELECT pair, {half.format('a')} AS a, {half.format('b')} AS b, "
        f"hll_sketch_agg(v, {HLL_LG_K}) AS both FROM ({rows}) GROUP BY pair"
    ).selectExpr("pair", "a", "b", "hll_union(a, b) AS u", "hll_sketch_estimate(both) AS whole")
    by_pair = {row.pair: row for row in found.collect()}
    made: list[Any] = []
    for n in range(len(PARTS)):
        row = by_pair.get(n)
        made.append((row.a, row.b, row.u, row.whole) if row else (None, None, None, None))
    return made


def union(sketches: Sequence[bytes | None]) -> Any:
    return merged(Merge.HLL, sketches)


def number_of(sketches: Sequence[bytes | None]) -> Any:
    return finished(Merge.HLL, union(sketches))


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


@pytest.mark.parametrize("pair", range(len(PARTS)), ids=[f"{a}+{b}" for a, b in PARTS])
def test_our_union_of_spark_s_sketches_is_spark_s_union(sketches: list[Any], pair: int) -> None:
    a, b, spark_union, whole = (_bytes(s) if n < 3 else s for n, s in enumerate(sketches[pair]))
    ours = union((a, b))
    if whole is None:
        assert ours is None
        return
    assert ours is not None
    assert number_of((a, b)) == whole
    # Spark's union of a sketch and NULL is NULL, so there it has none to compare with.
    if spark_union is not None:
        assert number_of((ours,)) == number_of((spark_union,)) == number_of((ours, spark_union))


def test_the_order_and_the_number_of_parts_do_not_matter(sketches: list[Any]) -> None:
    parts = [_bytes(sketch) for row in sketches for sketch in row[:2]]
    whole = number_of(parts)
    assert number_of(parts[::-1]) == whole
    assert number_of([union(parts[:5]), None, union(parts[5:])]) == whole
    assert number_of([union(parts), union(parts)]) == whole


def test_nothing_has_no_number() -> None:
    assert union(()) is union((None, None)) is None
    assert number_of((None,)) is None
