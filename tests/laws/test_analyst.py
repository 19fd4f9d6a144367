"""Analysts' queries over views mean what Spark means by them.

analyst.sql has 60 of them over the views of `examples/`. For each, the reading engine gives the
types and rows that Spark gives over the same rows: integers, decimals, times and texts exactly,
doubles to 1e-9, and in the same order where the query has one.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.certified.relation import AnswerColumn, ReadRelation
from headrace.certified.select import compile_query
from headrace.compile.passes import compile_project
from headrace.core.origin import Origin
from headrace.define.dialect import parse_query
from headrace.define.functions import load_functions
from headrace.define.project import load_project
from headrace.serving.engine import run
from headrace.serving.merged_rows import storage_rows
from headrace.spark.analyse import SparkAnalyser
from headrace.spark.functions import register_functions

Row = tuple[Any, ...]
FILE = Path(__file__).with_name("analyst.sql")
EXAMPLES = Path(__file__).parents[2] / "examples"
URLS = ["/home", "/shoes", "/hats", "/cart", "/pay", "/help"]
SECTIONS = {"/home": "start", "/shoes": "goods", "/hats": "goods", "/cart": "till", "/pay": "till"}
ROUTES = ["north-1", "north-2", "south-1", "abroad-1", "transit-1", "lab-1", "old-9", None]
IPS = ["198.51.100.7", "203.0.113.9", "198.51.100.23", "203.0.113.40", "192.0.2.66", "192.0.2.8"]
# The columns of each view of examples/, with their types.
VIEWS = {
    "visitors": "url STRING, section STRING, hour WINDOW, hits BIGINT, visitors BIGINT, ms DOUBLE",
    "sales": "minute WINDOW, channel STRING, payments BIGINT, revenue DOUBLE, largest DOUBLE",
    "totals": "events BIGINT, users BIGINT, first TIMESTAMP, last TIMESTAMP, ms DOUBLE, "
    "ms_deviation DOUBLE",
    "busiest": "url STRING, hits_total BIGINT",
    "by_direction": "direction STRING, hour WINDOW, calls BIGINT, seconds BIGINT",
    "by_route": "route STRING, calls BIGINT, seconds BIGINT, charged_seconds BIGINT, cents BIGINT",
    "by_rule": "direction_rule STRING, rule STRING, calls BIGINT",
    "alerts_by_hour": "rule STRING, severity STRING, hour WINDOW, alerts BIGINT",
    "break_ins_by_source": "source_ip STRING, break_ins BIGINT, most_attempts BIGINT, "
    "last TIMESTAMP",
    "traffic_by_minute": "kind STRING, minute WINDOW, events BIGINT, sources BIGINT",
}
TIME = pa.timestamp("us")
ARROW = {
    "STRING": pa.string(), "BIGINT": pa.int64(), "DOUBLE": pa.float64(), "TIMESTAMP": TIME,
    "WINDOW": pa.struct([("start", TIME), ("end", TIME)]),
}  # fmt: skip


def queries() -> dict[str, str]:
    """The queries of analyst.sql by their titles."""
    _, *blocks = FILE.read_text().split("\n\n-- ")
    parts = (block.partition("\n") for block in blocks)
    return {title: sql.strip().removesuffix(";") for title, _, sql in parts}


QUERIES = queries()


def columns_of(view: str) -> tuple[AnswerColumn, ...]:
    pairs = (column.split() for column in VIEWS[view].split(", "))
    return tuple(AnswerColumn(name, type) for name, type in pairs)


# Rows


def window(start: datetime, length: timedelta) -> dict[str, datetime]:
    return {"start": start, "end": start + length}


def times(rng: random.Random, count: int, step: timedelta) -> list[datetime]:
    """Starts of windows in 15 months: runs of neighbours, and the ends of months and years."""
    found = {datetime(2024, 12, 31, 23), datetime(2025, 1, 31, 23), datetime(2026, 1, 1)}
    while len(found) < count:
        month, day = rng.choice([0, 0, 1, 2, 6, 11, 12, 13, 14]), rng.randrange(1, 10)
        at = datetime(2025 + month // 12, month % 12 + 1, day, rng.randrange(8, 12))
        found |= {at + step * n for n in range(rng.randrange(1, 5))}
    return sorted(found)


def maybe(rng: random.Random, value: Any, share: float = 0.08) -> Any:
    return None if rng.random() < share else value


def cents(rng: random.Random, low: int, high: int) -> float:
    return rng.randrange(low, high) / 100


def made(rng: random.Random) -> dict[str, list[Row]]:
    """Rows of every view: few distinct numbers, so that there are ties, and NULL where an
    aggregate may be NULL or a key unknown.
    """
    hour, minute = timedelta(hours=1), timedelta(minutes=1)
    hours, minutes = times(rng, 60, hour), times(rng, 90, minute)
    rows: dict[str, list[Row]] = {name: [] for name in VIEWS}
    for at in hours:
        for url in rng.sample(URLS, 3):
            hits = rng.randrange(1, 60)
            ms = maybe(rng, cents(rng, 500, 90_000))
            row = (url, SECTIONS.get(url), window(at, hour), hits, min(hits, 9), ms)
            rows["visitors"].append(row)
        for direction in rng.sample(["T", "O", "R", "X", "?", None], 3):
            calls = rng.randrange(1, 9)
            seconds = maybe(rng, calls * rng.randrange(3, 700))
            rows["by_direction"].append((direction, window(at, hour), calls, seconds))
        for rule in rng.sample(["brute_force", "port_scan", "peer_to_peer", "break_in"], 2):
            severity = rng.choice(["critical", "high", "medium", "low"])
            rows["alerts_by_hour"].append((rule, severity, window(at, hour), rng.randrange(1, 6)))
    for at in minutes:
        for channel in rng.sample(["search", "social", "direct", None], 2):
            payments, largest = rng.randrange(1, 6), maybe(rng, cents(rng, 500, 20_000))
            revenue = None if largest is None else largest + (payments - 1) * 5.25
            rows["sales"].append((window(at, minute), channel, payments, revenue, largest))
        for kind in rng.sample(["flow", "scan", "brute force", "peer to peer"], 2):
            events = rng.randrange(1, 30)
            row = (kind, window(at, minute), events, min(events, 6))
            rows["traffic_by_minute"].append(row)
    for route in ROUTES:
        calls, seconds = rng.randrange(50, 150), rng.randrange(5_000, 50_000)
        charged = maybe(rng, seconds - rng.randrange(5_000), 0.2)
        row = (route, calls, maybe(rng, seconds, 0.2), charged, maybe(rng, seconds // 7, 0.2))
        rows["by_route"].append(row)
    for direction in ["test_call", "outgoing", "roaming", "transit", "no_route", None]:
        for rule in rng.sample(["premium", "long", "free number", "too short", None], 3):
            rows["by_rule"].append((direction, rule, rng.choice([3, 3, 40, 41, 500])))
    for ip in IPS:
        last = datetime(2026, rng.randrange(1, 4), rng.randrange(1, 29), 7, 8, 9, 10)
        row = (ip, rng.randrange(1, 6), maybe(rng, rng.randrange(20, 40), 0.2), last)
        rows["break_ins_by_source"].append(row)
    first, last = datetime(2024, 12, 31, 23, 0, 0, 5), datetime(2026, 3, 9, 11, 59, 59, 999_999)
    rows["totals"] = [(1_234_567, 2_000, first, last, 412.5, 250.75)]
    rows["busiest"] = [(url, total) for url, total in zip(URLS, (900, 800, 800), strict=False)]
    return rows


def tables() -> dict[str, pa.Table]:
    rows = made(random.Random(7))
    return {name: _table(columns_of(name), rows[name]) for name in VIEWS}


def _table(columns: tuple[AnswerColumn, ...], rows: list[Row]) -> pa.Table:
    values = zip(*rows, strict=True)
    arrays = [pa.array(v, ARROW[c.type]) for c, v in zip(columns, values, strict=True)]
    return pa.table(arrays, [column.name for column in columns])


# Both engines


@pytest.fixture(scope="module")
def views(spark: Any) -> Iterator[dict[str, pa.Table]]:
    """The rows of each view, which Spark has as temporary views of the same names."""
    given = tables()
    for name, table in given.items():
        spark.createDataFrame(in_utc(table)).createOrReplaceTempView(name)
    yield given
    for name in given:
        spark.catalog.dropTempView(name)


def in_utc(table: pa.Table) -> pa.Table:
    """With times that have a zone: those without are of another type in Spark."""
    zoned = pa.timestamp("us", "UTC")
    types = {TIME: zoned, ARROW["WINDOW"]: pa.struct([("start", zoned), ("end", zoned)])}
    fields = [(field.name, types.get(field.type, field.type)) for field in table.schema]
    return table.cast(pa.schema(fields))


def spark_type(type: str) -> str:
    return "struct<start:timestamp,end:timestamp>" if type == "WINDOW" else type.lower()


def close(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) or (a != a and b != b)
    return type(a) is type(b) and bool(a == b)


def sorted_rows(rows: list[Row]) -> list[Row]:
    """In an order in which doubles come last, since they may differ a little."""

    def key(row: Row) -> tuple[list[str], list[str]]:
        exact = [repr(value) for value in row if not isinstance(value, float)]
        return exact, [f"{value:.5g}" for value in row if isinstance(value, float)]

    return sorted(rows, key=key)


@pytest.mark.parametrize("title", QUERIES)
def test_an_analysts_query_gives_what_spark_gives(
    spark: Any, views: dict[str, pa.Table], title: str
) -> None:
    query = parse_query(QUERIES[title], Origin(FILE.name, 1))
    relations = {name: ReadRelation(name, columns_of(name)) for name in VIEWS}
    made = compile_query(query, relations.get)
    types = [column.type for column in made.columns]
    table = run(made.sql, views)
    frame = spark.sql(QUERIES[title])
    assert [column.name for column in made.columns] == frame.columns
    assert list(map(spark_type, types)) == [f.dataType.simpleString() for f in frame.schema]
    given, wanted = storage_rows(table, types), storage_rows(frame.toArrow(), types)
    if not query.args.get("order"):
        given, wanted = sorted_rows(given), sorted_rows(wanted)
    assert wanted, "a query without an answer compares nothing"
    assert len(given) == len(wanted)
    for ours, sparks in zip(given, wanted, strict=True):
        assert all(map(close, ours, sparks)), (ours, sparks)


@pytest.mark.parametrize("example", ["shop", "calls", "intrusion"])
def test_the_columns_are_those_of_the_examples(spark: Any, example: str) -> None:
    project, analyser = load_project(EXAMPLES / example), SparkAnalyser(spark)
    if project.functions_file:
        register_functions(analyser.spark, load_functions(project.functions_file))
    plan = compile_project(project, analyser)
    shown = {
        view.name: ", ".join(f"{output.name} {output.type}" for output in view.outputs)
        for view in plan.shown_views
        if view.name in VIEWS
    }
    assert shown == {name: VIEWS[name] for name in shown}
    assert len(shown) == {"shop": 4, "calls": 3, "intrusion": 3}[example]


def test_there_are_sixty_queries_over_every_view() -> None:
    assert len(QUERIES) == 60
    assert [name for name in VIEWS if not any(name in sql for sql in QUERIES.values())] == []
