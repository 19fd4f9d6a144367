"""The fold without Spark SQL gives what Spark SQL gives, in one task and shuffled, from the start
and onto stored states.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from chance import drawn
from engines import Compiled, Parts, compile_sql

from headrace.batch.build import Builder, BuildResult
from headrace.core.time import SECOND, from_iso, iso
from headrace.spark import fold_kernel

DEFINITIONS = """
CREATE STREAM clicks (user STRING, place INT, n BIGINT, at DATE, ts TIMESTAMP NOT NULL,
  WATERMARK ts DELAY OF INTERVAL 20 SECONDS);
CREATE TABLE names (user STRING, name STRING) USING csv LOCATION 'names.csv';
CREATE STREAM smooth AS SELECT user, ts, ewma(n, 0.5) OVER (PARTITION BY user ORDER BY ts) AS soft,
  lag(at) OVER (PARTITION BY user ORDER BY ts) AS before FROM clicks;
CREATE STREAM rises AS SELECT * FROM clicks MATCH_RECOGNIZE (PARTITION BY user, place ORDER BY ts
  MEASURES first(up.ts) AS began, last(up.n) AS n, count(up.n) AS ups
  PATTERN (low up+) WITHIN INTERVAL 1 MINUTE DEFINE low AS n < 20, up AS n > PREV(n));
CREATE STREAM brute AS count(DISTINCT n) >= 3 WITHIN INTERVAL 30 SECONDS PER user FROM clicks;
CREATE VIEW softened AS SELECT user, max_by(soft, ts) AS soft, max(before) AS before FROM smooth
  GROUP BY user;
CREATE VIEW threes AS SELECT coalesce(name, '?') AS name, count_window(3) AS w, count(*) AS hits,
  sum(n) AS total, count(DISTINCT n) AS ns FROM clicks LEFT JOIN names USING (user)
  WHERE n <> 13 GROUP BY coalesce(name, '?'), count_window(3);
CREATE VIEW risen AS SELECT user, count(*) AS found, min(began) AS began, sum(n) AS total FROM rises
  GROUP BY user;
CREATE VIEW forced AS SELECT user, count(*) AS found, max(ended) AS ended FROM brute GROUP BY user;
"""
VIEWS = ("softened", "threes", "risen", "forced")
# Of their texts JSON must quote some characters.
USERS = ("ada", 'b"b', "c\\d", "é\n\x01", "", "😀/", None)
START_US = from_iso("2026-01-01T00:00:00Z")


@pytest.fixture(scope="module")
def compiled(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    files = {"names.csv": b"user,name\nada,Ada\n"}
    return compile_sql(spark, tmp_path_factory.mktemp("fold"), DEFINITIONS, files, partitions=2)


def events(rng: Random, count: int, since: int) -> Iterator[bytes]:
    """Events in disorder, some of them late."""
    for place in range(count):
        second = since + place // 3 + rng.choice((0, 0, 0, -3, -9, -40))
        event = {
            "user": rng.choice(USERS), "place": rng.choice((1, 2, None)),
            "n": rng.choice((None, *range(40))), "at": f"2026-01-{rng.randint(1, 28):02}",
            "ts": iso(START_US + max(second, 0) * SECOND),
        }  # fmt: skip
        yield json.dumps(event).encode()


def build(parts: Parts, *, vectorised: bool) -> BuildResult | None:
    """A build with tasks in Spark."""
    parts.archive("clicks")
    flow, feeds = parts.flows["clicks"], parts.feeds("clicks")
    builder = Builder(
        parts.compiled.batch, flow, feeds, parts.store, clock=parts.clock, vectorised=vectorised
    )
    return builder.build(speed_runs=False)


def kept(parts: Parts) -> dict[str, Any]:
    """The answers and states of all views."""
    versions = {version.name: version for version in parts.store.versions("clicks")}
    found: dict[str, Any] = {}
    for view in VIEWS:
        states = parts.store.states(versions[view], None, None, at_boundary=True)
        rows = parts.reader.view(view).rows
        found[view] = sorted(map(repr, rows)), sorted(map(repr, states))
    return found


@pytest.mark.parametrize("few", [1_000_000, 0], ids=["one task", "shuffled"])
def test_builds_by_the_kernel_are_those_of_spark_sql(
    compiled: Compiled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    assert [v.name for v in compiled.plan.views if not v.kernel.sql] == []
    monkeypatch.setattr(fold_kernel, "FEW_EVENTS", few)
    monkeypatch.setattr(fold_kernel, "BUCKET_EVENTS", 100)
    rng, said = drawn("fold", few), [True, False]
    kernel, spark = (Parts(compiled, tmp_path / str(vectorised)) for vectorised in said)
    for since in (0, 200, 210):
        sent = list(events(rng, 500, since))
        for parts, vectorised in zip((kernel, spark), said, strict=True):
            parts.intake("clicks").accept(sent)
            assert build(parts, vectorised=vectorised) is not None
        made = kept(kernel)
        assert made == kept(spark)
        assert all(rows for rows, _ in made.values())
    for parts in (kernel, spark):
        parts.close()
