"""An answer says what it speaks for: how far each stream had come, in the same transaction, and how
exact each column is.
"""

from __future__ import annotations

import threading
from typing import Any

import msgspec
import pytest

from headrace.certified.relation import AnswerColumn
from headrace.core.aggregate import HLL_ERROR, Approximation
from headrace.core.time import SECOND
from headrace.serving.answer import AsOf, ColumnInfo, column_info, rows_as_objects

from .bench import CLICKS, PLAN, Bench, Click
from .marks import on_drawn_database

pytestmark = on_drawn_database


def test_as_of_says_how_far_each_stream_had_come(bench: Bench) -> None:
    bench.send(*CLICKS[:2])
    bench.build()
    bench.clock.now_us += 30 * SECOND
    bench.send(*CLICKS[2:4])
    bench.clock.now_us += 2 * SECOND
    expected = AsOf(
        generation=1,
        boundary=[1, 1],
        position=[3, 1],
        watermark="2025-12-31T23:59:56Z",
        committed_at="2026-01-01T01:00:30Z",
        age_ms=2_000,
    )
    for ask in (bench.reader.view, lambda view: bench.reader.sql(f"SELECT * FROM {view}")):
        for view in ("hits", "pages", "total"):
            assert ask(view).as_of == {"clicks": expected}, view


def test_before_any_event_there_is_no_watermark_and_no_age(bench: Bench) -> None:
    bench.build()
    assert bench.reader.view("total").as_of == {"clicks": AsOf(1, [0, 0], [0, 0], None, None, None)}


KEY, WINDOW = ColumnInfo("STRING", True, key=True), ColumnInfo("WINDOW", True, key=True)


@pytest.mark.parametrize(
    ("view", "column", "fresh", "covered"),
    [
        ("users", "page", KEY, KEY),
        (
            "users",
            "users",
            ColumnInfo("BIGINT", False, HLL_ERROR),
            ColumnInfo("BIGINT", True),
        ),
        (
            "users",
            "about",
            ColumnInfo("BIGINT", False, HLL_ERROR),
            ColumnInfo("BIGINT", False, HLL_ERROR),
        ),
        ("hits", "minute", WINDOW, WINDOW),
        ("total", "last", ColumnInfo("TIMESTAMP", True), ColumnInfo("TIMESTAMP", True)),
    ],
)
def test_an_estimate_is_called_one_and_batch_makes_it_exact(
    bench: Bench, view: str, column: str, fresh: ColumnInfo, covered: ColumnInfo
) -> None:
    bench.build()
    bench.send(*CLICKS)
    for ask in (bench.reader.view, lambda name: bench.reader.sql(f"SELECT {column} FROM {name}")):
        assert ask(view).columns[column] == fresh
    bench.build(full=False)
    for ask in (bench.reader.view, lambda name: bench.reader.sql(f"SELECT {column} FROM {name}")):
        assert ask(view).columns[column] == covered


def test_what_is_computed_from_an_estimate_is_an_estimate(bench: Bench) -> None:
    bench.build()
    bench.send(*CLICKS)
    answer = bench.reader.sql(
        "SELECT page, users + 1 AS more, max(about) AS m FROM users GROUP BY 1, 2"
    )
    exact = {name: info.exact for name, info in answer.columns.items()}
    assert exact == {"page": True, "more": False, "m": False}


def test_a_list_is_a_list_and_its_column_says_when_one_was_cut() -> None:
    results = (
        AnswerColumn("a", "ARRAY<BIGINT>", lists=frozenset({"merged.c0"})),
        AnswerColumn("b", "ARRAY<STRING>", lists=frozenset({"merged.c0", "merged.c1"})),
        AnswerColumn("c", "STRING"),
    )
    rows = rows_as_objects([("[1, 2]", '["x"]', "[]"), ("[]", '["y"]', "")], results)
    assert rows == [{"a": [1, 2], "b": ["x"], "c": "[]"}, {"a": [], "b": ["y"], "c": ""}]
    found = column_info(results, {"merged.c1"}, fresh=True)
    cut = {name: info.cut for name, info in found.items()}
    assert cut == {"a": False, "b": True, "c": False}
    assert msgspec.json.decode(msgspec.json.encode(rows)) == rows


def test_an_error_says_what_it_is_a_share_of() -> None:
    results = (AnswerColumn("p", "DOUBLE", Approximation("always", 0.0133, of="rank")),)
    info = column_info(results, set(), fresh=False)["p"]
    assert msgspec.to_builtins(info) == {
        "type": "DOUBLE",
        "exact": False,
        "error": 0.0133,
        "error_of": "rank",
    }


def test_rows_and_as_of_are_never_of_different_transactions(bench: Bench) -> None:
    """Every epoch is one event, so the count of an answer is the sum of its own position."""
    bench.build()
    total = PLAN.view("total")
    assert total is not None
    done, found = threading.Event(), list[tuple[Any, Any]]()

    def ask() -> None:
        while not done.is_set():
            answer = bench.reader.view("total")
            found.append((answer.rows[0]["n"], sum(answer.as_of["clicks"].position)))

    readers = [threading.Thread(target=ask) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for second in range(60):
            bench.send(Click("/a", "ann", second))
            if second % 10 == 9:
                bench.build(full=False)
    finally:
        done.set()
        for reader in readers:
            reader.join()
    assert len({position for _, position in found}) > 3, "nothing changed while it was asked"
    assert [pair for pair in found if pair[0] != pair[1]] == []
