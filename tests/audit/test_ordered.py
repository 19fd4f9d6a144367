"""DuckDB says what needs the order of events as the reference does, without the engine's folds."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from headrace.audit.duck import oracle_sql
from headrace.audit.ordered import NotComparable
from headrace.compile.plan import CarryPlan, OutputPlan, ProcessorPlan, ViewPlan
from headrace.testing.reference import Reference, StreamWatermark, Timestamp

# user, second, value, whether it ends a window; two events are of the same second.
EVENTS = [
    ("a", 5, 4, False),
    ("b", 1, 7, False),
    ("a", 2, None, True),
    ("a", 5, 1, True),
    ("b", None, 9, True),
    ("a", 9, 6, None),
    ("b", 3, 2, True),
    ("a", 1, 8, False),
]


def in_duck(definition: str, columns: int) -> list[tuple[Any, ...]]:
    rows = [
        (user, second, ms, ends, 0, offset)
        for offset, (user, second, ms, ends) in enumerate(EVENTS)
    ]
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE raw "
        "(user TEXT, s BIGINT, ms BIGINT, ends BOOLEAN, _partition INT, _offset INT)"
    )
    connection.executemany("INSERT INTO raw VALUES (?, ?, ?, ?, ?, ?)", rows)
    connection.execute("CREATE VIEW clicks AS SELECT *, make_timestamp(s * 1000000) AS ts FROM raw")
    outputs = tuple(OutputPlan(f"c{n}", "STRING", "") for n in range(columns))
    view = ViewPlan(
        "v", "carried", "", outputs, definition=definition, carry=CarryPlan("_carried_v", "")
    )
    return sorted(connection.execute(oracle_sql(view, "ts")).fetchall())


def in_reference(queries: dict[str, str]) -> list[tuple[Any, ...]]:
    reference = Reference(
        {"clicks": ["user", "ts", "ms", "ends"]},
        {},
        queries,
        watermarks={"clicks": StreamWatermark("ts", 0)},
    )
    events = [
        {
            "user": user,
            "ts": None if second is None else Timestamp(second * 1_000_000),
            "ms": ms,
            "ends": ends,
            "_partition": 0,
            "_offset": offset,
        }
        for offset, (user, second, ms, ends) in enumerate(EVENTS)
    ]
    rows = reference.answer("v", {"clicks": events})
    return sorted(tuple(row.values()) for row in rows)


@pytest.mark.parametrize("window", ["count_window(2)", "count_window(3, 1)", "count_window(3, 2)"])
def test_windows_of_counts(window: str) -> None:
    sql = f"SELECT user, {window} AS w, count(*) AS n, sum(ms) AS ms FROM clicks GROUP BY 1, 2"
    assert in_duck(sql, 4) == in_reference({"v": sql})


def test_windows_that_end_with_an_event() -> None:
    window = "punctuated_window(ends)"
    sql = f"SELECT user, {window} AS w, count(*) AS n FROM clicks GROUP BY user, {window}"
    assert in_duck(sql, 3) == in_reference({"v": sql})


@pytest.mark.parametrize(
    "call", ["sum(ms)", "count(ms)", "max(ms)", "lag(ms)", "first_value(ms)", "row_number()"]
)
def test_running_values(call: str) -> None:
    stream = f"SELECT user, ts, {call} OVER (PARTITION BY user ORDER BY ts) AS y FROM clicks"
    view = "SELECT user, max(y) AS y, count(y) AS n FROM {} GROUP BY user"
    expected = in_reference({"s": stream, "v": view.format("s")})
    assert in_duck(view.format(f"({stream}) AS s"), 3) == expected


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        (
            "SELECT max(y) AS y FROM (SELECT ewma(ms, 0.5) OVER (ORDER BY ts) AS y FROM clicks)",
            "DuckDB does not support ewma",
        ),
        (
            "SELECT punctuated_window(ends, 3) AS w FROM clicks GROUP BY 1",
            "DuckDB does not support punctuated windows with limits",
        ),
    ],
)
def test_what_duckdb_cannot_say_is_not_compared(definition: str, reason: str) -> None:
    with pytest.raises(NotComparable, match=reason):
        in_duck(definition, 1)


def test_a_processor_is_not_compared() -> None:
    carry = CarryPlan("_carried_v", "", processor=ProcessorPlan("p", (), ()))
    view = ViewPlan("v", "carried", "", (), definition="SELECT count(*) FROM s", carry=carry)
    with pytest.raises(NotComparable, match="a processor is written in Python"):
        oracle_sql(view)
