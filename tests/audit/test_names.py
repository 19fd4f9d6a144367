"""Whatever name a column has, DuckDB's SQL does not take it for one of its own."""

from __future__ import annotations

import duckdb
import pytest

from headrace.audit.duck import oracle_sql
from headrace.compile.plan import OutputPlan, ViewPlan

NAMES = ["us", "f", "t", "s", "g0", "opens", "v", "n", "w", "e", "o0", "o1", "o2", "o1_end"]
WINDOWS = ["window(ts, '4 seconds', '2 seconds')", "session_window(ts, '3 seconds')"]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", NAMES)
def test_a_column_of_that_name_is_counted_as_any_other(window: str, name: str) -> None:
    assert _answer(name, window) == _answer("plain", window)


def _answer(name: str, window: str) -> list[tuple[object, ...]]:
    connection = duckdb.connect()
    connection.execute(
        f"CREATE VIEW clicks AS SELECT i % 2 AS {name}, make_timestamp(i * i * 1000000) AS ts, "
        "0 AS _partition, i AS _offset FROM range(6) AS r(i)"
    )
    outputs = (
        OutputPlan("k", "BIGINT", "", key="k0"),
        OutputPlan("span", "WINDOW", "", key="k1"),
        OutputPlan("total", "BIGINT", ""),
        OutputPlan("shape", "DOUBLE", ""),
    )
    definition = (
        f"SELECT {name}, {window} AS span, sum({name}) AS total, skewness({name}) AS shape "
        f"FROM clicks GROUP BY {name}, {window}"
    )
    view = ViewPlan("named", "mergeable", "", outputs, definition=definition)
    return sorted(connection.execute(oracle_sql(view, "ts")).fetchall(), key=str)
