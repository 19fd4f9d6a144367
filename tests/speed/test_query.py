"""Spark's own streaming query, whose progress is the store's position and nothing else."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from engines import Compiled, Parts, compile_sql

from headrace.audit.oracle import audit_view
from headrace.core.position import Position
from headrace.core.time import Clock, from_iso, now_us
from headrace.define.settings import SpeedSettings
from headrace.serving.answer import Sampled
from headrace.speed.query import SpeedQuery
from tests.run.waiting import wait

DEFINITIONS = """
CREATE STREAM clicks (page STRING, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 10 SECONDS)
  WITH (id = 'id');
CREATE VIEW pages AS SELECT page, count(*) AS n FROM clicks GROUP BY page;
"""


@pytest.fixture(scope="module")
def compiled(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compile_sql(spark, tmp_path_factory.mktemp("speed"), DEFINITIONS)


@dataclass(frozen=True, slots=True)
class Seen:
    """What there was after a run of the query."""

    checkpoint: Path
    epochs: list[tuple[Any, ...]]
    rows: list[dict[str, Any]]
    position: Position


@pytest.fixture(scope="module")
def runs(compiled: Compiled, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Seen]]:
    """Three runs: two events, nothing, and six more of all kinds. Starting a query is slow, so the
    tests below read one story.
    """
    parts = Parts(compiled, tmp_path_factory.mktemp("story"))
    # An empty first generation, so that the view answers.
    staged = [parts.store.stage(v, True, [], []) for v in parts.store.versions("clicks")]
    parts.store.promote("clicks", 0, parts.store.stream("clicks").built, 0, staged, [])
    _send(parts, 100, 80)
    seen = [_run(parts)]
    # Gone, as after a lost disk; one that is older or foreign is deleted by the next start.
    shutil.rmtree(seen[0].checkpoint.parent)
    seen.append(_run(parts))
    _send(parts, 85, 95)
    parts.intake("clicks").accept([b'{"id": 1}', b'{"id": 1}', b'{"id": 1, "page": "x"}', b"?"])
    seen.append(_run(parts, events_max=4))
    yield seen
    parts.close()


def _send(parts: Parts, *seconds: int, page: str = "/a") -> None:
    records = [
        json.dumps({"page": page, "ts": f"2026-01-01T00:{s // 60:02}:{s % 60:02}Z"}).encode()
        for s in seconds
    ]
    parts.intake("clicks").accept(records)


def _query(parts: Parts, settings: SpeedSettings, clock: Clock = now_us) -> SpeedQuery:
    return SpeedQuery(
        parts.compiled.speed,
        parts.flows["clicks"],
        parts.feeds("clicks"),
        parts.store,
        parts.state / "work",
        settings,
        clock,
    )


def _run(parts: Parts, events_max: int = 200_000) -> Seen:
    query = _query(parts, SpeedSettings(epoch_events_max=events_max), parts.clock)
    running = query.start(available_now=True)
    assert running.awaitTermination(300), "the query did not end"
    assert running.exception() is None
    query.stop()
    rows = parts.reader.view("pages").rows
    return Seen(query.checkpoint, _epochs(parts), rows, parts.store.stream("clicks").position)


def _epochs(parts: Parts) -> list[tuple[Any, ...]]:
    names = "lower, upper, events, late, duplicates, dead_letters"
    with parts.store.read() as db:
        return db.execute(f"SELECT {names} FROM _epochs ORDER BY number").fetchall()


def test_a_run_takes_all_that_is_in_the_log(runs: list[Seen]) -> None:
    assert runs[0].rows == [{"page": "/a", "n": 2}]
    assert runs[0].position == Position((2,))


def test_a_second_start_without_its_checkpoint_does_nothing(runs: list[Seen]) -> None:
    assert runs[1].checkpoint != runs[0].checkpoint
    assert (runs[1].epochs, runs[1].rows) == (runs[0].epochs, runs[0].rows)


def test_a_start_goes_on_from_the_store_s_position(runs: list[Seen]) -> None:
    assert [epoch[:2] for epoch in runs[2].epochs] == [("0", "2"), ("2", "6"), ("6", "8")]
    assert runs[2].rows == [{"page": None, "n": 1}, {"page": "/a", "n": 4}]


def test_late_events_are_counted_from_the_highest_time_of_the_run_before(runs: list[Seen]) -> None:
    # 80 and 85 are more than 10 seconds behind 100; 95 is not.
    assert [epoch[3] for epoch in runs[2].epochs] == [1, 1, 0]


def test_events_duplicates_and_dead_letters_are_counted_by_epoch(runs: list[Seen]) -> None:
    counts = [(events, *rest) for _, _, events, _, *rest in runs[2].epochs]
    assert counts == [(2, 0, 0), (3, 1, 0), (0, 0, 2)]


SHEDDING = """
CREATE STREAM clicks (page STRING, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 10 SECONDS)
  WITH (overload = 'shed random', lag_events_max = '20', partitions = 2);
CREATE VIEW pages AS SELECT page, count(*) AS n, max(ts) AS newest FROM clicks GROUP BY page;
"""


def test_a_query_that_cannot_keep_up_sheds_counts_and_says_so(spark: Any, tmp_path: Path) -> None:
    compiled = compile_sql(spark, tmp_path, SHEDDING)
    parts = Parts(compiled, tmp_path / "state")
    staged = [parts.store.stage(v, True, [], []) for v in parts.store.versions("clicks")]
    parts.store.promote("clicks", 0, parts.store.stream("clicks").built, 0, staged, [])
    _send(parts, *range(10))
    assert _run(parts).rows[0]["n"] == 10
    _send(parts, *range(10, 110))
    seen = _run(parts)
    (shed,) = parts.store.shed("clicks")
    answer = parts.reader.view("pages")
    taken = answer.rows[0]["n"]
    assert (taken, seen.position - Position((0, 0))) == (110 - shed.events, 110)
    assert 50 < shed.events < 95
    assert answer.as_of["clicks"].sampled == Sampled(round(taken / 110, 6), shed.events)
    # The watermark is that of all events, also where the newest was shed.
    highs = [high for high in parts.store.stream("clicks").reached.highs if high is not None]
    assert max(highs) == from_iso("2026-01-01T00:01:49Z")
    audit = audit_view(parts.store, parts.layout, parts.plan, "pages", compiled.project)
    assert (audit.differences, audit.note[:8]) == (0, "sampled:")
    (made,) = parts.catch_up()
    assert [(a.differences, a.note[:8]) for a in made.audits] == [(0, "sampled:")]
    after = parts.reader.view("pages")
    assert (after.rows[0]["n"], after.as_of["clicks"].sampled) == (110, None)
    parts.close()


SILENT = """
CREATE STREAM clicks (page STRING, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 10 SECONDS)
  WITH (key = 'page', partitions = 2, watermark.idle = '15 seconds');
CREATE STREAM pairs AS SELECT * FROM clicks MATCH_RECOGNIZE (PARTITION BY page ORDER BY ts
  MEASURES count(*) AS n PATTERN (one other));
CREATE VIEW pages AS SELECT page, count(*) AS n FROM pairs GROUP BY page;
"""


def test_a_query_to_which_nothing_comes_notices_the_silence_once(
    spark: Any, tmp_path: Path
) -> None:
    parts = Parts(compile_sql(spark, tmp_path, SILENT), tmp_path / "state", clock=now_us)
    parts.catch_up()
    _send(parts, 0, page="ann")
    query = _query(parts, SpeedSettings(trigger_us=100_000))
    query.start()
    try:
        wait(lambda: bool(_epochs(parts)), 150)
        _send(parts, 10, 11, 30, page="bob")
        wait(lambda: bool(parts.reader.view("pages").rows), 150)
        assert parts.reader.view("pages").rows == [{"page": "bob", "n": 1}]
        time.sleep(1)
        assert [epoch[:3] for epoch in _epochs(parts)] == [
            ("0,0", "0,1", 1),
            ("0,1", "3,1", 3),
            ("3,1", "3,1", 0),
        ]
    finally:
        query.stop()
        parts.close()


def test_a_query_stops_while_an_epoch_waits_for_its_turn(
    compiled: Compiled, tmp_path: Path
) -> None:
    parts = Parts(compiled, tmp_path / "state")
    _send(parts, 1)
    query, came = _query(parts, SpeedSettings(trigger_us=100_000)), threading.Event()
    epoch = query.epoch

    def come(frame: Any, batch: int) -> None:
        came.set()
        epoch(frame, batch)

    query.epoch = come  # type: ignore[method-assign]
    stopping = threading.Thread(target=query.stop, daemon=True)
    with query.between_epochs:
        query.start()
        # Who waits first for the lock gets it first, so the stop has it when the epoch asks.
        stopping.start()
        wait(lambda: query.stopping)
        assert came.wait(60), "no epoch came"
    stopping.join(60)
    assert not stopping.is_alive(), "the stop waits for the epoch, and the epoch for the stop"
    assert not query.query.isActive
    assert _epochs(parts) == []
    parts.close()
