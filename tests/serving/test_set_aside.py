"""An answer over a pattern says how many keys are not searched any more; the status says why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.core.pattern import SET_ASIDE
from headrace.serving.carried import set_aside_keys
from headrace.serving.store import CarriedEpoch, StateRow, Version

from .bench import CLICKS, STREAM, Bench, as_lifted, plan_of
from .marks import on_drawn_database

pytestmark = on_drawn_database

SQL = (
    STREAM
    + """
CREATE STREAM rises AS SELECT user, top FROM clicks MATCH_RECOGNIZE (
  PARTITION BY user ORDER BY ts MEASURES LAST(ms) AS top
  PATTERN ((a | b)+ x) WITHIN INTERVAL '1' MINUTE
  DEFINE x AS x.ms > sum(a.ms) + sum(b.ms));
CREATE VIEW risen AS SELECT user, count(*) AS n FROM rises GROUP BY user;
CREATE VIEW most AS SELECT max(n) AS n FROM risen;
CREATE VIEW total AS SELECT count(*) AS n, max(ms) AS slowest, max(ts) AS last FROM clicks;
"""
)


@pytest.fixture
def patterns(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path / "serving.db", plan_of(SQL), SQL)
    bench.send()
    bench.build()
    yield bench
    bench.close()


def give_up(bench: Bench, *keys: str) -> None:
    """An epoch in which the search for these keys is given up."""
    epoch, (version,) = bench.epoch(CLICKS[0]), carried(bench)
    states: list[StateRow] = [(f'{{"user":"{key}"}}', 5, 0, SET_ASIDE, None) for key in keys]
    rows = epoch.rows | {version.id: pa.table({})}
    assert bench.store.commit_epoch(
        replace(epoch, rows=rows, carried={version.id: CarriedEpoch(states)})
    )
    bench.clicks.append(CLICKS[0])


def carried(bench: Bench) -> list[Version]:
    return [v for v in bench.store.versions("clicks") if v.plan.carry]


def test_an_answer_says_how_many_keys_are_set_aside(patterns: Bench) -> None:
    assert patterns.reader.view("risen").as_of["clicks"].set_aside == 0
    give_up(patterns, "ann", "bob")
    for view in ("risen", "most"):
        answer = patterns.reader.view(view)
        assert answer.as_of["clicks"].set_aside == 2
        assert not answer.columns["n"].exact
    assert patterns.reader.view("risen").columns["user"].exact
    assert patterns.reader.sql("SELECT n FROM risen").as_of["clicks"].set_aside == 2


def test_views_without_the_pattern_are_whole(patterns: Bench) -> None:
    give_up(patterns, "ann")
    answer = patterns.reader.view("total")
    assert answer.as_of["clicks"].set_aside == 0
    assert answer.columns["n"].exact


def test_a_key_that_batch_has_set_aside_too_counts_once(patterns: Bench) -> None:
    give_up(patterns, "ann")
    (version,) = carried(patterns)
    staged = patterns.store.stage(
        version, False, as_lifted(version.plan, []), {}, [('{"user":"ann"}', 5, 0, SET_ASIDE, None)]
    )
    patterns.store.close_group("clicks")
    state = patterns.store.stream("clicks")
    (group,) = patterns.store.closed_groups("clicks")
    patterns.store.promote("clicks", state.generation, state.reached, group.number, [staged], [])
    give_up(patterns, "ann", "cid")
    with patterns.store.read() as db:
        assert set_aside_keys(db, version.plan) == [('{"user":"ann"}', 5), ('{"user":"cid"}', 5)]
