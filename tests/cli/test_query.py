"""An answer is shown with what it speaks for."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from typer.testing import Result

from headrace.serving.answer import Answer, ColumnInfo, Sampled

from .conftest import ANSWER, Told, document


def test_an_answer_is_a_table_with_the_freshness_and_exactness_below(
    told: Told, call: Callable[..., Result]
) -> None:
    result = call("query", "SELECT * FROM visitors", "--limit", "5")
    assert result.exit_code == 0
    assert told.asked == [("SELECT * FROM visitors", 5)]
    assert [line.rstrip() for line in result.stdout.splitlines()] == [
        "url    hour                      hits  visitors      ms",
        "/home  2026-11-15 19:00 – 20:00  1203       ~88  41.235",
        "null   null                         1        ~1    null",
        "clicks: generation 3 · position 603,590 · watermark 2026-11-15 19:04:30 UTC · 0.4 s old",
        "2 rows; estimated: visitors (± 1.6%); every other column exact",
    ]


def test_json_has_all_of_an_answer(told: Told, call: Callable[..., Result]) -> None:
    said = document(call("query", "SELECT 1", "--json"))
    assert said == msgspec.to_builtins(ANSWER)
    assert list(said) == ["rows", "as_of", "columns", "truncated", "total", "windows"]
    assert said["columns"]["hits"] == {"type": "BIGINT", "exact": True}
    assert said["columns"]["visitors"] == {"type": "BIGINT", "exact": False, "error": 0.0163}
    assert said["as_of"]["clicks"]["generation"] == 3


def test_an_answer_without_rows_still_says_how_fresh_it_is(
    told: Told, call: Callable[..., Result]
) -> None:
    told.answer = Answer([], ANSWER.as_of, {"n": ANSWER.columns["hits"]})
    lines = call("query", "SELECT 1").stdout.splitlines()
    assert lines[0] == "no rows"
    assert lines[1].startswith("clicks: generation 3")
    assert lines[2] == "0 rows, every column exact"


def test_lists_are_shown_as_lists_with_what_is_known_of_them(
    told: Told, call: Callable[..., Result]
) -> None:
    rough = ColumnInfo("ARRAY<STRUCT<item: STRING, count: BIGINT>>", False, 0.0034, "events")
    columns = {"top": rough, "ids": ColumnInfo("ARRAY<BIGINT>", True, cut=True)}
    told.answer = Answer([{"top": [{"item": "/x", "count": 3}], "ids": [1, 2]}], {}, columns)
    assert [line.rstrip() for line in call("query", "SELECT 1").stdout.splitlines()] == [
        "top      ids",
        "~/x (3)  1, 2",
        "1 row; estimated: top (± 0.3% of the events); every other column exact; "
        "lists cut at their limit: ids",
    ]


def test_a_cut_answer_says_so(told: Told, call: Callable[..., Result]) -> None:
    told.answer = msgspec.structs.replace(ANSWER, truncated=True)
    assert "there are more rows" in call("query", "SELECT 1").stdout


def test_a_provisional_answer_is_not_called_exact(told: Told, call: Callable[..., Result]) -> None:
    as_of = {"clicks": msgspec.structs.replace(ANSWER.as_of["clicks"], provisional=True)}
    told.answer = msgspec.structs.replace(ANSWER, as_of=as_of)
    why = "provisional: an out-of-order event waits for the next generation of batch"
    last = call("query", "SELECT 1").stdout.splitlines()[-1]
    assert last == f"2 rows; estimated: visitors (± 1.6%); {why}"
    told.answer = Answer([], as_of, {"n": ANSWER.columns["hits"]})
    assert call("query", "SELECT 1").stdout.splitlines()[-1] == f"0 rows; {why}"


def test_a_sample_is_said_to_be_one(told: Told, call: Callable[..., Result]) -> None:
    as_of = msgspec.structs.replace(ANSWER.as_of["clicks"], sampled=Sampled(0.42, 123456))
    columns = ANSWER.columns | {"hits": ColumnInfo("BIGINT", False)}
    told.answer = msgspec.structs.replace(ANSWER, as_of={"clicks": as_of}, columns=columns)
    shown = call("query", "SELECT 1").stdout
    assert "sampled: 42.0% of the newest events, 123,456 events skipped" in shown
    assert "estimated: hits, visitors (± 1.6%)" in shown
    assert document(call("query", "SELECT 1", "--json"))["as_of"]["clicks"]["sampled"] == {
        "share": 0.42,
        "shed": 123456,
    }
