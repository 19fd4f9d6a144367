"""Law 4, honest answers: rows and `as_of` are of one transaction, and an estimate is called one.

A writer commits epochs of exactly one event and promotes generations, as fast as it can, while
readers ask. In every answer the count must be the sum of the position that the answer itself says,
so an answer whose rows and position come from two transactions is caught.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engines import Compiled, Parts, compile_sql

from headrace.core.aggregate import HLL_ERROR
from headrace.core.position import Position
from headrace.serving.store import Epoch
from tests.serving.bench import as_lifted

DEFINITIONS = """
CREATE STREAM clicks (user STRING, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 10 SECONDS);
CREATE VIEW hits AS SELECT count(*) AS n FROM clicks;
CREATE VIEW again AS SELECT sum(n) AS n FROM hits;
CREATE VIEW users AS SELECT count(DISTINCT user) AS n, approx_count_distinct(user) AS about FROM
  clicks;
"""
COUNTS = {"events": 1, "late": 0, "duplicates": 0, "dead_letters": 0}
EPOCHS = 150


@pytest.fixture(scope="module")
def compiled(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compile_sql(spark, tmp_path_factory.mktemp("honest"), DEFINITIONS)


@pytest.fixture
def parts(compiled: Compiled, tmp_path: Path) -> Iterator[Parts]:
    parts = Parts(compiled, tmp_path / "state")
    parts.catch_up()
    yield parts
    parts.close()


def _epoch(parts: Parts) -> Epoch:
    """The next event, as an epoch with its partial made by hand: n = 1."""
    state = parts.store.stream("clicks")
    lower = state.position
    upper = Position((lower.offsets[0] + 1,))
    hits = parts.plan.view("hits")
    assert hits is not None
    reached = state.after(upper, (0,), 0)
    nothing = {v.id: as_lifted(v.plan, []) for v in parts.store.versions("clicks")}
    rows = nothing | {hits.recompute: as_lifted(hits, [(1,)])}
    return Epoch("clicks", state.generation, lower, reached, COUNTS, rows, 0)


def _promote(parts: Parts) -> None:
    """A generation that covers what speed has: its number is the position, too."""
    state = parts.store.stream("clicks")
    parts.store.close_group("clicks")
    group = max(group.number for group in parts.store.closed_groups("clicks"))
    version = next(v for v in parts.store.versions("clicks") if v.name == "hits")
    staged = parts.store.stage(
        version, True, as_lifted(version.plan, [(state.position.offsets[0],)]), {}
    )
    parts.store.promote("clicks", state.generation, state.reached, group, [staged], [])


def _ask(parts: Parts, view: str, ask: Any, done: threading.Event, found: list[Any]) -> None:
    while not done.is_set():
        answer = ask(view)
        said = answer.as_of["clicks"]
        found.append((answer.rows[0]["n"], said.position[0], said.boundary[0]))


def test_rows_and_as_of_are_of_one_transaction(parts: Parts) -> None:
    done = threading.Event()
    reader = parts.reader
    asks = [
        ("hits", reader.view),
        ("again", reader.view),
        ("hits", lambda view: reader.sql(f"SELECT n FROM {view}")),
    ]
    answers: list[list[Any]] = [[] for _ in asks]
    threads = [
        threading.Thread(target=_ask, args=(parts, view, ask, done, found))
        for (view, ask), found in zip(asks, answers, strict=True)
    ]
    for thread in threads:
        thread.start()
    try:
        for number in range(1, EPOCHS + 1):
            assert parts.store.commit_epoch(_epoch(parts))
            if number % 10 == 0:
                _promote(parts)
    finally:
        done.set()
        for thread in threads:
            thread.join(30)
    for found in answers:
        assert len({position for _, position, _ in found}) > 3, "nothing changed while it was asked"
        assert [row for row in found if row[0] != row[1] or row[2] > row[1]] == []
        positions = [position for _, position, _ in found]
        assert positions == sorted(positions)


def test_an_answer_says_how_fresh_and_how_exact_it_is(parts: Parts) -> None:
    parts.intake("clicks").accept(
        [b'{"user": "a", "ts": "2026-01-01T00:00:20Z"}', b'{"user": "b"}']
    )
    epoch = parts.epoch("clicks")
    assert epoch is not None
    parts.store.commit_epoch(epoch)
    fresh = parts.reader.view("users")
    assert fresh.as_of["clicks"].position == [2]
    assert fresh.as_of["clicks"].boundary == [0]
    assert fresh.as_of["clicks"].watermark == "2026-01-01T00:00:10Z"
    assert (fresh.columns["n"].exact, fresh.columns["n"].error) == (False, HLL_ERROR)
    parts.catch_up()
    covered = parts.reader.view("users")
    assert covered.as_of["clicks"].generation == fresh.as_of["clicks"].generation + 1
    assert covered.as_of["clicks"].boundary == [2]
    assert (covered.columns["n"].exact, covered.columns["n"].error) == (True, None)
    assert (covered.columns["about"].exact, covered.columns["about"].error) == (False, HLL_ERROR)
