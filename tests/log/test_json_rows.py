"""Decoded events as the JSON values of answers: one of each type, and what JSON does not have."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headrace.core.schema import Column, Schema, Type
from headrace.log.columns import arrow_type, convert
from headrace.log.json_rows import json_rows


def shown(type: Type, value: Any) -> Any:
    made = pa.table({"x": pa.chunked_array([convert(type, [value, None])])})
    row, nothing = json_rows(made, Schema((Column("x", type),)))
    assert nothing == {"x": None}
    return row["x"]


@pytest.mark.parametrize(
    ("type", "value", "written"),
    [
        ("STRING", "it's", "it's"),
        ("BOOLEAN", False, False),
        ("INT", -3, -3),
        ("BIGINT", 2**60 + 1, 2**60 + 1),
        ("DOUBLE", 0.1, 0.1),
        ("DOUBLE", float("inf"), None),
        ("DOUBLE", float("nan"), None),
        ("TIMESTAMP", "2026-01-02T03:04:05+01:00", "2026-01-02T02:04:05Z"),
        ("TIMESTAMP", "0001-02-03 04:05:06.5", "0001-02-03T04:05:06.500000Z"),
        ("DATE", "2026-01-02", "2026-01-02"),
        ("ARRAY<DOUBLE>", [0.5, None, float("-inf")], [0.5, None, None]),
        ("ARRAY<TIMESTAMP>", ["2026-01-02T03:04:05Z", None], ["2026-01-02T03:04:05Z", None]),
        ("ARRAY<STRING>", [], []),
        ("FLOAT", float("inf"), None),
        ("DECIMAL(5,2)", Decimal("1.50"), "1.50"),
        ("DECIMAL(9,7)", Decimal("0E-7"), "0.0000000"),
        ("BINARY", b"hi", "aGk="),
        ("TIMESTAMP_NTZ", "2026-01-02T03:04:05", "2026-01-02T03:04:05"),
        ("VARIANT", '{"a":1}', '{"a":1}'),
        ("MAP<STRING, DATE>", [("a", "2026-01-02"), ("b", None)], {"a": "2026-01-02", "b": None}),
        ("STRUCT<a: DOUBLE, b: ARRAY<DECIMAL(3,1)>>", {"a": float("nan"), "b": [Decimal("1.5")]},
         {"a": None, "b": ["1.5"]}),
    ],
)  # fmt: skip
def test_a_value_is_written_as_its_type_asks(type: str, value: Any, written: Any) -> None:
    assert shown(Type.parse(type), value) == written


def test_no_events_are_no_rows() -> None:
    schema = Schema((Column("x", Type("DATE")),))
    assert json_rows(pa.schema([("x", arrow_type(Type("DATE")))]).empty_table(), schema) == []
