"""A runner computes an epoch again if a generation was promoted before its commit.

An epoch that meets events out of order is folded again from the boundary. If a generation is
promoted before it is committed, the boundary has moved, and its rows would count twice what the
generation has counted too. tests/laws/test_interleavings.py checks that this holds in every order
of store calls, without Spark.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from engines import Compiled, Parts, compile_sql

from headrace.core import failpoint as failpoints
from headrace.core.time import SECOND
from headrace.define.settings import SpeedSettings
from headrace.speed.runner import EpochRunner
from headrace.testing import ReferenceEngine, Transcript, differences
from headrace.testing.declarations import read_declarations

DEFINITIONS = """
CREATE STREAM clicks (n BIGINT NOT NULL, page STRING NOT NULL, ts TIMESTAMP NOT NULL,
  WATERMARK ts DELAY OF INTERVAL 10 SECONDS);
CREATE VIEW pages AS SELECT page, count(*) AS hits, sum(n) AS total FROM clicks GROUP BY page;
CREATE VIEW threes AS SELECT page, count_window(3) AS first, count(*) AS n FROM clicks
  GROUP BY page, count_window(3);
CREATE STREAM numbered AS SELECT page, row_number() OVER (PARTITION BY page ORDER BY ts) AS place
  FROM clicks;
CREATE VIEW places AS SELECT page, count(*) AS n, max(place) AS last FROM numbered GROUP BY page;
CREATE STREAM pairs AS SELECT * FROM clicks MATCH_RECOGNIZE (PARTITION BY page ORDER BY ts
  MEASURES one.n AS n PATTERN (one other));
CREATE VIEW matches AS SELECT page, count(*) AS found, sum(n) AS total FROM pairs GROUP BY page;
"""
VIEWS = ("pages", "threes", "places", "matches")


@pytest.fixture(scope="module")
def compiled(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compile_sql(spark, tmp_path_factory.mktemp("superseded"), DEFINITIONS)


class Story:
    """The engine's parts and the reference, which are sent the same events."""

    def __init__(self, compiled: Compiled, folder: Path) -> None:
        self.parts = Parts(compiled, folder)
        self.parts.catch_up()
        self.reference = ReferenceEngine()
        self.reference.start(
            Transcript("superseded", DEFINITIONS, read_declarations(DEFINITIONS), ())
        )

    def send(self, *seconds: int) -> None:
        said = [{"n": s, "page": "a", "ts": f"2026-01-01T00:00:{s:02}Z"} for s in seconds]
        records = [json.dumps(event).encode() for event in said]
        self.parts.intake("clicks").accept(records)
        self.reference.send("clicks", records)

    def commit(self) -> None:
        epoch = self.parts.epoch("clicks")
        assert epoch is not None
        assert self.parts.store.commit_epoch(epoch)

    def promote(self) -> None:
        """A generation of what speed has committed, as batch makes it beside speed."""
        self.parts.clock.now_us += SECOND
        self.parts.archive("clicks")
        assert self.parts.build("clicks", speed_runs=True) is not None

    def differences(self) -> list[str]:
        """What answers say wrongly that do not call themselves provisional."""
        answers = {view: self.parts.reader.view(view) for view in VIEWS}
        return [
            f"{view}: {sentence}"
            for view, answer in answers.items()
            if not answer.as_of["clicks"].provisional
            for sentence in differences(self.reference.answer(view), answer.rows, {})
        ]

    def provisional(self) -> list[str]:
        return [v for v in VIEWS if self.parts.reader.view(v).as_of["clicks"].provisional]


@pytest.mark.prove
def test_a_runner_computes_it_again(
    compiled: Compiled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = Story(compiled, tmp_path / "state")
    story.send(10, 20, 30)
    story.commit()
    story.send(25)
    # The failpoint after an epoch is computed promotes a generation instead of killing.
    monkeypatch.setattr(failpoints, "_NAME", "epoch.computed")
    monkeypatch.setattr(failpoints, "_kill", story.promote)
    failpoints._passed.clear()
    parts = story.parts
    flow, feeds = parts.flows["clicks"], parts.feeds("clicks")
    runner = EpochRunner(compiled.speed, flow, feeds, parts.store, SpeedSettings(), parts.clock)
    assert runner.step()
    assert parts.store.stream("clicks").generation == 2
    assert parts.store.stream("clicks").position == parts.topics["clicks"].end()
    assert story.differences() == []
    story.promote()
    assert (story.differences(), story.provisional()) == ([], [])
    parts.close()
