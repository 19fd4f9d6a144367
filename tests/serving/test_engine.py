"""The reading engine reaches nothing but the rows that it is given, and its time is bounded."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.core.cancellation import Cancellation
from headrace.core.errors import BadQuery, Cancelled, HeadraceError, LimitReached
from headrace.serving.engine import run

SLOW = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range % 7 = b.range % 5"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/*')",
        "COPY (SELECT 1) TO '{folder}/out.csv'",
        "ATTACH '{folder}/other.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 8",
        "SET enable_external_access = true",
        "RESET memory_limit",
        "SELECT * FROM secret",
    ],
)
def test_nothing_outside_can_be_reached(sql: str, tmp_path: Path) -> None:
    secret = pa.table({"x": [1]})
    assert secret.num_rows  # a variable of Python, which DuckDB would find by its name
    with pytest.raises(HeadraceError):
        run(sql.replace("{folder}", str(tmp_path)), {})
    assert list(tmp_path.iterdir()) == []


def test_tables_of_a_query_are_its_own() -> None:
    assert run("SELECT sum(x) AS s FROM t", {"t": pa.table({"x": [1, 2]})}).to_pylist() == [
        {"s": 3}
    ]
    with pytest.raises(BadQuery, match="cannot be answered"):
        run("SELECT * FROM t", {})


def test_a_query_ends_when_its_time_is_over() -> None:
    began = time.monotonic()
    with pytest.raises(LimitReached, match=r"timed out after 0\.2 seconds"):
        run(SLOW, {}, seconds_max=0.2)
    assert time.monotonic() - began < 10


def test_a_query_ends_when_it_is_stopped_before_or_while_it_runs() -> None:
    stopped, stopping = Cancellation(), Cancellation()
    stopped.stop()
    with pytest.raises(Cancelled):
        run("SELECT 1", {}, cancellation=stopped)
    timer = threading.Timer(0.2, stopping.stop)
    timer.start()
    with pytest.raises(Cancelled):
        run(SLOW, {}, cancellation=stopping)
    timer.join()


def test_a_query_that_needs_too_much_memory_is_refused() -> None:
    with pytest.raises(LimitReached, match="exceeded the memory limit of 1GB"):
        run("SELECT list(a.range || '-' || b.range) FROM range(20000) a, range(20000) b", {})
