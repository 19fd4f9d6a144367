"""One value of each type on its way from the store through the reading engine to an answer, and to
a column that is exported.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from headrace.certified.relation import AnswerColumn
from headrace.core.schema import Type
from headrace.serving.answer import rows_as_objects
from headrace.serving.arrow_values import engine_type, shown_type
from headrace.serving.engine import run
from headrace.serving.merged_rows import storage_rows, typed_column
from headrace.serving.value_types import value_type

FAR = 253402300799999999 + 1  # a moment after the year 9999, which the end of a window may be
VALUES = [
    ("STRING", "ü", "ü"),
    ("BOOLEAN", 0, False),
    ("TINYINT", -128, -128),
    ("SMALLINT", 32767, 32767),
    ("INT", -(2**31), -(2**31)),
    ("BIGINT", 2**63 - 1, 2**63 - 1),
    ("FLOAT", 0.5, 0.5),
    ("DOUBLE", 0.1, 0.1),
    ("DECIMAL(4,2)", "-98.49", "-1.50"),
    ("TIMESTAMP", 1, "1970-01-01T00:00:00.000001Z"),
    ("TIMESTAMP_NTZ", -1, "1969-12-31T23:59:59.999999"),
    ("DATE", -719162, "0001-01-01"),
    ("BINARY", b"\0\xff", "AP8="),
    ("VARIANT", '{"a":[1]}', '{"a":[1]}'),
    ("ARRAY<TIMESTAMP>", f"[0,null,{FAR}]", ["1970-01-01T00:00:00Z", None,
                                             "9999-12-31T23:59:59.999999Z"]),
    ("MAP<STRING, DECIMAL(4,2)>", '[{"k":"a","v":"01.50"},{"k":"b","v":null}]',
     {"a": "1.50", "b": None}),
    ("MAP<DATE, BOOLEAN>", '[{"k":0,"v":1}]', {"1970-01-01": True}),
    ("STRUCT<a: ARRAY<STRUCT<`b c`: BINARY>>, d: FLOAT>",
     '{"a":[{"b c":"AP8="},null],"d":-0.5}', {"a": [{"b c": "AP8="}, None], "d": -0.5}),
]  # fmt: skip


@pytest.mark.parametrize(("type", "kept", "shown"), VALUES)
def test_a_value_goes_from_the_store_through_the_engine_to_an_answer(
    type: str, kept: Any, shown: Any
) -> None:
    given = typed_column(type, pa.chunked_array([pa.array([kept, None])]))
    assert given.type == engine_type(type)
    found = run("SELECT x FROM rows", {"rows": pa.table({"x": given})})
    assert found.column(0).type == given.type
    rows = rows_as_objects(storage_rows(found, [type]), [AnswerColumn("x", type)])
    assert rows == [{"x": shown}, {"x": None}]
    column = found.column(0).cast(value_type(type).arrow)
    if type != "VARIANT":  # which is exported as a text
        assert shown_type(column.type) == Type.of(type)


def test_column_of_nulls_alone_is_exported() -> None:
    assert shown_type(value_type("VOID").arrow) == Type("VOID")
