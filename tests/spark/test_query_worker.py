"""Ad-hoc queries in a process of their own: answers, limits, refusals, and life after a kill."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.compile.computed import HIDDEN_DDL
from headrace.core.cancellation import Cancellation
from headrace.core.errors import (
    BadProject,
    BadQuery,
    Cancelled,
    EngineFailed,
    HeadraceError,
    LimitReached,
    Refused,
    Unavailable,
    Unsupported,
)
from headrace.define.settings import QuerySettings, SparkSettings
from headrace.spark.query_client import QueryClient, QueryRequest, QueryResult, Relation
from headrace.spark.query_pool import QueryPool

pytestmark = pytest.mark.process

FUNCTIONS = """
import time
import pyarrow.compute as pc
from headrace.define.functions import function

PREFIX = "<"

def decorated(text):
    return pc.binary_join_element_wise(PREFIX, text, "")

@function(takes=["STRING"], returns="STRING")
def shout(text):
    return decorated(pc.utf8_upper(text))

@function(takes=["BIGINT"], returns="BIGINT", kind="pandas")
def twice(number):
    return number * 2

@function(takes=["BIGINT"], returns="BIGINT")
def stuck(number):
    time.sleep(1000)

@function(takes=["BIGINT"], returns="BIGINT")
def broken(number):
    raise ValueError("no such number")
"""
LIMITS = QuerySettings(seconds_max=60.0, rows_max=5, bytes_max=20_000, memory="512m")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("query")
    table = pa.table({"user": ["ann", "bob", "ann"], "ms": [1, 2, 3], "_offset": [0, 1, 2]})
    pq.write_table(table, folder / "clicks.parquet")
    (folder / "sections.csv").write_text("url,section\n/a,news\n")
    with pa.ipc.new_file(folder / "answer.arrow", table.schema) as file:
        file.write_table(table)
    (folder / "functions.py").write_text(FUNCTIONS)
    return folder


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[QueryClient]:
    client = QueryClient(SparkSettings(master="local[1]"), LIMITS, folder / "work")
    yield client
    client.close()


def clicks(folder: Path, **more: str) -> Relation:
    ddl = "user STRING, ms BIGINT, _offset BIGINT"
    return Relation("clicks", "parquet", [str(folder / "clicks.parquet")], ddl, **more)


def ask(client: QueryClient, folder: Path, sql: str) -> QueryResult:
    return client.run(QueryRequest(sql, [clicks(folder)], str(folder / "functions.py")))


def test_answer_has_columns_with_types_and_rows(client: QueryClient, folder: Path) -> None:
    result = ask(
        client, folder, "SELECT user, sum(ms) AS ms FROM clicks GROUP BY user ORDER BY user"
    )
    assert [(c.name, c.type) for c in result.columns] == [("user", "STRING"), ("ms", "BIGINT")]
    assert result.rows == [["ann", 4], ["bob", 2]]
    assert not result.truncated


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("timestamp '2020-01-02 03:04:05.678'", "2020-01-02T03:04:05.678000Z"),
        ("timestamp_ntz '2020-01-02 03:04:05'", "2020-01-02T03:04:05"),
        ("date '2020-01-02'", "2020-01-02"),
        (
            "window(timestamp '2020-01-01 00:30:00', '1 hour')",
            {"start": "2020-01-01T00:00:00Z", "end": "2020-01-01T01:00:00Z"},
        ),
        ("9007199254740993L", 9007199254740993),
        ("double('NaN')", None),
        ("-double('Infinity')", None),
        ("1.50BD", "1.50"),
        ("X'00FF'", "AP8="),
        ("array(1, null)", [1, None]),
        ("map(1, date '2020-01-02')", {"1": "2020-01-02"}),
        ("named_struct('a', 1, 'b', array(struct(true AS c)))", {"a": 1, "b": [{"c": True}]}),
        ("interval '1' day", "INTERVAL '1' DAY"),
        ("""parse_json('{"a": 1}')""", '{"a":1}'),
        ("null", None),
        ("user", "headrace"),
    ],
)
def test_each_type_is_written_as_json(client: QueryClient, expression: str, value: object) -> None:
    assert client.run(QueryRequest(f"SELECT {expression}, 1 AS x, 1 AS x")).rows == [[value, 1, 1]]


def test_relations_may_be_files_queries_and_filtered(client: QueryClient, folder: Path) -> None:
    sections = str(folder / "sections.csv")
    relations = [
        clicks(folder, filter="_offset < 2"),
        Relation("late", query="SELECT user, ms * 10 AS ms FROM clicks WHERE ms > 1"),
        Relation("sections", "csv", [sections], "url STRING, section STRING", {"header": "true"}),
        Relation("answer", "arrow_file", [str(folder / "answer.arrow")]),
        Relation("nothing", schema_ddl="x INT"),
    ]
    sql = (
        "SELECT (SELECT count(*) FROM clicks), (SELECT max(ms) FROM late),"
        " (SELECT max(section) FROM sections), (SELECT sum(ms) FROM answer),"
        " (SELECT count(*) FROM nothing)"
    )
    assert client.run(QueryRequest(sql, relations)).rows == [[2, 20, "news", 6, 0]]


def test_relations_are_gone_before_the_next_query(client: QueryClient, folder: Path) -> None:
    ask(client, folder, "SELECT 1 FROM clicks LIMIT 1")
    with pytest.raises(Refused, match="an ad-hoc query may not read 'clicks'"):
        client.run(QueryRequest("SELECT * FROM clicks"))


def test_functions_of_the_project_can_be_called(client: QueryClient, folder: Path) -> None:
    result = ask(client, folder, "SELECT shout(user), twice(ms) FROM clicks WHERE user = 'bob'")
    assert result.rows == [["<BOB", 4]]


def test_error_inside_a_function_is_told(client: QueryClient, folder: Path) -> None:
    with pytest.raises(BadQuery) as caught:
        ask(client, folder, "SELECT broken(ms) FROM clicks")
    assert caught.value.message == "a function in the query failed: ValueError: no such number"


def test_bad_function_file_is_told_with_its_line(client: QueryClient, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("x = 1\ny = 1 / 0\n")
    with pytest.raises(BadProject, match="ZeroDivisionError") as caught:
        client.run(QueryRequest("SELECT 1", [], str(tmp_path / "bad.py")))
    assert caught.value.origin == "bad.py:2"


def test_missing_file_is_told_and_does_not_end_the_worker(
    client: QueryClient, tmp_path: Path
) -> None:
    client.start()
    assert client._worker is not None
    worker = client._worker.process.pid
    for request in (
        QueryRequest("SELECT 1", [], str(tmp_path / "gone.py")),
        QueryRequest("SELECT 1", [Relation("x", "arrow_file", [str(tmp_path / "gone")])]),
    ):
        with pytest.raises(EngineFailed, match="a file that the query needs cannot be read"):
            client.run(request)
    assert client._worker.process.pid == worker


def test_more_rows_than_the_limit_are_cut_and_said(client: QueryClient) -> None:
    result = client.run(QueryRequest("SELECT explode(sequence(1, 100)) AS x"))
    assert [row[0] for row in result.rows] == [1, 2, 3, 4, 5]
    assert result.truncated


def test_answer_larger_than_the_limit_is_refused(client: QueryClient) -> None:
    with pytest.raises(LimitReached) as caught:
        client.run(QueryRequest("SELECT repeat(repeat('x', 300), 300)"))
    assert caught.value.message == "the result is larger than 20,000 bytes"
    assert "query.bytes_max" in str(caught.value)


def test_unknown_column_is_one_sentence_with_its_place(client: QueryClient, folder: Path) -> None:
    with pytest.raises(BadQuery) as caught:
        ask(client, folder, "SELECT user,\n  usr FROM clicks")
    assert caught.value.message.startswith(
        "a column, variable, or function parameter with name `usr`"
    )
    assert "\n" not in caught.value.message
    assert caught.value.detail == "UNRESOLVED_COLUMN.WITH_SUGGESTION, line 2, column 3"


@pytest.mark.parametrize(
    "sql",
    ["SELECT * FROM text.`/etc/passwd`", "SET a = 1", "SELECT reflect('java.lang.System', 'exit')"],
)
def test_hostile_query_is_refused(client: QueryClient, folder: Path, sql: str) -> None:
    with pytest.raises(Refused):
        ask(client, folder, sql)


def test_query_past_its_time_is_killed_and_the_next_one_works(
    client: QueryClient, folder: Path
) -> None:
    assert ask(client, folder, "SELECT twice(ms) FROM clicks").rows == [[2], [4], [6]]
    client._seconds_max = 3.0
    assert client._worker is not None
    worker, family = client._worker.process.pid, set[int]()
    snapshot = threading.Timer(2.0, lambda: family.update(family_of(worker)))
    snapshot.start()
    began = time.monotonic()
    with pytest.raises(LimitReached) as caught:
        ask(client, folder, "SELECT stuck(ms) FROM clicks")
    assert time.monotonic() - began < 6
    assert caught.value.message == "the query timed out after 3 seconds and was cancelled"
    assert "query.seconds_max" in str(caught.value)
    assert len(family) >= 4  # the worker, its JVM, Spark's Python daemon and the stuck function
    assert soon(lambda: not any(map(alive, family)))
    client._seconds_max = 60.0
    assert ask(client, folder, "SELECT 1").rows == [[1]]


def test_a_slow_query_of_one_user_keeps_no_other_user_waiting(folder: Path) -> None:
    pool = QueryPool(SparkSettings(master="local[1]"), LIMITS, folder / "pool")
    functions, stopping = str(folder / "functions.py"), Cancellation()
    stuck = QueryRequest("SELECT stuck(ms) FROM clicks", [clicks(folder)], functions)
    with ThreadPoolExecutor(1) as threads:
        try:
            slow = threads.submit(pool.run, stuck, "ada", stopping)
            assert soon(lambda: pool.processes == 1, 60)
            count = QueryRequest("SELECT count(*) FROM clicks", [clicks(folder)])
            assert pool.run(count, "bob").rows == [[3]]
            assert not slow.done()
            assert pool.processes == 2
            stopping.stop()
            with pytest.raises(Cancelled):
                slow.result(30)
        finally:
            pool.close()


def test_worker_without_memory_is_replaced(client: QueryClient, folder: Path) -> None:
    doubling = "aggregate(sequence(1, 27), 'xxxxxxxxxxxxxxxx', (a, x) -> concat(a, a))"
    with pytest.raises(Unavailable) as caught:
        ask(client, folder, f"SELECT length({doubling}), ms FROM clicks")
    assert caught.value.message == "the ad-hoc query process exited before it returned a result"
    assert ask(client, folder, "SELECT 1").rows == [[1]]


def test_worker_ends_when_its_client_is_killed(folder: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from headrace.define.settings import *;"
        "from headrace.spark.query_client import QueryClient;"
        f"c = QueryClient(SparkSettings(), QuerySettings(), Path({str(folder / 'orphan')!r}));"
        "c.start(); print(c._worker.process.pid, flush=True); sys.stdin.read()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.getcwd()},
    )
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    family = family_of(worker)
    assert len(family) >= 2  # the worker and its JVM
    parent.kill()
    parent.communicate()
    assert soon(lambda: not any(map(alive, family)))


def family_of(pid: int) -> set[int]:
    """A process and all that descend from it."""
    found, size = {pid}, 0
    while size != len(found):
        size = len(found)
        for entry in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                if int(entry.read_text().rpartition(")")[2].split()[1]) in found:
                    found.add(int(entry.parent.name))
    return found


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def soon(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.1)
    return False


@pytest.fixture(scope="module")
def visits(tmp_path_factory: pytest.TempPathFactory) -> Relation:
    """A stream as a query sees it: with the places of its events."""
    path = tmp_path_factory.mktemp("visits") / "visits.parquet"
    times = [datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC) for second in range(5)]
    columns = {
        "user": ["ann"] * 3 + ["bob"] * 2, "step": ["in", "buy", "out", "in", "out"], "ts": times,
        "_partition": pa.array([0] * 5, pa.int32()), "_offset": range(5), "_arrived_at": times,
        "_late": [False] * 5, "_lateness": [0] * 5,
    }  # fmt: skip
    pq.write_table(pa.table(columns), path)
    ddl = f"user STRING, step STRING, ts TIMESTAMP, {HIDDEN_DDL}"
    return Relation("visits", "parquet", [str(path)], ddl)


def matched(client: QueryClient, visits: Relation, sql: str) -> list[list[Any]]:
    return client.run(QueryRequest(sql, [visits])).rows


def test_a_pattern_is_searched_in_all_events_and_knows_their_end(
    client: QueryClient, visits: Relation
) -> None:
    sql = """
        SELECT user, upper(last) AS last, n FROM visits MATCH_RECOGNIZE (
          PARTITION BY user ORDER BY ts MEASURES last(step) AS last, count(*) AS n
          PATTERN (a b* $) DEFINE a AS step = 'in') ORDER BY user DESC
    """
    assert matched(client, visits, sql) == [["bob", "OUT", 2], ["ann", "OUT", 3]]
    assert ask_again(client, visits) == [[5]]


def ask_again(client: QueryClient, visits: Relation) -> list[list[Any]]:
    return matched(client, visits, "SELECT count(*) AS n FROM visits")


PRICES = "(VALUES (1, 90), (2, 80), (3, 70), (4, 80), (5, 60), (6, 70)) AS t (id, price)"
VEE = """MEASURES match_number() AS m, classifier() AS c, running last(price) AS p
         ALL ROWS PER MATCH PATTERN (a b+ c+)
         DEFINE b AS price < prev(price), c AS price > prev(price)"""


def test_a_pattern_is_searched_in_any_relation(client: QueryClient, visits: Relation) -> None:
    sql = f"SELECT * FROM {PRICES} MATCH_RECOGNIZE (ORDER BY id {VEE})"
    assert matched(client, visits, sql) == [
        [1, 1, "A", 90, 90], [2, 1, "B", 80, 80], [3, 1, "B", 70, 70], [4, 1, "C", 80, 80],
    ]  # fmt: skip


def test_a_pattern_reads_what_the_query_names_and_in_any_order(
    client: QueryClient, visits: Relation
) -> None:
    sql = f"""
        WITH u AS (SELECT * FROM {PRICES}), t AS (SELECT id, price FROM u)
        SELECT m.id FROM t MATCH_RECOGNIZE (ORDER BY id DESC {VEE}) AS m ORDER BY 1
    """
    assert matched(client, visits, sql) == [[4], [5], [6]]


def test_a_query_does_with_matches_what_it_likes(client: QueryClient, visits: Relation) -> None:
    rows = "(VALUES (1, 'a', 5), (1, 'b', 6), (2, 'a', 7)) AS t (k, g, v)"
    sql = f"""
        SELECT x.name, y.gs FROM (SELECT k, gs FROM {rows} MATCH_RECOGNIZE (
          PARTITION BY k ORDER BY v DESC, g MEASURES array_agg(g) AS gs PATTERN (a+))) y
        JOIN (VALUES (1, 'one'), (2, 'two')) AS x (k, name) ON x.k = y.k ORDER BY 1
    """
    assert matched(client, visits, sql) == [["one", ["b", "a"]], ["two", ["a"]]]


def test_within_measures_the_first_column_of_the_order(
    client: QueryClient, visits: Relation
) -> None:
    rows = ", ".join(f"(TIMESTAMP '2026-01-01 00:0{m}:00', {m})" for m in (0, 2, 3))
    sql = f"""
        SELECT * FROM (VALUES {rows}) AS t (ts, v) MATCH_RECOGNIZE (ORDER BY ts
          MEASURES first(v) AS f, last(v) AS l PATTERN (a b) WITHIN INTERVAL 90 SECONDS)
    """
    assert matched(client, visits, sql) == [[2, 3]]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            f"FROM {PRICES} MATCH_RECOGNIZE (ORDER BY id PATTERN (a) WITHIN INTERVAL 1 MINUTE)",
            "WITHIN requires ORDER BY a timestamp, ascending; got ORDER BY id",
        ),
        (
            f"FROM visits, {PRICES} MATCH_RECOGNIZE (ORDER BY id PATTERN (a))",
            "must be the only relation",
        ),
        (f"FROM {PRICES} MATCH_RECOGNIZE (PATTERN (a))", "expected ORDER BY"),
        (f"FROM {PRICES} MATCH_RECOGNIZE (ORDER BY size PATTERN (a))", "no column 'size'"),
    ],
)
def test_a_pattern_without_an_order_it_can_use_is_refused(
    client: QueryClient, visits: Relation, text: str, sentence: str
) -> None:
    with pytest.raises(HeadraceError, match=sentence):
        matched(client, visits, f"SELECT * {text}")


@pytest.mark.parametrize(
    "clause",
    [
        "MEASURES reflect('java.lang.System', 'exit', 1) AS x PATTERN (a)",
        "PATTERN (a) DEFINE a AS java_method('java.lang.System', 'exit', 1) = '1'",
        "MEASURES first(java_method('java.lang.System', 'exit', 1)) AS x PATTERN (a)",
        "PATTERN (a b) DEFINE b AS step = last(reflect('java.lang.System', 'exit', 1))",
    ],
)
def test_what_a_pattern_says_passes_the_fence_too(
    client: QueryClient, visits: Relation, clause: str
) -> None:
    with pytest.raises(Refused):
        matched(client, visits, f"SELECT * FROM visits MATCH_RECOGNIZE (ORDER BY ts {clause})")


@pytest.mark.parametrize("after", ["WHERE reflect('java.lang.System', 'exit', 1) = 1", "JOIN x"])
def test_what_stands_after_a_pattern_is_fenced(
    client: QueryClient, visits: Relation, after: str
) -> None:
    sql = f"SELECT * FROM visits MATCH_RECOGNIZE (ORDER BY ts PATTERN (a)) AS m {after}"
    with pytest.raises((Refused, Unsupported, BadQuery)):
        matched(client, visits, sql)
