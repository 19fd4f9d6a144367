"""The most frequent values: frequent-items sketches of texts made by Spark.

The error of a count is at most 0.34 % of all events, in both directions; up to 768 distinct values
it is exact. Spark writes the sketches, the datasketches package merges and reads them.
tests/serving/test_sketches.py checks the counts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from headrace.core.schema import Type
from headrace.core.storage import NAN, Storage


def merge(sketches: Sequence[bytes]) -> bytes:
    """The merge of sketches."""
    from datasketches import frequent_strings_sketch

    merged = frequent_strings_sketch.deserialize(sketches[0])
    for sketch in sketches[1:]:
        merged.merge(frequent_strings_sketch.deserialize(sketch))
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
