"""Two ways to ask, one answer: by keys and by SQL; the reference interpreter agrees with both."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.core.cancellation import Cancellation
from headrace.core.errors import (
    BadQuery,
    BadRequest,
    Cancelled,
    HeadraceError,
    LimitReached,
    NotFound,
    NotReady,
    UnknownColumn,
    Unsupported,
)
from headrace.core.time import from_iso
from headrace.serving import conditions
from headrace.serving.read import Reader

from .bench import CLICKS, VIEWS, Bench, alike, definitions, plan_of
from .databases import open_database
from .marks import on_drawn_database

pytestmark = on_drawn_database


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, database: str) -> Iterator[Bench]:
    """Half of the events in a generation, half in two groups of speed."""
    made = Bench(tmp_path_factory.mktemp("read") / "serving.db")
    made.send(*CLICKS[:4])
    made.build()
    made.send(*CLICKS[4:6])
    made.store.close_group("clicks")
    made.send(*CLICKS[6:])
    yield made
    made.close()


@pytest.mark.parametrize("view", VIEWS)
def test_by_keys_by_sql_and_the_reference_are_the_same(both: Bench, view: str) -> None:
    expected = both.expected(view)
    assert alike(both.reader.view(view).rows) == alike(expected)
    assert alike(both.reader.sql(f"SELECT * FROM {view}").rows) == alike(expected)
    assert both.reader.sql(f"SELECT * FROM {view}").columns == both.reader.view(view).columns


@pytest.mark.parametrize(
    ("view", "keys", "condition"),
    [
        ("hits", {"page": "/a"}, "page = '/a'"),
        ("hits", {"PAGE": "/b"}, "page = '/b'"),
        ("hits", {"page": "it's"}, "page = 'it''s'"),
        ("hits", {"page": "/none"}, "page = '/none'"),
        ("users", {"page": "/a"}, "page = '/a'"),
        ("top", {"page": "/b"}, "page = '/b'"),
        ("pages", {"page": "/a"}, "page = '/a'"),
        ("pages", {"hits": "1"}, "hits = 1"),
    ],
)
def test_conditions_on_keys_give_the_rows_that_a_filter_gives(
    both: Bench, view: str, keys: dict[str, str], condition: str
) -> None:
    name, value = next(iter(keys.items()))
    expected = [row for row in both.expected(view) if str(row[name.lower()]) == value]
    assert alike(both.reader.view(view, keys).rows) == alike(expected)
    found = both.reader.sql(f"SELECT * FROM {view} WHERE {condition}").rows
    assert alike(found) == alike(expected)


@pytest.mark.parametrize(
    ("since", "until", "minutes"),
    [
        ("2026-01-01T00:01:00Z", None, {1, 2}),
        (None, "2026-01-01T00:01:00Z", {0}),
        ("2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z", {1}),
        ("2026-01-01T00:00:01Z", "2026-01-01T00:01:00Z", set()),
    ],
)
def test_windows_that_begin_in_a_range(
    both: Bench, since: str | None, until: str | None, minutes: set[int]
) -> None:
    begins = {f"2026-01-01T00:0{minute}:00Z" for minute in minutes}
    expected = [row for row in both.expected("hits") if row["minute"]["start"] in begins]
    assert alike(both.reader.view("hits", since=since, until=until).rows) == alike(expected)


QUERIES = [
    "SELECT page, n FROM hits WHERE page = '/a' AND minute.start >= '2026-01-01T00:01:00Z'",
    "SELECT page, n FROM hits WHERE minute.start < '2026-01-01T00:01:00Z' AND n > 1",
    "SELECT page, n FROM hits WHERE page = '/a' OR page = '/b'",
    "SELECT page, n FROM hits WHERE page > '/a' AND slowest IS NULL",
    "SELECT page, n FROM hits WHERE NOT page = '/a'",
    "SELECT h.page, h.n FROM hits h WHERE h.page = '/b' AND h.minute.end > '2026-01-01T00:01:00Z'",
    "SELECT page, sum(n) AS m FROM hits WHERE page <= '/b' GROUP BY page",
    "SELECT page, n FROM top WHERE page = '/b'",
    "SELECT count(*) AS c FROM hits WHERE page = '/a'",
    "SELECT users FROM users WHERE page = '/a'",
    "SELECT * FROM pages WHERE page = '/a'",
]


@pytest.mark.parametrize("query", QUERIES)
def test_a_condition_that_goes_inside_gives_the_same_rows(
    both: Bench, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushed = both.reader.sql(query).rows
    monkeypatch.setattr(conditions, "_SIGNS", {})
    assert alike(both.reader.sql(query).rows) == alike(pushed)
    assert pushed


def test_a_key_that_is_null_is_not_one_that_is_empty(both: Bench) -> None:
    def pages(key: str | None) -> list[str | None]:
        return [row["page"] for row in both.reader.view("hits", {"page": key}).rows]

    assert pages(None) == [None]
    assert pages("") == []


def test_an_order_of_the_query_is_kept(both: Bench) -> None:
    rows = both.reader.sql("SELECT page, users AS u FROM users ORDER BY users DESC, page").rows
    assert [(row["page"], row["u"]) for row in rows] == [
        ("/a", 3),
        ("/b", 2),
        (None, 1),
        ("it's", 1),
    ]


def test_an_answer_has_no_more_rows_than_are_allowed_and_says_so(both: Bench) -> None:
    small = Reader(both.store.db, rows_max=2)
    for answer in (small.view("hits"), small.sql("SELECT * FROM hits")):
        assert len(answer.rows) == 2
        assert answer.truncated
    whole = both.reader.view("hits")
    assert (len(whole.rows), whole.truncated) == (6, False)
    assert not Reader(both.store.db, rows_max=6).view("hits").truncated


def test_a_limit_asked_for_is_kept(both: Bench) -> None:
    assert len(both.reader.view("hits", limit=3).rows) == 3
    assert len(both.reader.sql("SELECT * FROM hits", limit=3).rows) == 3
    assert both.reader.view("hits", limit=0).rows == []
    assert len(Reader(both.store.db, rows_max=2).view("hits", limit=5).rows) == 2


def test_a_query_that_takes_too_long_is_ended(both: Bench) -> None:
    hasty = Reader(both.store.db, seconds_max=0.1)
    crossed = ", ".join(f"hits h{n}" for n in range(12))
    with pytest.raises(LimitReached) as caught:
        hasty.sql(f"SELECT count(*) AS n FROM {crossed}")
    assert caught.value.message == "the query timed out after 0.1 seconds and was cancelled"
    assert "query.seconds_max" in str(caught.value.hint)
    assert both.reader.view("total").rows[0]["n"] == 8


REFUSALS: list[tuple[Callable[[Reader], object], type[HeadraceError], str, str | None]] = [
    (
        lambda r: r.view("hit"),
        NotFound,
        "there is no view 'hit'",
        "did you mean 'hits'?",
    ),
    (
        lambda r: r.view("elsewhere"),
        NotFound,
        "there is no view 'elsewhere'",
        "available: hits, users, total, top, pages.",
    ),
    (
        lambda r: r.view("hits", {"n": "1"}),
        BadRequest,
        "'n' is not a key of view 'hits'",
        None,
    ),
    (
        lambda r: r.view("hits", {"minute": "1"}),
        BadRequest,
        "'minute' is not a key of view 'hits'",
        None,
    ),
    (
        lambda r: r.view("users", since="2026-01-01T00:00:00Z"),
        BadRequest,
        "'from' and 'to' require a windowed view; 'users' has no window",
        None,
    ),
    (
        lambda r: r.view("hits", until="tomorrow"),
        BadRequest,
        "'tomorrow' is not a valid timestamp such as 2026-11-15T19:00:00Z",
        None,
    ),
    (
        lambda r: r.view("pages", {"hits": "many"}),
        BadRequest,
        "'many' is not a valid BIGINT, the type of 'hits'",
        None,
    ),
    (
        lambda r: r.view("pages", {"hits": str(2**63)}),
        BadRequest,
        "'9223372036854775808' is not a valid BIGINT, the type of 'hits'",
        None,
    ),
    (
        lambda r: r.sql("SELECT * FROM user"),
        BadQuery,
        "there is no view 'user'",
        "did you mean 'users'?",
    ),
    (
        lambda r: r.sql("SELECT pag FROM hits"),
        UnknownColumn,
        "there is no column 'pag'",
        "did you mean 'page'?",
    ),
    (
        lambda r: r.sql("SELECT * FROM sqlite_master"),
        BadQuery,
        "there is no view 'sqlite_master'",
        None,
    ),
    (
        lambda r: r.sql("SELECT * FROM _typed_hits"),
        BadQuery,
        "there is no view '_typed_hits'",
        None,
    ),
    (
        lambda r: r.sql("SELECT load_extension('x') FROM hits"),
        Unsupported,
        "'load_extension' is not available over views",
        "docs/functions.md lists",
    ),
    (
        lambda r: r.sql("DROP VIEW hits"),
        BadQuery,
        "expected a SELECT, got 'DROP'",
        None,
    ),
    (
        lambda r: r.sql("SELECT 1; SELECT 2"),
        BadQuery,
        "expected a single SELECT",
        None,
    ),
]


@pytest.mark.parametrize(
    ("ask", "condition", "message", "hint"), REFUSALS, ids=[row[2] for row in REFUSALS]
)
def test_each_mistake_has_its_sentence(
    both: Bench,
    ask: Callable[[Reader], object],
    condition: type[HeadraceError],
    message: str,
    hint: str | None,
) -> None:
    with pytest.raises(HeadraceError) as caught:
        ask(both.reader)
    assert type(caught.value) is condition
    assert caught.value.message == message
    assert (caught.value.hint or "").startswith(hint or "")
    assert bool(caught.value.hint) == bool(hint)


def test_the_time_of_a_query_does_not_pass_while_it_runs(both: Bench) -> None:
    both.clock.now_us = from_iso("2026-01-01T01:00:00.5Z")
    found = both.reader.sql(
        "SELECT now() AS a, current_timestamp AS b, current_timestamp() AS c, current_date AS d, "
        "current_date() - INTERVAL 1 DAY AS e FROM hits WHERE now() < '2027-01-01' LIMIT 1"
    )
    now = "2026-01-01T01:00:00.500000Z"
    assert found.rows == [{"a": now, "b": now, "c": now, "d": "2026-01-01", "e": "2025-12-31"}]


def test_nothing_can_be_asked_before_anything_is_deployed(tmp_path: Path) -> None:
    db = open_database(tmp_path / "serving.db")
    with pytest.raises(NotReady, match="nothing is deployed yet"):
        Reader(db).sql("SELECT 1 AS x FROM hits")
    with pytest.raises(NotReady, match="nothing is deployed yet"):
        Reader(db).view("hits")
    db.close()


def test_a_key_does_not_bring_back_a_row_that_the_view_s_own_limit_left_out(
    tmp_path: Path,
) -> None:
    only = VIEWS | {"top": VIEWS["top"].replace("LIMIT 2", "LIMIT 1")}
    made = Bench(tmp_path / "serving.db", plan_of(definitions(only)))
    made.build()
    made.send(*CLICKS)
    assert made.rows("top") == [{"page": "/a", "n": 4}]
    assert made.reader.sql("SELECT * FROM top WHERE page = '/b'").rows == []
    assert made.reader.view("top", {"page": "/b"}).rows == []
    made.close()


def test_a_query_is_stopped_from_another_thread(bench: Bench) -> None:
    bench.send(*CLICKS)
    bench.build()
    stopping = Cancellation()
    timer = threading.Timer(0.2, stopping.stop)
    timer.start()
    crossed = ", ".join(f"hits h{n}" for n in range(12))
    with pytest.raises(Cancelled, match="was cancelled before it completed"):
        Reader(bench.store.db).sql(f"SELECT count(*) AS n FROM {crossed}", cancellation=stopping)
    timer.join()


def test_a_plan_is_told_and_nothing_is_run(bench: Bench) -> None:
    bench.send(*CLICKS)
    bench.build()
    relations, sql, plan = Reader(bench.store.db).plan("SELECT page FROM hits WHERE page = '/a'")
    assert relations == ("hits",)
    assert sql.startswith("SELECT")
    assert "Filter" in plan


def test_who_may_read_a_view_sees_what_it_is_made_of_through_it(both: Bench) -> None:
    def readable(view: str) -> bool:
        return view == "pages"  # which reads `hits`

    assert both.reader.sql("SELECT * FROM pages", readable=readable).rows
    with pytest.raises(BadQuery, match="there is no view 'hits'"):
        both.reader.sql("SELECT * FROM hits", readable=readable)
    with pytest.raises(BadQuery, match="there is no view 'hits'"):
        both.reader.sql("SELECT * FROM pages WHERE hits IN (SELECT n FROM hits)", readable=readable)
