"""Law 3, ack, at every failpoint between the log and the answer: what a killed process leaves is
enough for the next one, and nothing is counted twice.

The kill is a copy of the state folder at the failpoint, which is what the process would have left,
and the end of the step. So one JVM can be killed at every point in seconds. tests/run/test_kills.py
kills real processes.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engines import ARRIVAL_US, Compiled, HeldClock, Parts, compile_sql

from headrace.core import failpoint as failpoints
from headrace.core.time import DAY, SECOND, iso
from headrace.master.balance import balance
from headrace.master.compact import compact
from headrace.testing import ReferenceEngine, Transcript, differences
from headrace.testing.declarations import read_declarations

# A view that is merged, one that is carried and one that waits for the watermark.
DEFINITIONS = """
CREATE STREAM clicks (n BIGINT NOT NULL, page STRING NOT NULL, ts TIMESTAMP NOT NULL,
  WATERMARK ts DELAY OF INTERVAL 3 SECONDS) WITH (key = 'page', id = 'event_id');
CREATE VIEW pages AS SELECT page, count(*) AS hits, sum(n) AS total FROM clicks GROUP BY page;
CREATE VIEW tens AS SELECT page, count_window(10) AS first, count(*) AS hits, sum(n) AS total
  FROM clicks GROUP BY page, count_window(10);
CREATE STREAM pairs AS SELECT * FROM clicks MATCH_RECOGNIZE (PARTITION BY page ORDER BY ts
  MEASURES count(*) AS n PATTERN (one other));
CREATE VIEW matches AS SELECT page, count(*) AS found, sum(n) AS events FROM pairs GROUP BY page;
"""
VIEWS = ("pages", "tens", "matches")
EVENTS = 20  # of each round


class Killed(BaseException):
    """Ends a step where a failpoint ends the process."""


class Life:
    """Parts that are opened again, from what they had left, after each kill."""

    def __init__(self, compiled: Compiled, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.compiled, self.folder, self.patch = compiled, folder, monkeypatch
        self.clock = HeldClock()
        self.kills, self.lives = 0, [Parts(compiled, folder / "0", clock=self.clock)]

    @property
    def parts(self) -> Parts:
        return self.lives[-1]

    def _kill(self) -> None:
        self.kills += 1
        shutil.copytree(self.parts.state, self.folder / str(self.kills))
        raise Killed

    def do(self, step: Callable[[Parts], None], point: str) -> None:
        """A step that is killed at the point, and again from its beginning."""
        name, _, count = point.partition(":")
        failpoints._passed.clear()
        self.patch.setattr(failpoints, "_NAME", name)
        self.patch.setattr(failpoints, "_COUNT", count)
        self.patch.setattr(failpoints, "_kill", self._kill)
        with pytest.raises(Killed):
            step(self.parts)
        state = self.folder / str(self.kills)
        self.lives.append(Parts(self.compiled, state, clock=self.clock))
        step(self.parts)

    def close(self) -> None:
        for parts in self.lives:
            parts.close()


def speed(parts: Parts) -> None:
    if (epoch := parts.epoch("clicks")) is not None:
        assert parts.store.commit_epoch(epoch)


def archive(parts: Parts) -> None:
    # In two steps, so that there are two files to be merged.
    parts.archives["clicks"].step_to_end(EVENTS // 2)


def compaction(parts: Parts) -> None:
    compact(parts.compiled.spark, parts.archives["clicks"].table, files_max=2)


def batch(parts: Parts) -> None:
    parts.clock.now_us += SECOND  # what speed has committed is old enough to be built
    parts.build("clicks", speed_runs=True)


# Each step of a round is killed at one of its points, and in three rounds at each of them.
POINTS = {
    speed: ("epoch.committing:1", "epoch.committed:1"),
    archive: ("archive.written:1", "archive.committing:1", "archive.committed:1"),
    compaction: ("archive.compacted:1",),
    batch: ("generation.staged:1", "generation.promoting:1", "generation.promoted:1"),
}
ROUNDS = max(map(len, POINTS.values()))


def events(number: int) -> list[bytes]:
    """Of seven keys, in their order, so that every view is exact without a build."""
    numbers = range(EVENTS * number, EVENTS * (number + 1))
    made = [
        {"event_id": f"e{n}", "n": n, "page": f"/{n % 7}", "ts": iso(ARRIVAL_US - DAY + n * SECOND)}
        for n in numbers
    ]
    return [json.dumps(event).encode() for event in made]


@pytest.fixture(scope="module")
def compiled(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compile_sql(spark, tmp_path_factory.mktemp("kills"), DEFINITIONS)


def test_a_kill_at_each_point_loses_nothing_and_counts_nothing_twice(
    compiled: Compiled,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    reference = ReferenceEngine()
    reference.start(Transcript("kills", DEFINITIONS, read_declarations(DEFINITIONS), ()))
    life = Life(compiled, tmp_path, monkeypatch)
    life.parts.catch_up()
    for number in range(ROUNDS):
        reference.send("clicks", events(number))
        life.parts.intake("clicks").accept(events(number))
        for step, points in POINTS.items():
            life.do(step, points[number % len(points)])
            for view in VIEWS if step is not archive else ():
                rows = life.parts.reader.view(view).rows
                assert differences(reference.answer(view), rows, {}) == [], (step, number)
        assert accounted(life.parts) == (EVENTS * (number + 1),) * 2
    record_property("steps killed", life.kills)
    life.close()


def accounted(parts: Parts) -> tuple[int, int]:
    """How many events the master has, and how many were accepted."""
    found = balance(parts.archives["clicks"].table.newest(), parts.topics["clicks"].end())
    return found["events"], found["accepted"]
