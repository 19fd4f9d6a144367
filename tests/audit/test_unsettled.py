"""Which rows DuckDB settles in columns, and that the rest is compared as all rows would be."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from chance import drawn

from headrace.audit.compare import compare
from headrace.audit.unsettled import Unsettled, evaluate, unsettled
from headrace.compile.plan import OutputPlan, ViewKind, ViewPlan
from headrace.core.aggregate import Approximation
from headrace.serving.read import ViewRows
from headrace.serving.store import AuditResult

KEY = OutputPlan("k", "STRING", "k0", key="k0")
NEARBY = 0.1 + 0.2  # and 0.3: two doubles that differ in the last bit
AT = datetime(2026, 1, 1, tzinfo=UTC)
LATER = "TIMESTAMP '2026-01-01 00:00:00.000001'"
NO_TIME = {"start": datetime(1970, 1, 1), "end": datetime(1970, 1, 1)}
EDGES = pa.struct([("start", pa.timestamp("us")), ("end", pa.timestamp("us"))])
ALWAYS, SPEED = Approximation("always", 0.01), Approximation("speed", 0.01)


def view_of(*outputs: OutputPlan) -> ViewPlan:
    return ViewPlan("v", ViewKind.MERGEABLE, "", outputs)


def left(view: ViewPlan, answer: ViewRows, expected: str) -> Unsettled:
    with duckdb.connect() as connection:
        evaluate(connection, view, expected)
        return unsettled(connection, view, answer.columns)


def audited(view: ViewPlan, answer: ViewRows, expected: str) -> tuple[int, AuditResult]:
    """How many rows of the answer were left, and the result."""
    rows = left(view, answer, expected)
    found = compare(view, answer.rows(rows.answer), rows.expected)
    return len(rows.answer), replace(found, compared=rows.total)


def one_value(
    type: str, arrow: pa.DataType, ours: Any, theirs: str, estimate: Approximation | None = None
) -> tuple[int, int]:
    """How many rows are left, and how many differ, of a row with this value and one beside it."""
    view = view_of(KEY, OutputPlan("x", type, "p0", estimate=estimate))
    # A window is two columns and never NULL.
    beside, nothing = (NO_TIME, "0, 0") if type == "WINDOW" else (None, "NULL")
    columns = {"k": ["a", "b"], "x": pa.array([ours, beside], arrow), "fresh": [True, True]}
    answer = ViewRows(pa.table(columns), ("STRING", type, "BOOLEAN"))
    number, found = audited(view, answer, f"SELECT 'a', {theirs} UNION ALL SELECT 'b', {nothing}")
    return number, found.differences


LIST, MAP = pa.list_(pa.int64()), pa.map_(pa.string(), pa.int64())
SAME = {
    "an integer": ("BIGINT", pa.int64(), 2**62, f"{2**62}::BIGINT"),
    "an integer of another size": ("INT", pa.int32(), 5, "5::BIGINT"),
    "an integer and a double": ("BIGINT", pa.int64(), 5, "5.0::DOUBLE"),
    "a truth value": ("BOOLEAN", pa.bool_(), True, "1"),
    "a decimal": ("DECIMAL(10,2)", pa.decimal128(10, 2), Decimal("1.50"), "1.50::DECIMAL(10,2)"),
    "a decimal with more digits": (
        "DECIMAL(10,2)", pa.decimal128(10, 2), Decimal("1.50"), "1.5000::DECIMAL(18,4)"),
    "a decimal and an integer": (
        "DECIMAL(10,2)", pa.decimal128(10, 2), Decimal("2.00"), "2::BIGINT"),
    "a decimal and the double that was rounded": (
        "DECIMAL(18,6)", pa.decimal128(18, 6), Decimal("411.091429"), "411.09142857142854::DOUBLE"),
    "a double": ("DOUBLE", pa.float64(), NEARBY, "0.3::DOUBLE"),
    "a small double": ("DOUBLE", pa.float64(), 0.0, "1e-13::DOUBLE"),
    "a single": ("FLOAT", pa.float32(), 0.5, "0.5::DOUBLE"),
    "no number": ("DOUBLE", pa.float64(), math.nan, "'nan'::DOUBLE"),
    "infinity": ("DOUBLE", pa.float64(), math.inf, "'inf'::DOUBLE"),
    "zero": ("DOUBLE", pa.float64(), -0.0, "0.0::DOUBLE"),
    "a text": ("STRING", pa.string(), "ü", "'ü'"),
    "bytes": ("BINARY", pa.binary(), b"\x00a", "'\\x00a'::BLOB"),
    "a time": ("TIMESTAMP", pa.timestamp("us"), AT.replace(tzinfo=None), f"epoch_us({LATER}) - 1"),
    "a date": ("DATE", pa.date32(), date(1970, 1, 3), "2"),
    "a window": ("WINDOW", EDGES, {"start": datetime(1970, 1, 1), "end": AT.replace(tzinfo=None)},
                 f"0, epoch_us({LATER}) - 1"),
    "a list": ("ARRAY<BIGINT>", LIST, [1, None], "[1, NULL]::BIGINT[]"),
    "an object": ("STRUCT<a: BIGINT>", pa.struct([("a", pa.int64())]), {"a": 1},
                  "{'a': 1::BIGINT}"),
    "a map": ("MAP<STRING, BIGINT>", MAP, [("a", 1)], "MAP {'a': 1::BIGINT}"),
    "nothing": ("BIGINT", pa.int64(), None, "NULL"),
}  # fmt: skip
OTHER = {
    "an integer": ("BIGINT", pa.int64(), 2**62, f"({2**62} + 1)::BIGINT"),
    "an integer for none": ("BIGINT", pa.int64(), 0, "NULL::BIGINT"),
    "no integer": ("BIGINT", pa.int64(), None, "0::BIGINT"),
    "an integer and a double": ("BIGINT", pa.int64(), 5, "5.0001::DOUBLE"),
    "a truth value": ("BOOLEAN", pa.bool_(), True, "0"),
    "a decimal": ("DECIMAL(10,2)", pa.decimal128(10, 2), Decimal("1.50"), "1.51::DECIMAL(10,2)"),
    "a decimal and a double": (
        "DECIMAL(18,6)", pa.decimal128(18, 6), Decimal("411.091428"), "411.09142857142854::DOUBLE"),
    "no decimal": ("DECIMAL(18,6)", pa.decimal128(18, 6), None, "0.0::DOUBLE"),
    "a double": ("DOUBLE", pa.float64(), 1.0, "1.0000001::DOUBLE"),
    "a double for none": ("DOUBLE", pa.float64(), 0.0, "NULL::DOUBLE"),
    "no number": ("DOUBLE", pa.float64(), math.nan, "1.0::DOUBLE"),
    "a finite double": ("DOUBLE", pa.float64(), 5.0, "'inf'::DOUBLE"),
    "the other infinity": ("DOUBLE", pa.float64(), -math.inf, "'inf'::DOUBLE"),
    "a text": ("STRING", pa.string(), "u", "'ü'"),
    "an empty text": ("STRING", pa.string(), "", "NULL::VARCHAR"),
    "bytes": ("BINARY", pa.binary(), b"a", "'b'::BLOB"),
    "a time": ("TIMESTAMP", pa.timestamp("us"), AT.replace(tzinfo=None), f"epoch_us({LATER})"),
    "a date": ("DATE", pa.date32(), date(1970, 1, 3), "3"),
    "the end of a window": (
        "WINDOW", EDGES, {"start": datetime(1970, 1, 1), "end": AT.replace(tzinfo=None)},
        f"0, epoch_us({LATER})"),
    "the order of a list": ("ARRAY<BIGINT>", LIST, [1, 2], "[2, 1]::BIGINT[]"),
    "a longer list": ("ARRAY<BIGINT>", LIST, [1], "[1, NULL]::BIGINT[]"),
    "an object": ("STRUCT<a: BIGINT>", pa.struct([("a", pa.int64())]), {"a": 1},
                  "{'a': 2::BIGINT}"),
    "a map": ("MAP<STRING, BIGINT>", MAP, [("a", 1)], "MAP {'a': 2::BIGINT}"),
}  # fmt: skip
# The same, but not to DuckDB.
LEFT = {
    "a list of other numbers": ("ARRAY<BIGINT>", LIST, [1], "[1]::INTEGER[]"),
    "a list of rounded doubles": ("ARRAY<DOUBLE>", pa.list_(pa.float64()), [0.3], f"[{NEARBY!r}]"),
    "a map in another order": ("MAP<STRING, BIGINT>", MAP, [("a", 1), ("b", 2)],
                               "MAP {'b': 2::BIGINT, 'a': 1::BIGINT}"),
    "json": ("VARIANT", pa.string(), '{"a":1.5}', """'{"a": 1.50}'"""),
}  # fmt: skip


@pytest.mark.parametrize("kind", SAME)
def test_equal_values_are_settled_in_columns(kind: str) -> None:
    assert one_value(*SAME[kind]) == (0, 0)


@pytest.mark.parametrize("kind", OTHER)
def test_a_different_value_is_found(kind: str) -> None:
    assert one_value(*OTHER[kind]) == (1, 1)


@pytest.mark.parametrize("kind", LEFT)
def test_what_duckdb_cannot_decide_is_left_and_found_equal(kind: str) -> None:
    assert one_value(*LEFT[kind]) == (1, 0)


@pytest.mark.parametrize(
    ("estimate", "ours", "found"),
    [
        (ALWAYS, 1_060, (0, 0)),
        (ALWAYS, 1_061, (1, 1)),
        (SPEED, 1_060, (0, 0)),
        (None, 1_001, (1, 1)),
    ],
)
def test_an_estimate_may_be_off_by_six_errors(
    estimate: Approximation | None, ours: int, found: tuple[int, int]
) -> None:
    assert one_value("BIGINT", pa.int64(), ours, "1000::BIGINT", estimate) == found


def test_rows_on_one_side_only_are_found() -> None:
    view = view_of(KEY, OutputPlan("n", "BIGINT", "p0"))
    given = pa.table({"k": ["a", "b", None], "n": [1, 2, 3], "fresh": [False] * 3})
    answer = ViewRows(given, ("STRING", "BIGINT", "BOOLEAN"))
    number, found = audited(view, answer, "VALUES ('c', 7), ('b', 2), (NULL, 3)")
    assert number == 1
    assert (found.compared, found.differences) == (3, 2)
    assert found.examples == ("k=a: not found by DuckDB", "k=c: found only by DuckDB")


def test_a_view_without_keys_has_one_row() -> None:
    view = view_of(OutputPlan("n", "BIGINT", "p0"))
    answer = ViewRows(pa.table({"n": [5], "fresh": [False]}), ("BIGINT", "BOOLEAN"))
    assert audited(view, answer, "SELECT 5")[0] == 0
    assert audited(view, answer, "SELECT 6")[1].differences == 1
    assert audited(view, answer, "SELECT 5 WHERE false")[1].differences == 1


def test_rows_with_rounded_keys_are_settled_in_columns() -> None:
    """All keys of DuckDB may differ in the last bit."""
    view = view_of(OutputPlan("d", "DOUBLE", "k0", key="k0"), OutputPlan("n", "BIGINT", "p0"))
    keys = [n / 7 for n in range(1, 1_000)]
    given = pa.table({"d": keys, "n": range(999), "fresh": [False] * 999})
    rows = ", ".join(f"({math.nextafter(key, 9)!r}::DOUBLE, {n})" for n, key in enumerate(keys))
    answer = ViewRows(given, ("DOUBLE", "BIGINT", "BOOLEAN"))
    assert audited(view, answer, f"VALUES {rows}") == (0, AuditResult("v", 999, 0, changed=0))


DOUBLES = [0.3, NEARBY, 0.31, math.inf, math.nan, None]
TYPES = [pa.string(), pa.float64(), pa.int64(), pa.float64(), pa.bool_()]


def random_rows(rng: random.Random, count: int) -> list[tuple[Any, ...]]:
    """Keys that are missing, doubled, NULL or close to others, and values that are."""
    texts = [*map(str, range(count // 3)), None]
    return [
        (rng.choice(texts), rng.choice(DOUBLES), rng.choice([1, 1, None]), rng.choice(DOUBLES),
         rng.random() < 0.5)
        for _ in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize("count", [0, 1, 3, 500])
def test_the_rest_is_reported_as_all_rows_would_be(count: int) -> None:
    view = view_of(
        KEY,
        OutputPlan("d", "DOUBLE", "k1", key="k1"),
        OutputPlan("n", "BIGINT", "p0"),
        OutputPlan("x", "DOUBLE", "p1"),
    )
    rng = drawn("unsettled", count)
    ours, theirs = random_rows(rng, count), random_rows(rng, count)
    theirs = [rng.choice([one, other]) for one, other in zip(ours, theirs, strict=True)]
    schema = pa.schema(list(zip("kdnxf", TYPES, strict=True)))
    given, expected = (
        pa.Table.from_pylist([dict(zip("kdnxf", row, strict=True)) for row in rows], schema)
        for rows in (ours, theirs)
    )
    answer = ViewRows(given, ("STRING", "DOUBLE", "BIGINT", "DOUBLE", "BOOLEAN"))
    with duckdb.connect() as connection:
        connection.register("theirs", expected)
        evaluate(connection, view, "SELECT k, d, n, x FROM theirs")
        rows = unsettled(connection, view, answer.columns)
    found = compare(view, answer.rows(rows.answer), rows.expected)
    assert replace(found, compared=rows.total) == compare(view, ours, [r[:-1] for r in theirs])
    assert count < 500 or 0 < len(rows.answer) < count
