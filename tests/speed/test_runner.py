"""The speed layer of a flow, whose progress is the store's position and nothing else."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from engines import Compiled, Parts, compile_sql

from headrace.audit.oracle import audit_view
from headrace.core import worker
from headrace.core.errors import DiskFull
from headrace.core.position import Position
from headrace.core.time import Clock, from_iso, now_us
from headrace.define.settings import SpeedSettings
from headrace.serving.answer import Sampled
from headrace.serving.store import Epoch
from headrace.speed.runner import EpochRunner
from tests.run.waiting import wait
from tests.serving.bench import as_lifted

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
    """What there was after a run."""

    epochs: list[tuple[Any, ...]]
    rows: list[dict[str, Any]]
    position: Position


@pytest.fixture(scope="module")
def runs(compiled: Compiled, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Seen]]:
    """Three runs: two events, nothing, and six more of all kinds."""
    parts = Parts(compiled, tmp_path_factory.mktemp("story"))
    # An empty first generation, so that the view answers.
    staged = [
        parts.store.stage(v, True, as_lifted(v.plan, []), {})
        for v in parts.store.versions("clicks")
    ]
    parts.store.promote("clicks", 0, parts.store.stream("clicks").built, 0, staged, [])
    _send(parts, 100, 80)
    seen = [_run(parts), _run(parts)]
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


def _runner(parts: Parts, settings: SpeedSettings, clock: Clock = now_us) -> EpochRunner:
    flow, feeds = parts.flows["clicks"], parts.feeds("clicks")
    return EpochRunner(parts.compiled.speed, flow, feeds, parts.store, settings, clock)


def _run(parts: Parts, events_max: int = 200_000) -> Seen:
    """What a process does that takes all that is in the log."""
    runner = _runner(parts, SpeedSettings(epoch_events_max=events_max), parts.clock)
    while runner.step():
        pass
    rows = sorted(parts.reader.view("pages").rows, key=lambda row: row["page"] or "")
    return Seen(_epochs(parts), rows, parts.store.stream("clicks").position)


def _epochs(parts: Parts) -> list[tuple[Any, ...]]:
    names = "lower, upper, events, late, duplicates, dead_letters"
    with parts.store.read() as db:
        return db.execute(f"SELECT {names} FROM _epochs ORDER BY number").fetchall()


def test_a_run_takes_all_that_is_in_the_log(runs: list[Seen]) -> None:
    assert runs[0].rows == [{"page": "/a", "n": 2}]
    assert runs[0].position == Position((2,))


def test_a_second_run_has_nothing_to_do(runs: list[Seen]) -> None:
    assert (runs[1].epochs, runs[1].rows) == (runs[0].epochs, runs[0].rows)


def test_a_run_continues_from_the_store_s_position(runs: list[Seen]) -> None:
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


def test_a_stream_that_cannot_keep_up_sheds_counts_and_says_so(spark: Any, tmp_path: Path) -> None:
    compiled = compile_sql(spark, tmp_path, SHEDDING)
    parts = Parts(compiled, tmp_path / "state")
    staged = [
        parts.store.stage(v, True, as_lifted(v.plan, []), {})
        for v in parts.store.versions("clicks")
    ]
    parts.store.promote("clicks", 0, parts.store.stream("clicks").built, 0, staged, [])
    _send(parts, *range(10))
    assert _run(parts).rows[0]["n"] == 10
    _send(parts, *range(10, 110))
    seen = _run(parts)
    (shed,) = parts.store.shed_epochs("clicks")
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


def test_a_runner_to_which_nothing_comes_notices_the_silence_once(
    spark: Any, tmp_path: Path
) -> None:
    parts = Parts(compile_sql(spark, tmp_path, SILENT), tmp_path / "state", clock=now_us)
    parts.catch_up()
    _send(parts, 0, page="ann")
    runner = _runner(parts, SpeedSettings(trigger_us=100_000))
    runner.start()
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
        runner.stop()
        parts.close()


def test_a_runner_stops_while_an_epoch_waits_for_its_turn(
    compiled: Compiled, tmp_path: Path
) -> None:
    parts = Parts(compiled, tmp_path / "state")
    runner = _runner(parts, SpeedSettings(trigger_us=100_000))
    runner.start()
    wait(lambda: runner.warm, 60)
    stopping = threading.Thread(target=runner.stop, daemon=True)
    with runner.between_epochs:
        _send(parts, 1)
        stopping.start()
        wait(lambda: runner.stopping)
    stopping.join(60)
    assert not stopping.is_alive(), "the stop waits for the epoch, and the epoch for the stop"
    assert (_epochs(parts), runner.running, runner.problem) == ([], False, None)
    parts.close()


def test_an_epoch_that_fails_is_a_problem_until_one_is_committed(
    compiled: Compiled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "RETRY_MIN_S", 0.05)
    parts = Parts(compiled, tmp_path / "state")
    runner = _runner(parts, SpeedSettings(trigger_us=100_000))
    runner.start()
    wait(lambda: runner.warm, 60)
    said = list[str]()
    commit = parts.store.commit_epoch

    def refuse(epoch: Epoch) -> bool:
        said.append(str(epoch.range.upper))
        raise DiskFull("the disk is full")

    parts.store.commit_epoch = refuse  # type: ignore[method-assign]
    _send(parts, 1)
    wait(lambda: len(said) > 1, 60)
    assert runner.problem is not None
    assert runner.problem.key == ("flow", "clicks", "speed")
    assert runner.problem.message == "speed of stream 'clicks' failed: the disk is full"
    parts.store.commit_epoch = commit  # type: ignore[method-assign]
    wait(lambda: runner.problem is None, 60)
    runner.stop()
    assert [epoch[:3] for epoch in _epochs(parts)] == [("0", "1", 1)]
    assert [(str(range.upper), sorted(ms)) for range, ms in runner.phases] == [
        ("1", ["commit", "compute", "read"])
    ]
    parts.close()
