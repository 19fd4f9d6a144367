"""A key of each type as a question names it is found among stored values and among typed ones."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from headrace.compile.plan import KeyPlan, OutputPlan, ViewPlan
from headrace.core.errors import BadRequest
from headrace.core.schema import WHOLE
from headrace.serving.conditions import parse_conditions, stored_where
from headrace.serving.engine import run
from headrace.serving.merge import stored_schema
from headrace.serving.merged_rows import typed_column

INJECTED = "x' AS VARCHAR) OR true --"
TYPES = [
    "STRING", "BOOLEAN", *WHOLE, "FLOAT", "DOUBLE", "DECIMAL(4,2)", "TIMESTAMP", "TIMESTAMP_NTZ",
    "DATE", "BINARY", "VARIANT", "VOID", "WINDOW", "ARRAY<STRING>",
]  # fmt: skip


def view(type: str) -> ViewPlan:
    output = OutputPlan("k", type, "k0", key="k0")
    return ViewPlan("v", "mergeable", "", (output,), keys=(KeyPlan("k0", "k", type, "k"),))


@pytest.mark.parametrize(
    ("type", "said", "kept", "others"),
    [
        ("STRING", "it's", "it's", ["its", ""]),
        ("BOOLEAN", "false", 0, [1]),
        ("TINYINT", "-128", -128, [127]),
        ("SMALLINT", "7", 7, [-7]),
        ("BIGINT", "9223372036854775807", 2**63 - 1, [2**63 - 2]),
        ("FLOAT", "0.1", 0.10000000149011612, [0.5]),
        ("DOUBLE", "0.1", 0.1, [math.nan, math.inf]),
        ("DOUBLE", "NaN", math.nan, [0.1]),
        ("DECIMAL(4,2)", "-1.5", "-98.49", ["01.50"]),
        ("TIMESTAMP", "1970-01-01T00:00:01Z", 1_000_000, [0]),
        ("TIMESTAMP_NTZ", "1970-01-01T00:00:01", 1_000_000, [0]),
        ("DATE", "1970-01-02", 1, [0]),
        ("BINARY", "AP8=", b"\0\xff", [b"\0", b""]),
    ],
)
def test_a_key_is_found_inside_and_outside(
    type: str, said: str, kept: Any, others: list[Any]
) -> None:
    plan = view(type)
    conditions = parse_conditions(plan, {"k": said}, None, None)
    values = pa.array([kept, *others, None], stored_schema(plan).field("k0").type)
    stored = pa.chunked_array([values])
    rows = pa.table({"k": typed_column(type, stored), "k0": stored, "n": range(len(stored))})
    for where in (stored_where(plan, conditions), conditions[0].sql):
        sql = f"SELECT n FROM rows WHERE {where}"
        assert run(sql, {"rows": rows}).to_pylist() == [{"n": 0}]


def test_a_key_that_is_an_object_cannot_be_named() -> None:
    with pytest.raises(BadRequest) as refused:
        parse_conditions(view("STRUCT<a: INT>"), {"k": "x"}, None, None)
    assert refused.value.message == (
        "key 'k' of type STRUCT<a: INT> is not supported as a parameter"
    )


@pytest.mark.parametrize("type", ["VARIANT", "VOID"])
def test_column_without_equality_is_not_a_key(type: str) -> None:
    over_views = ViewPlan("v", "read", "", (OutputPlan("k", type, ""),))
    with pytest.raises(BadRequest) as refused:
        parse_conditions(over_views, {"k": INJECTED}, None, None)
    assert refused.value.message == f"key 'k' of type {type} is not supported as a parameter"


@pytest.mark.parametrize("type", TYPES)
def test_value_cannot_end_its_literal(type: str) -> None:
    rows = pa.table({"k": [None], "n": [0]})
    try:
        (condition,) = parse_conditions(view(type), {"k": INJECTED}, None, None)
    except BadRequest:
        return
    assert run(f"SELECT n FROM rows WHERE {condition.sql}", {"rows": rows}).num_rows == 0


@pytest.mark.parametrize(
    ("type", "said"), [("TINYINT", "x"), ("BINARY", "no base64"), ("DECIMAL(4,2)", "123")]
)
def test_what_is_not_of_the_type_is_refused(type: str, said: str) -> None:
    with pytest.raises(BadRequest) as refused:
        parse_conditions(view(type), {"k": said}, None, None)
    assert refused.value.message == f"'{said}' is not a valid {type}, the type of 'k'"
