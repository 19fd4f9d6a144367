"""Sketches made by Spark, merged and read with the datasketches package: both are Apache
DataSketches with the same bytes.

HLL estimates distinct values. The estimate is always read from a union, so that equal registers
give equal estimates. KLL has quantiles of doubles: the rank error is less than 1.33 % with 99 %
confidence, and up to 200 values there is none. Top-k has the most frequent texts: the error of a
count is at most 0.34 % of all events, in both directions, and up to 768 distinct values there is
none. tests/serving/test_sketches.py checks each against Spark's own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from headrace.core.aggregate import HLL_LG_K
from headrace.core.schema import Type
from headrace.core.storage import NAN, Storage

# The package is imported on use: most answers need no sketch, and the import is slow.


def merge_hll(sketches: Sequence[bytes]) -> bytes:
    """The union of sketches."""
    return bytes(_union(sketches).get_result().serialize_compact())


def count_hll(sketch: bytes) -> int:
    """The estimated number of distinct values."""
    return round(float(_union((sketch,)).get_estimate()))


def _union(sketches: Iterable[bytes]) -> Any:
    from datasketches import hll_sketch, hll_union

    merged = hll_union(HLL_LG_K)
    for sketch in sketches:
        merged.update(hll_sketch.deserialize(sketch))
    return merged


def merge_kll(sketches: Sequence[bytes]) -> bytes:
    from datasketches import kll_doubles_sketch

    return _merged(kll_doubles_sketch, sketches)


def quantile(sketch: bytes, p: float, inclusive: int) -> float | None:
    """The smallest value whose rank is at least `p`, or above `p` if that is not included."""
    from datasketches import kll_doubles_sketch

    found = kll_doubles_sketch.deserialize(sketch)
    if found.is_empty():
        return None
    # Computed with the decimal p as written: 0.07 * 100 is more than 7 in doubles.
    share = Fraction(str(p)) * found.n
    place = max(math.ceil(share), 1) if inclusive else math.floor(share) + 1
    return float(found.get_quantile((place - 0.5) / found.n, True))


def merge_top_k(sketches: Sequence[bytes]) -> bytes:
    from datasketches import frequent_strings_sketch

    return _merged(frequent_strings_sketch, sketches)


def _merged(kind: Any, sketches: Sequence[bytes]) -> bytes:
    merged = kind.deserialize(sketches[0])
    for sketch in sketches[1:]:
        merged.merge(kind.deserialize(sketch))
    return bytes(merged.serialize())


def top(sketch: bytes, k: int, type: str) -> str:
    """The k most frequent values with their counts, as stored JSON; of equal counts, the smaller
    value first.
    """
    from datasketches import frequent_items_error_type, frequent_strings_sketch

    found = frequent_strings_sketch.deserialize(sketch)
    items = found.get_frequent_items(frequent_items_error_type.NO_FALSE_NEGATIVES, 0)
    column = Storage(Type.of(type)).column
    ranked = sorted(((-count, _rank(text, column)), text, count) for text, count, *_ in items)[:k]
    return json.dumps([{"item": _part(text, column), "count": count} for _, text, count in ranked])


def _rank(text: str, column: str) -> Any:
    """The sort key of a value, from its text."""
    if column == "REAL":
        return text == NAN, 0.0 if text == NAN else float(text)
    return int(text) if column == "INTEGER" else text


def _part(text: str, column: str) -> Any:
    """The value in JSON."""
    if column == "REAL":
        return NAN if text == NAN else float(text)
    return int(text) if column == "INTEGER" else text
