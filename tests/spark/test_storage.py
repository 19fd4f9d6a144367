"""Spark writes each value as the store keeps it: it is read back as it was, equal values are equal,
and what has an order keeps it.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from headrace.core.schema import Type
from headrace.core.storage import Storage
from headrace.serving.engine import run

_TIME = "timestamp_micros(-62135596800000000)"
# Values of each type in the order that they have, as Spark writes them.
ORDERED = {
    "STRING": ["''", "'NaN'", "'a'", "'ß'", "'日本'", "'😀'"],
    "BOOLEAN": ["false", "true"],
    "TINYINT": ["-128Y", "0Y", "127Y"],
    "SMALLINT": ["-32768S", "32767S"],
    "INT": ["cast(-2147483648 as int)", "2147483647"],
    "BIGINT": ["cast(-9223372036854775808 as bigint)", "9223372036854775807L"],
    "FLOAT": ["float('-Infinity')", "-0.0F", "float(0.1)", "float(3.4e38)", "float('NaN')"],
    "DOUBLE": ["double('-Infinity')", "-0.0D", "5e-324D", "1.7976931348623157E308D",
               "double('Infinity')", "double('NaN')"],
    "DECIMAL(4,2)": ["-99.99", "-1.50", "-0.01", "0.00", "0.01", "1.50", "99.99"],
    "DECIMAL(38,18)": ["-12345678901234567890.123456789012345678", "-0.000000000000000001", "0",
                       "0.000000000000000001", "12345678901234567890.123456789012345678"],
    "DECIMAL(38,0)": ["-99999999999999999999999999999999999999", "-1", "0", "7"],
    "DECIMAL(3,3)": ["-0.999", "0.001", "0.5"],
    "TIMESTAMP": [_TIME, "TIMESTAMP '1969-12-31 23:59:59.999999'", "TIMESTAMP '9999-12-31'"],
    "TIMESTAMP_NTZ": ["TIMESTAMP_NTZ '0001-01-01'", "TIMESTAMP_NTZ '2026-01-01 00:00:00.000001'"],
    "DATE": ["DATE '0001-01-01'", "DATE '2026-01-01'", "DATE '9999-12-31'"],
    "BINARY": ["X''", "X'00'", "X'00FF'", "X'01'", "X'FF'"],
}  # fmt: skip
# Different values of a type without an order; those of one line are one value to GROUP BY.
EQUAL = {
    "ARRAY<DOUBLE>": [
        ["array(-0.0D, double('NaN'))", "array(0.0D, double('NaN'))"],
        ["array()"],
        ["array(cast(NULL as double))"],
        ["array(0.1D)"],
    ],
    "STRUCT<a: FLOAT, `b'c`: STRING>": [
        ["named_struct('a', -0.0F, 'b\\'c', 'x')", "named_struct('a', 0.0F, 'b\\'c', 'x')"],
        ["named_struct('a', cast(NULL as float), 'b\\'c', 'x')"],
        ["named_struct('a', cast(NULL as float), 'b\\'c', cast(NULL as string))"],
        ["named_struct('a', float('Infinity'), 'b\\'c', 'Infinity')"],
    ],
    "MAP<STRING, DECIMAL(6,2)>": [
        ["map('a', 1.00, 'b', -2.50)", "map('b', -2.50, 'a', 1.00)"],
        ["map('a', 1.00)"],
        ["map('a', NULL)"],
        ["map()"],
    ],
    "MAP<DATE, ARRAY<BIGINT>>": [
        ["map(DATE '2026-01-01', array(9223372036854775807L, NULL))"],
        ["map(DATE '2026-01-02', NULL)"],
    ],
    "STRUCT<t: TIMESTAMP, n: TIMESTAMP_NTZ, s: ARRAY<STRUCT<b: BINARY, m: DECIMAL(38,18)>>>": [
        [
            "named_struct('t', TIMESTAMP '2026-01-01 00:00:00.000001', 'n', "
            "TIMESTAMP_NTZ '2026-01-01 00:00:00.000001', 's', array(named_struct('b', X'00ff', "
            "'m', cast('-0.000000000000000001' as decimal(38,18)))))"
        ],
        ["named_struct('t', NULL, 'n', NULL, 's', array(NULL))"],
        ["named_struct('t', NULL, 'n', NULL, 's', NULL)"],
        [f"named_struct('t', {_TIME}, 'n', NULL, 's', array())"],
    ],
    "ARRAY<BOOLEAN>": [["array(true, NULL)"], ["array(false, NULL)"]],
}


def values(spark: Any, type: str, written: list[str], form: str) -> list[Any]:
    """A column of these values in a form, in the order in which they are written."""
    rows = " UNION ALL ".join(
        f"SELECT {n} AS n, cast({sql} AS {type}) AS x" for n, sql in enumerate(written)
    )
    table = spark.sql(f"SELECT {form} AS x FROM ({rows}) ORDER BY n").toArrow()
    return list(table.column(0).to_pylist())


@pytest.mark.parametrize("type", ORDERED)
def test_stored_values_have_the_order_of_spark(spark: Any, type: str) -> None:
    storage = Storage(Type.of(type))
    stored = values(spark, type, ORDERED[type], storage.sql("x"))
    given = pa.table({"n": range(len(stored)), "x": stored})
    found = [row.values() for row in run("FROM given ORDER BY x", {"given": given}).to_pylist()]
    assert [n for n, _ in found] == list(range(len(stored)))
    plain = _NUMBERS.get(type, "x")
    wanted = [_same(value) for value in values(spark, type, ORDERED[type], plain)]
    assert [_same(storage.read(x)) for _, x in found] == wanted


_NUMBERS = {
    "TIMESTAMP": "unix_micros(x)",
    "TIMESTAMP_NTZ": "unix_micros(cast(x as timestamp))",
    "DATE": "unix_date(x)",
}


def _same(value: Any) -> Any:
    """NaN is equal to NaN."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


@pytest.mark.parametrize("type", EQUAL)
def test_equal_values_are_kept_equal_and_others_are_not(spark: Any, type: str) -> None:
    storage, groups = Storage(Type.of(type)), EQUAL[type]
    written = [sql for group in groups for sql in group]
    keys = values(spark, type, written, storage.key_sql("x"))
    assert len(set(keys)) == len(groups)
    lines = [n for n, group in enumerate(groups) for _ in group]
    assert len({(line, key) for line, key in zip(lines, keys, strict=True)}) == len(groups)
    counted = " UNION ALL ".join(f"SELECT cast({sql} AS {type}) AS x" for sql in written)
    assert spark.sql(f"SELECT x FROM ({counted}) GROUP BY x").count() == len(groups)


@pytest.mark.parametrize("type", EQUAL)
def test_lists_and_objects_are_read_as_they_were(spark: Any, type: str) -> None:
    storage = Storage(Type.of(type))
    written = [sql for group in EQUAL[type] for sql in group]
    read = [storage.read(stored) for stored in values(spark, type, written, storage.sql("x"))]
    plain = [_texts(value) for value in values(spark, type, written, "x")]
    assert [_texts(value) for value in read] == plain


def _texts(value: Any) -> Any:
    """A value as text, with times as microseconds and maps in the order of keys."""
    if isinstance(value, dict):
        return {name: _texts(part) for name, part in value.items()}
    if isinstance(value, list):
        parts = [_texts(part) for part in value]
        return sorted(parts) if parts and isinstance(value[0], tuple) else parts
    if isinstance(value, tuple):
        return tuple(map(_texts, value))
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        return str((moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1))
    if isinstance(value, date):
        return str((value - date(1970, 1, 1)).days)
    return str(value)


def test_null_is_kept_as_null(spark: Any) -> None:
    for type in [*ORDERED, *EQUAL, "VARIANT"]:
        storage = Storage(Type.of(type))
        assert values(spark, type, ["NULL"], storage.sql("x")) == [None]
        assert values(spark, type, ["NULL"], storage.key_sql("x")) == [None]
