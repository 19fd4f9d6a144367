"""Typed values with their edges, as one relation of Spark's and of DuckDB's."""

from __future__ import annotations

import math
import random
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

from headrace.certified.relation import AnswerColumn, ReadRelation
from headrace.certified.udf import register

TEXTS = [
    "", " ", "a", "A", "abc", "  abc  ", "0", "1", "-7", "12.5", "1e3", " 42 ", "true", "f", "NaN",
    "Äß", "İi", "añ🎉b", "it's", "a%b", "x_y", "2026-02-28", "2026-2-3 4:05", "abcabc",
    "2024-02-29T23:59:59.123456Z", "9223372036854775807", "99999999999999999999", "-", "ΑΣ",
    "\t5\n", "infinity", "1,5", "a\\b", "hello world foo", "1e39", "-1e999", "1e-999",
]  # fmt: skip
DOUBLES = [
    0.0, -0.0, 1.0, -1.0, 0.1, 2.5, -2.5, 2.675, 1e10, 1e-7, 1e300, -1e300, 1e19, -1e19, 0.5, 3.7,
    math.nan, math.inf, -math.inf, 5e-324, 123456.789, 2.0**53 + 2, 100.0, 9.999,
]  # fmt: skip
FLOATS = [
    0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 0.1, 2.675, 1e10, 1e-7, 3e38, -3e38, math.nan, math.inf,
    -math.inf, 16777216.0, 100.0,
]  # fmt: skip
INTS = [0, 1, -1, 2, 3, 7, -7, 10, 100, 2**31 - 1, -(2**31), 12345, 60, 31]
BIGINTS = [0, 1, -1, 2, 5, -15, 25, 10**12, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 86400, 1234567]
DECIMALS = [Decimal(t) for t in ("0.00", "0.10", "-0.10", "1.00", "12345.67", "-9.99", "2.50",
            "9999999999999999.99", "-9999999999999999.99", "0.01", "100.00", "3.33")]  # fmt: skip
# The large ones have one sign, and no sum is near the limit: elsewhere the order of rows decides
# whether it overflows on the way.
WIDE = [Decimal(t) for t in ("0", "1.5", "-1.5", "0.1", "-0.000000000000000001", "3", "-100.25",
        "0.000000000000000001", "60000000000000000000",
        "12345678901234567890.123456789012345678")]  # fmt: skip
TIMES = [
    datetime(1970, 1, 1), datetime(2026, 2, 28, 23, 59, 59, 999999), datetime(2024, 2, 29, 12),
    datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59), datetime(1969, 12, 31, 23, 59, 59, 1),
    datetime(2026, 11, 17, 10, 20, 30, 120000), datetime(2000, 1, 31), datetime(1900, 3, 1, 1, 2),
    datetime(2020, 12, 31, 23), datetime(2021, 1, 3), datetime(2019, 12, 30, 8, 9, 10, 50),
]  # fmt: skip
LISTS = [[], [None], ["a"], ["a", None], ["", "Äß"], ["b", "a", "b"], ["🎉"]]
ARRAYS = [[], [None], [0.0], [-0.0], [math.nan, 1.0], [math.nan, None], [math.inf, -1.5, 2.5]]
MAPS = [[], [("a", 1)], [("a", None)], [("", -7), ("b", 2**31 - 1)], [("a", 1), ("Äß", 0)]]
OBJECT = pa.struct(
    [
        ("a", pa.int32()),
        ("b", pa.list_(pa.decimal128(18, 2))),
        ("c", pa.struct([("D", pa.string())])),
    ]
)
OBJECTS = [
    {"a": None, "b": None, "c": None},
    {"a": 1, "b": [], "c": {"D": None}},
    {"a": 1, "b": [Decimal("1.50"), None], "c": {"D": "Äß"}},
    {"a": -(2**31), "b": [Decimal("-0.01")], "c": {"D": ""}},
    {"a": None, "b": [None], "c": {"D": "a"}},
]
TYPES: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "s": ("STRING", pa.string(), TEXTS),
    "d": ("DOUBLE", pa.float64(), DOUBLES),
    "i": ("INT", pa.int32(), INTS),
    "k": ("TINYINT", pa.int8(), [0, 1, -1, 2, 7, 100, 127, -128]),
    "h": ("SMALLINT", pa.int16(), [0, 1, -1, 3, -15, 365, 2**15 - 1, -(2**15)]),
    "f": ("FLOAT", pa.float32(), FLOATS),
    "b": ("BIGINT", pa.int64(), BIGINTS),
    "m": ("DECIMAL(18,2)", pa.decimal128(18, 2), DECIMALS),
    "w": ("DECIMAL(38,18)", pa.decimal128(38, 18), WIDE),
    "t": ("TIMESTAMP", pa.timestamp("us", "UTC"), TIMES),
    "y": ("DATE", pa.date32(), [time.date() for time in TIMES]),
    "o": ("BOOLEAN", pa.bool_(), [True, False]),
    "z": ("TIMESTAMP_NTZ", pa.timestamp("us"), TIMES),
    "x": ("BINARY", pa.binary(), [b"", b"\0", b"\0\xff", b"a", b"ab", b"\xff"]),
    "l": ("ARRAY<STRING>", pa.list_(pa.string()), LISTS),
    "g": ("ARRAY<DOUBLE>", pa.list_(pa.float64()), ARRAYS),
    "p": ("MAP<STRING, INT>", pa.map_(pa.string(), pa.int32()), MAPS),
    "r": ("STRUCT<a: INT, b: ARRAY<DECIMAL(18,2)>, c: STRUCT<D: STRING>>", OBJECT, OBJECTS),
}
# Each type has two columns, so that functions of two arguments meet different values.
COLUMNS = (
    *(AnswerColumn(f"{name}{n}", type) for name, (type, _, _) in TYPES.items() for n in (1, 2)),
    AnswerColumn("row", "INT"),
)


def edges(rows: int, rng: random.Random) -> pa.Table:
    """Random combinations in which every value stands at least once, and NULL often."""
    arrays, names = [], []
    for name, (_, type, values) in TYPES.items():
        for n in (1, 2):
            drawn = [None if rng.random() < 0.1 else _value(name, values, rng) for _ in range(rows)]
            drawn[: len(values)] = rng.sample(values, len(values))[:rows]
            rng.shuffle(drawn)
            arrays.append(pa.array(drawn, type))
            names.append(f"{name}{n}")
    return pa.table([*arrays, pa.array(range(rows), pa.int32())], [*names, "row"])


def _value(name: str, values: list[Any], rng: random.Random) -> Any:
    """A value of the list, or one near by that nobody thought of."""
    if rng.random() < 0.5 or name in "xlgpr":
        return rng.choice(values)
    match name:
        case "s":
            return "".join(rng.choices("abAB zäß.-0123 ", k=rng.randrange(6)))
        case "d":
            return round(rng.uniform(-1000, 1000), rng.randrange(6))
        case "f":
            return round(rng.uniform(-1000, 1000), rng.randrange(4))
        case "k" | "h":
            return rng.randrange(-100, 100)
        case "i":
            return rng.randrange(-50, 50)
        case "b":
            return rng.randrange(-(10 ** rng.randrange(1, 18)), 10**6)
        case "m" | "w":
            return Decimal(rng.randrange(-(10**6), 10**6)).scaleb(-2)
        case "t" | "z":
            return datetime(1970, 1, 1) + timedelta(
                microseconds=rng.randrange(-(10**15), 3 * 10**15)
            )
        case "y":
            return date(1970, 1, 1) + timedelta(days=rng.randrange(-20_000, 40_000))
    return rng.random() < 0.5


def duck(table: pa.Table) -> duckdb.DuckDBPyConnection:
    """DuckDB with the relation `edges`, and the functions of certified.udf."""
    connection = duckdb.connect()
    register(connection)
    connection.execute("SET TimeZone = 'UTC'")
    for n, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(n, field.name, table.column(n).cast(pa.timestamp("us")))
    connection.register("given", table)
    connection.execute("CREATE TABLE edges AS SELECT * FROM given")
    return connection


RELATION = ReadRelation("edges", COLUMNS)


def in_spark(spark: Any, table: pa.Table) -> None:
    """Spark with the relation `edges`; a time without a zone is one only if the schema says so."""
    ddl = ", ".join(f"{column.name} {column.type}" for column in COLUMNS)
    spark.createDataFrame(table, ddl).createOrReplaceTempView("edges")


def same(a: Any, b: Any) -> bool:
    """Equal, doubles to 1e-9 of their size."""
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return a == b or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-300)
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
    return bool(a == b)
