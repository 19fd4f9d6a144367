"""The rows that are kept in memory are those of the store, after every commit and of any age."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from chance import drawn

from headrace.serving import read_model
from headrace.serving.commits import note_changed
from headrace.serving.read import Reader
from headrace.serving.read_model import read_merged
from headrace.serving.sqlite import Sqlite
from headrace.serving.views import live_plan

from .bench import CLICKS, KEPT, VIEWS, WINDOWED, Bench, Click, definitions, plan_of


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
                kept = reader.model.rows(db, live, narrowed=False)
                assert kept is not None
                assert rows_of(kept) == rows_of(read_merged(db, live)), view.name


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
    read: list[str] = []

    def counted(db: Any, live: Any, where: str = "", value: str = "") -> pa.Table:
        read.append(value or "all")
        return read_merged(db, live, where, value)

    monkeypatch.setattr(read_model, "read_merged", counted)
    bench.reader.view("users")
    bench.reader.view("users")
    assert read == ["all"]
    bench.send(Click("/b", "zoe", 300))
    assert len(bench.reader.view("users").rows) == len(bench.expected("users"))
    assert read == ["all", '["[\\"/b\\"]"]']


def test_a_commit_of_another_process_is_seen(bench: Bench, tmp_path: Path) -> None:
    bench.build()
    other = Reader(Sqlite(bench.path))  # knows nothing of what the writer notes
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
            note_changed(db, version, ["[]"])
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
    assert len(reader.model._kept) == 1
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
        assert bool(reader.model._kept) == kept


def test_rows_and_position_are_of_one_commit_while_others_read_and_write(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "serving.db")
    bench.build()
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
    for second in range(60):
        bench.send(Click("/a", "u", second))
    stop.set()
    for thread in readers:
        thread.join()
    assert wrong == []
    bench.close()
