"""Each type of an answer is what it should be in Python and in Arrow."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headrace.serving.value_types import Window, value_type

START, END = datetime(2026, 11, 15, 19, tzinfo=UTC), datetime(2026, 11, 15, 20, tzinfo=UTC)
EDGES = {"start": "2026-11-15T19:00:00Z", "end": "2026-11-15T20:00:00Z"}
SPARK_WINDOW = "struct<start:timestamp,end:timestamp>"
VALUES: list[tuple[str, Any, Any]] = [
    ("STRING", "2026-11-15T19:00:00Z", "2026-11-15T19:00:00Z"),
    ("BOOLEAN", True, True),
    ("tinyint", 3, 3),
    ("smallint", 3, 3),
    ("INT", 3, 3),
    ("BIGINT", 2**62, 2**62),
    ("float", 0.5, 0.5),
    ("DOUBLE", 2, 2.0),
    ("TIMESTAMP", "2026-11-15T19:00:00Z", START),
    ("timestamp", "2026-11-15T21:00:00+02:00", START),
    ("timestamp_ntz", "2026-11-15T19:00:00", datetime(2026, 11, 15, 19)),
    ("DATE", "2026-11-15", date(2026, 11, 15)),
    ("decimal(9,2)", "1.50", Decimal("1.50")),
    ("binary", "AAE=", b"\x00\x01"),
    ("void", None, None),
    ("WINDOW", EDGES, Window(START, END)),
    ("WINDOW", {**EDGES, "end": None}, Window(START, None)),
    (SPARK_WINDOW, EDGES, Window(START, END)),
    ("ARRAY<TIMESTAMP>", ["2026-11-15T19:00:00Z", None], [START, None]),
    ("map<string,date>", {"a": "2026-11-15"}, {"a": date(2026, 11, 15)}),
    (
        "ARRAY<STRUCT<item: DATE, count: BIGINT>>",
        [{"item": "2026-11-15", "count": 2}],
        [{"item": date(2026, 11, 15), "count": 2}],
    ),
    ("interval day", "INTERVAL '1' DAY", "INTERVAL '1' DAY"),
]


@pytest.mark.parametrize(("type", "json", "value"), VALUES, ids=[v[0] for v in VALUES])
def test_each_type_comes_out_right(type: str, json: Any, value: Any) -> None:
    kind = value_type(type)
    found = kind.value(json)
    assert repr(found) == repr(value)
    assert kind.value(None) is None


@pytest.mark.parametrize(("type", "json", "value"), VALUES, ids=[v[0] for v in VALUES])
def test_arrow_keeps_each_value(type: str, json: Any, value: Any) -> None:
    kind = value_type(type)
    if kind.window:
        return  # tests/client/test_tables.py has them
    kept = pa.array([kind.value(json), None], kind.arrow).to_pylist()
    assert (dict(kept[0]) if isinstance(value, dict) else kept[0]) == value
    assert kept[1] is None
