"""Values of Spark's types as JSON, at their ends, without Spark."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
from pyspark.sql import types as t

from headrace.core.time import DAY, FIRST, LAST
from headrace.spark.query_values import json_rows

TIME = pa.timestamp("us", "UTC")


def test_times_outside_the_years_1_to_9999_are_clipped() -> None:
    window = t.StructType([t.StructField(edge, t.TimestampType()) for edge in ("start", "end")])
    kinds = [window, t.TimestampType(), t.TimestampNTZType(), t.DateType()]
    table = pa.table(
        {
            "c0": pa.array(
                [{"start": FIRST - DAY, "end": LAST + DAY}],
                pa.struct([("start", pa.int64()), ("end", pa.int64())]),
            ).cast(pa.struct([("start", TIME), ("end", TIME)])),
            "c1": pa.array([1_500_000]).cast(TIME),
            "c2": pa.array([LAST + 1]).cast(pa.timestamp("us")),
            "c3": pa.array([LAST // DAY + 1], pa.int32()).cast(pa.date32()),
        }
    )
    schema = t.StructType([t.StructField(f"c{n}", kind) for n, kind in enumerate(kinds)])
    edges = {"start": "0001-01-01T00:00:00Z", "end": "9999-12-31T23:59:59.999999Z"}
    assert json_rows(table, schema) == [
        [edges, "1970-01-01T00:00:01.500000Z", "9999-12-31T23:59:59.999999", "9999-12-31"]
    ]


def test_a_decimal_has_all_its_digits_and_no_exponent() -> None:
    table = pa.table({"c0": pa.array([Decimal("0E-7"), Decimal("1.5")], pa.decimal128(9, 7))})
    schema = t.StructType([t.StructField("c0", t.DecimalType(9, 7))])
    assert json_rows(table, schema) == [["0.0000000"], ["1.5000000"]]
