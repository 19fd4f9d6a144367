"""Runs hold what was added to them, by version, layer, group and key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.core.event import KEY
from headrace.core.position import Interval
from headrace.serving import epochs, runs
from headrace.serving.database import Database
from headrace.serving.runs import (
    Layer,
    add_rows,
    add_runs,
    count_keys,
    count_runs,
    drop_rows,
    move_rows,
    read_rows,
    runs_of,
)

from .bench import CLICKS, Bench, Click, alike
from .databases import open_database
from .marks import on_every_database

pytestmark = on_every_database

V = "version"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    made = open_database(tmp_path / "serving.db")
    made.take_over()
    yield made
    made.close()


def rows(*keys: str) -> pa.Table:
    return pa.table({KEY: pa.array(keys, pa.string()), "p0": pa.array(range(len(keys)))})


def keys(db: Database, layer: Layer, **asked: object) -> list[tuple[int, list[str]]]:
    with db.read() as read:
        found = read_rows(read, V, layer, **asked)  # type: ignore[arg-type]
        return [(group, table.column(KEY).to_pylist()) for group, table in found]


def test_rows_are_sorted_and_cut_into_runs(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "ROWS_MAX", 2)
    with db.write() as write:
        add_rows(write, V, Layer.GENERATION, rows("d", "a", "c", "b", "é"))
    assert keys(db, Layer.GENERATION) == [(0, ["a", "b"]), (0, ["c", "d"]), (0, ["é"])]


def test_only_runs_that_may_hold_a_key_are_read(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "ROWS_MAX", 2)
    with db.write() as write:
        add_rows(write, V, Layer.GENERATION, rows("a", "b", "c", "d", "e"))
    assert keys(db, Layer.GENERATION, keys=["c"]) == [(0, ["c"])]
    assert keys(db, Layer.GENERATION, keys=["b", "e"]) == [(0, ["b"]), (0, []), (0, ["e"])]
    assert keys(db, Layer.GENERATION, keys=["x"]) == []


def test_layers_groups_and_versions_are_apart(db: Database) -> None:
    with db.write() as write:
        for group in (1, 2, 2, 3):
            add_rows(write, V, Layer.SPEED, rows("a"), group)
        add_rows(write, "other", Layer.SPEED, rows("b"), 2)
        add_rows(write, V, Layer.STAGED, rows("a", "c"))
        add_runs(write, V, Layer.VALUES, runs_of(rows("a")), column="p1")
    assert [group for group, _ in keys(db, Layer.SPEED)] == [1, 2, 2, 3]
    assert [g for g, _ in keys(db, Layer.SPEED, groups=Interval(0, 3))] == [1, 2, 2]
    assert keys(db, Layer.VALUES) == []
    assert keys(db, Layer.VALUES, column="p1") == [(0, ["a"])]
    with db.write() as write:
        drop_rows(write, V, Layer.SPEED, Interval(0, 3))
        move_rows(write, V, Layer.STAGED, Layer.GENERATION)
    with db.read() as read:
        assert count_runs(read, V, Layer.SPEED) == (1, 1)
        assert count_runs(read, "other", Layer.SPEED) == (1, 1)
        assert count_runs(read, V, Layer.GENERATION) == (1, 2)
        assert count_keys(read, V) == 2


def test_the_runs_of_a_group_that_is_over_become_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(epochs, "RUNS_MAX", 1)
    bench.build()
    for click in CLICKS:
        bench.send(click)
    bench.store.close_group("clicks")
    bench.send(Click("/a", "zoe", 300))
    for version in bench.store.versions("clicks"):
        with bench.store.read() as db:
            assert count_runs(db, version.plan.stored_name, Layer.SPEED)[0] == 2
        assert alike(bench.rows(version.name)) == alike(bench.expected(version.name))
