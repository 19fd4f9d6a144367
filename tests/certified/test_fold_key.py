"""The text of a fold's key is the one that Spark writes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from headrace.certified.fold_key import FOLD_KEY, FOLDS
from headrace.certified.relation import AnswerColumn, ReadRelation
from headrace.certified.select import compile_query
from headrace.core.errors import Unsupported
from headrace.core.origin import Origin
from headrace.define.dialect import parse_read
from headrace.kernel.engine import run_kernel

LONG = 2**63 - 1
TYPES = {
    "s": "STRING", "i": "INT", "n": "BIGINT", "t": "TINYINT", "b": "BOOLEAN", "d": "DOUBLE",
    "ts": "TIMESTAMP",
}  # fmt: skip
RELATION = ReadRelation("keys", tuple(AnswerColumn(*each) for each in TYPES.items()))
TEXTS = [None, "", *map(chr, [*range(1, 0x250), 0x2028, 0x2029, 0xFEFF, 0xFFFF, 0x1F600])]


def compiled(*parts: str) -> str:
    pairs = ", ".join(f"'{part}', {part}" for part in parts)
    query = parse_read(f"SELECT {FOLD_KEY}({pairs}) AS k FROM keys", Origin("test", 1))
    return compile_query(query, {"keys": RELATION}.get, functions=FOLDS).sql


def test_keys_are_written_as_spark_writes_them(spark: Any) -> None:
    count = len(TEXTS)
    table = pa.table(
        {
            "s": pa.array(TEXTS, pa.string()),
            "i": pa.array([None, -(2**31), 2**31 - 1] + [0] * (count - 3), pa.int32()),
            "n": pa.array([None, -LONG - 1, LONG] + [7] * (count - 3), pa.int64()),
            "t": pa.array([None, -128, 127] + [1] * (count - 3), pa.int8()),
            "b": pa.array([None, True, False] + [True] * (count - 3), pa.bool_()),
        }
    )
    spark.createDataFrame(table).createOrReplaceTempView("keys")
    parts = ("s", "i", "n", "t", "b")
    json = f"to_json(struct({', '.join(parts)}), map('ignoreNullFields', 'false'))"
    theirs = spark.sql(f"SELECT {json} AS k FROM keys").toArrow()["k"].to_pylist()
    assert run_kernel(compiled(*parts), {"keys": table})["k"].to_pylist() == theirs
    spark.catalog.dropTempView("keys")


@pytest.mark.parametrize("part", ["d", "ts"])
def test_keys_of_other_types_are_left_to_spark(part: str) -> None:
    with pytest.raises(Unsupported, match=f"a fold by {TYPES[part]}"):
        compiled(part)
