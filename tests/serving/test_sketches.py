"""Spark's sketches and ours are the same: merged by either, they say the same."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from datasketches import kll_doubles_sketch

from headrace.core.aggregate import HLL_LG_K, Merge
from headrace.core.aggregate.sketches import (
    COUNT_MIN_CONFIDENCE,
    COUNT_MIN_ERROR,
    KLL_ERROR,
    KLL_K,
    TOP_K_ITEMS,
)
from headrace.serving.states import finish_state, merge_states

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
    return merge_states(Merge.HLL, sketches)


def number_of(sketches: Sequence[bytes | None]) -> Any:
    return finish_state(Merge.HLL, union(sketches))


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


# KLL: the first pair is exact, the others are not.
QUANTILE_PARTS = [(90, 100), (1_000, 50), (20_000, 30_000)]


@pytest.fixture(scope="module")
def lifted(spark: Any) -> list[list[bytes]]:
    """For each size: sketches of the numbers below it, and of the texts of their remainders."""
    calls = (
        f"kll_sketch_agg_double(cast(id as double), {KLL_K})",
        f"approx_top_k_accumulate(cast(id % 500 as string), {TOP_K_ITEMS}).sketch",
        f"count_min_sketch(cast(id % 40 as string), {COUNT_MIN_ERROR}D, "
        f"{COUNT_MIN_CONFIDENCE}D, 42)",
    )
    sizes = [size for pair in QUANTILE_PARTS for size in pair]
    selects = [f"SELECT {size} AS n, {', '.join(calls)} FROM range({size})" for size in sizes]
    rows = spark.sql(" UNION ALL ".join(selects)).collect()
    return [[bytes(value) for value in row[1:]] for row in rows]


@pytest.mark.parametrize("pair", range(len(QUANTILE_PARTS)), ids=str)
def test_kll_sketches_of_spark_are_merged_here_and_read_by_both(
    spark: Any, lifted: list[list[bytes]], pair: int
) -> None:
    ours = merge_states(Merge.KLL, [lifted[2 * pair][0], lifted[2 * pair + 1][0]])
    values = sorted([*range(QUANTILE_PARTS[pair][0]), *range(QUANTILE_PARTS[pair][1])])
    text = ours.hex()
    for p in (0.07, 0.5, 0.9):
        found = finish_state(Merge.KLL, ours, p, 1)
        ranks = [
            bisect_left(values, found) / len(values),
            bisect_right(values, found) / len(values),
        ]
        error = 3 * KLL_ERROR if len(values) > KLL_K else 0
        assert ranks[0] - error <= p <= ranks[1] + error
        spark_rank = spark.sql(f"SELECT kll_sketch_get_rank_double(X'{text}', {found}D)").first()[0]
        assert spark_rank >= p - 1e-9, "Spark reads the same bytes"


def test_a_small_percentile_is_exact() -> None:
    sketch = kll_doubles_sketch(KLL_K)
    for value in range(100):
        sketch.update(value)
    found = [finish_state(Merge.KLL, bytes(sketch.serialize()), p / 100, 1) for p in range(101)]
    assert found == [0, *range(100)]


def test_frequent_values_of_spark_are_counted_exactly_while_there_are_few(
    lifted: list[list[bytes]],
) -> None:
    whole = merge_states(Merge.TOP_K, [row[1] for row in lifted])
    counts = Counter(n % 500 for pair in QUANTILE_PARTS for size in pair for n in range(size))
    expected = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:7]
    said = json.loads(finish_state(Merge.TOP_K, whole, 7, "BIGINT"))
    assert [(item["item"], item["count"]) for item in said] == expected


def test_sparks_count_min_sketch_is_added_and_read_here(lifted: list[list[bytes]]) -> None:
    whole = merge_states(Merge.COUNT_MIN, [row[2] for row in lifted])
    sizes = [size for pair in QUANTILE_PARTS for size in pair]
    for value in (0, 7, 39, 40):
        exact = sum(1 for size in sizes for n in range(size) if n % 40 == value)
        found = finish_state(Merge.COUNT_MIN, whole, str(value).encode().hex())
        assert exact <= found <= exact + COUNT_MIN_ERROR * sum(sizes)


@pytest.mark.parametrize(
    "text", ["", "a", "ab", "abc", "abcd", "it's", "ü", "日本語テキスト", "😀"]
)
def test_our_murmur3_is_sparks(spark: Any, text: str) -> None:
    sketch = "count_min_sketch(v, 0.01D, 0.96D, 42)"
    made = spark.createDataFrame([(text,)], "v STRING").selectExpr(f"{sketch} AS s")
    assert finish_state(Merge.COUNT_MIN, bytes(made.first().s), text.encode().hex()) == 1
