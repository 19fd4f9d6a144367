"""The rows that are kept in memory are those of the store, after every commit and of any age."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from chance import drawn, examples

from headrace.serving import read, read_model
from headrace.serving.answer import Answer
from headrace.serving.commits import record_changed
from headrace.serving.database import Database
from headrace.serving.epochs import commit_epoch
from headrace.serving.finish import read_cached
from headrace.serving.read import Reader
from headrace.serving.read_model import model_of
from headrace.serving.snapshot import live_plan

from .bench import CLICKS, KEPT, VIEWS, WINDOWED, Bench, Click, alike, definitions, plan_of
from .databases import open_database
from .marks import on_drawn_database

pytestmark = on_drawn_database


def rows_of(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def check(bench: Bench, reader: Reader) -> None:
    """What the reader keeps of each view is what the store has of it."""
    plan = bench.store.deployed()
    assert plan is not None
    with bench.store.read() as db:
        for view in plan.views:
            if view.kept:
                live = live_plan(db, plan, view.name)
                kept = reader.model.rows(db, live, selective=False)
                assert kept is not None
                assert rows_of(kept.whole) == rows_of(read_cached(db, live)), view.name


def test_kept_rows_are_the_stores_after_every_commit(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "serving.db", plan_of(definitions(VIEWS | WINDOWED)))
    bench.build()
    rng, reader = drawn("read model"), Reader(bench.store.db)
    second = 0
    for _ in range(30):
        clicks = [
            Click(rng.choice(["/a", "/b", None]), rng.choice("uvw"), second + rng.randrange(9))
            for _ in range(rng.randrange(1, 5))
        ]
        second += rng.randrange(20)
        match rng.randrange(5):
            case 0:
                bench.build(full=rng.random() < 0.5)
            case 1:
                bench.store.close_group("clicks")
                bench.send(*clicks)
            case _:
                bench.send(*clicks)
        if rng.random() < 0.7:  # several commits between two reads
            check(bench, reader)
    check(bench, reader)
    bench.close()


def test_only_what_changed_is_read_from_the_store(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.build()
    bench.send(*CLICKS)
    read: list[Any] = []

    def counted(db: Any, live: Any, keys: Any = None) -> pa.Table:
        read.append(keys)
        return read_cached(db, live, keys)

    monkeypatch.setattr(read_model, "read_cached", counted)
    bench.reader.view("users")
    bench.reader.view("users")
    assert read == [None]
    bench.send(Click("/b", "zoe", 300))
    assert len(bench.reader.view("users").rows) == len(bench.expected("users"))
    assert read == [None, {'["/b"]'}]


def test_a_commit_of_another_process_is_seen(bench: Bench, tmp_path: Path) -> None:
    bench.build()
    other = Reader(open_database(bench.path))  # knows nothing of what the writer notes
    for click in CLICKS:
        bench.send(click)
        assert other.view("total").rows == bench.expected("total")
    other.db.close()


def test_a_commit_that_fails_changes_nothing_that_is_kept(bench: Bench) -> None:
    bench.build()
    bench.send(*CLICKS[:4])
    bench.reader.view("users")
    version = bench.store.versions("clicks")[0].id

    def fail() -> None:
        with bench.store.write() as db:
            record_changed(db, version, ["[]"])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    bench.send(*CLICKS[4:])
    check(bench, bench.reader)


def test_views_that_are_not_asked_for_are_forgotten_when_there_are_many_rows(bench: Bench) -> None:
    bench.build()
    bench.send(*CLICKS)
    reader = Reader(bench.store.db)
    reader.model.rows_max = len(bench.expected("hits"))
    for view in ("total", "users", "hits"):
        reader.view(view)
    assert len(reader.model._views) == 1
    for view in KEPT:
        assert len(reader.view(view).rows) == len(bench.expected(view))


def test_a_few_rows_are_looked_up_and_many_are_kept(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.build()
    bench.send(*CLICKS)
    reader = Reader(bench.store.db)
    for few, kept in ((5_000, False), (0, False), (0, True)):
        monkeypatch.setattr(read_model, "FEW", few)
        assert reader.view("users", {"page": "/a"}).rows
        assert bool(reader.model._views) == kept


def test_a_view_of_which_rows_are_asked_for_often_is_kept(bench: Bench) -> None:
    bench.build()
    bench.send(*CLICKS)
    reader = Reader(bench.store.db)
    asked = [reader.view("users", {"page": "/a"}).rows for _ in range(read_model.LOOKUPS_MAX + 2)]
    assert all(rows == asked[0] for rows in asked)
    assert asked[0]
    assert reader.model._views


def test_a_view_with_too_many_rows_is_looked_up_however_often(bench: Bench) -> None:
    bench.build()
    bench.send(*CLICKS)
    reader = Reader(bench.store.db, kept_rows_max=1)
    for _ in range(read_model.LOOKUPS_MAX + 2):
        assert reader.view("users", {"page": "/a"}).rows
    assert not reader.model._views


def test_rows_found_by_key_are_those_of_a_query(bench: Bench) -> None:
    bench.build()
    bench.send(*CLICKS)
    reader = bench.reader
    reader.view("users")  # all of them are kept
    pages = [*{click.page for click in CLICKS}, "/none", "[]", '"', "ü"]
    for click in (Click("/b", "zoe", 300), Click("ü", "zoe", 301)):
        bench.send(click)
        for page in pages:
            found, cold = reader.view("users", {"page": page}), open_database(bench.path)
            assert found == Reader(cold, clock=bench.clock).view("users", {"page": page})
            cold.close()
            assert len(found.rows) == sum(r["page"] == page for r in bench.expected("users"))
            assert reader.view("users", {"page": page}, order="page").total == len(found.rows)


def said(answer: Answer) -> tuple[object, ...]:
    """All of an answer but the order of its rows."""
    return alike(answer.rows), answer.as_of, answer.columns, answer.truncated, answer.total


def test_what_is_published_answers_without_the_store(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.build()
    reader = bench.reader
    reader.model.follow()
    questions: list[Callable[[], Answer]] = [
        lambda: reader.view("users"),
        lambda: reader.view("users", {"page": "/a"}),
        lambda: reader.view("hits"),
        lambda: reader.view("pages"),
        lambda: reader.view("top"),
        lambda: reader.sql("SELECT sum(n) AS n FROM hits"),
    ]
    for ask in questions:  # what is asked for is published from then on
        ask()
    for click in CLICKS:
        bench.send(click)
        with monkeypatch.context() as patched:
            patched.setattr(Database, "read", None)
            answers = [said(ask()) for ask in questions]
        cold = open_database(bench.path)
        monkeypatch.setattr(reader, "db", cold)
        monkeypatch.setattr(reader, "model", model_of(cold.changes))
        assert answers == [said(ask()) for ask in questions]
        monkeypatch.undo()
        cold.close()


def test_a_published_row_is_given_at_once_and_nothing_else_is(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.build()
    reader = bench.reader
    keys: list[dict[str, str | None]] = [{"page": "/a"}, {"page": "/nowhere"}, {"page": None}]
    assert reader.row("users", keys[0]) is None, "nothing is published"
    reader.model.follow()
    reader.view("users")
    for click in CLICKS:
        bench.send(click)
        with monkeypatch.context() as patched:
            patched.setattr(Database, "read", None)
            patched.setattr(read, "run", None)
            found = [reader.row("users", key) for key in keys]
        assert found == [reader.view("users", key) for key in keys]
    assert any(answer.rows for answer in found if answer)
    assert reader.row("users", {}) is None, "it is more than one row"
    assert reader.row("pages", {"page": "/a"}) is None, "it is read from another view"
    assert reader.row("top", {"page": "/a"}) is None, "a limit decides first"
    assert reader.row("nothing", {"page": "/a"}) is None, "the store knows what there is"


def test_the_memory_of_the_kept_rows_is_known(bench: Bench) -> None:
    bench.build()
    bench.send(*CLICKS)
    assert bench.reader.model.bytes == 0
    bench.reader.view("hits")
    assert 0 < bench.reader.model.bytes < 10_000


def test_a_commit_that_fails_publishes_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.build()
    bench.send(*CLICKS[:4])
    bench.reader.model.follow()
    bench.reader.view("users")
    bench.send(CLICKS[4])
    before, epoch = bench.reader.view("users"), bench.epoch(*CLICKS[5:])

    def fail() -> None:
        with bench.store.write() as db:
            commit_epoch(db, epoch, 1, 1)
            # After what is to be published was read, and before the commit.
            hook = bench.store.db.changes.commit_hook
            assert hook
            monkeypatch.setattr(bench.store.db.changes, "commit_hook", lambda db: (hook(db), 1 / 0))

    with pytest.raises(ZeroDivisionError):
        fail()
    monkeypatch.undo()
    assert bench.reader.view("users") == before
    bench.send(*CLICKS[5:])
    assert alike(bench.reader.view("hits").rows) == alike(bench.expected("hits"))


def test_what_nobody_asks_for_is_not_followed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.build()
    bench.reader.model.follow()
    bench.reader.view("users")
    bench.send(CLICKS[0])
    assert bench.reader.model.published() is not None
    monkeypatch.setattr(read_model, "UNUSED_S", 0.0)
    bench.send(CLICKS[1])
    assert bench.reader.model.published() is None


@pytest.mark.parametrize("follows", [False, True])
def test_rows_and_position_are_of_one_commit_while_others_read_and_write(
    tmp_path: Path, follows: bool
) -> None:
    bench = Bench(tmp_path / "serving.db")
    bench.build()
    if follows:
        bench.reader.model.follow()
    reader, stop, wrong = Reader(bench.store.db), threading.Event(), []

    def read() -> None:
        while not stop.is_set():
            answer = reader.view("total")
            counted = answer.rows[0]["n"] if answer.rows else 0
            if counted != sum(answer.as_of["clicks"].position):
                wrong.append(answer)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for thread in readers:
        thread.start()
    for second in range(examples(20, 60)):
        bench.send(Click("/a", "u", second))
    stop.set()
    for thread in readers:
        thread.join()
    assert wrong == []
    bench.close()
