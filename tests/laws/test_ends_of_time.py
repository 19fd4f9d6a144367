"""Events at the ends of time break nothing: each kind of view is read in each way, and agrees in
batch and speed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headrace.audit.oracle import audit_view
from headrace.serving.answer_table import arrow_table
from tests.engines import Compiled, Parts, compile_sql

SQL = """
CREATE STREAM clicks (user STRING, ms BIGINT, gap STRING, ts TIMESTAMP,
  WATERMARK ts DELAY OF INTERVAL 1 HOUR);
CREATE STREAM payments (user STRING, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 HOUR);
CREATE STREAM counted AS SELECT user, ms, ts, lag(ts) OVER (PARTITION BY user ORDER BY ts) AS before
  FROM clicks;
CREATE STREAM pairs AS SELECT * FROM clicks MATCH_RECOGNIZE (PARTITION BY user ORDER BY ts
  MEASURES a.ts AS began, b.ts AS ended PATTERN (a b) WITHIN INTERVAL 365 DAYS);
CREATE STREAM paid AS SELECT c.user, c.ts FROM clicks c JOIN payments p
  ON c.user = p.user AND p.ts BETWEEN c.ts - INTERVAL 1 HOUR AND c.ts + INTERVAL 1 HOUR;
CREATE VIEW plain AS SELECT user, min(ts) AS first, max(ts) AS last, max_by(ms, ts) AS newest,
  first(ms) AS oldest, count(DISTINCT ts) AS moments FROM clicks GROUP BY user;
CREATE VIEW days AS SELECT date(ts) AS day, count(*) AS n FROM clicks GROUP BY date(ts);
CREATE VIEW tumbling AS SELECT window(ts, '1 hour') AS w, count(*) AS n FROM clicks
  GROUP BY window(ts, '1 hour');
CREATE VIEW weekly AS SELECT window(ts, '7 days') AS w, user, count(*) AS n FROM clicks
  GROUP BY window(ts, '7 days'), user;
CREATE VIEW sliding AS SELECT window(ts, '7 days', '1 day', '5 hours') AS w, count(*) AS n
  FROM clicks GROUP BY window(ts, '7 days', '1 day', '5 hours');
CREATE VIEW sittings AS SELECT user, session_window(ts, '30 days') AS s, count(*) AS n FROM clicks
  GROUP BY user, session_window(ts, '30 days');
CREATE VIEW lives AS SELECT session_window(ts, gap) AS s, count(*) AS n FROM clicks
  GROUP BY session_window(ts, gap);
CREATE VIEW since AS SELECT landmark_window(ts, '2020-01-01') AS w, count(*) AS n FROM clicks
  GROUP BY landmark_window(ts, '2020-01-01');
CREATE VIEW twos AS SELECT user, count_window(2) AS w, max(ts) AS last FROM clicks
  GROUP BY user, count_window(2);
CREATE VIEW waits AS SELECT user, max(before) AS before, count(*) AS n FROM counted GROUP BY user;
CREATE VIEW matched AS SELECT user, min(began) AS began, max(ended) AS ended FROM pairs
  GROUP BY user;
CREATE VIEW bought AS SELECT window(ts, '1 day') AS w, count(*) AS n FROM paid
  GROUP BY window(ts, '1 day');
CREATE VIEW over AS SELECT w.start AS began, w.end AS ended, sum(n) AS n FROM weekly
  GROUP BY w.start, w.end;
CREATE VIEW moved AS SELECT count(*) AS n FROM clicks WHERE ts + INTERVAL 1 DAY > ts;
CREATE RULE seen AS SELECT user, ts FROM clicks WHERE ms > 0;
"""
TIMES = (
    "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00.000001Z",
    "2026-01-01T00:00:00Z", "9999-12-31T00:00:00Z", "0001-01-08T00:00:00Z", "1970-01-01T00:00:00Z",
)  # fmt: skip


GAPS = ("1 day", "5000000 days", "99999999 days")


def event(number: int) -> bytes:
    said = {"user": "ab"[number % 2], "ms": number, "gap": GAPS[number % 3], "ts": TIMES[number]}
    return json.dumps(said).encode()


@pytest.fixture(scope="module")
def compiled(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compile_sql(spark, tmp_path_factory.mktemp("ends"), SQL)


def answers(parts: Parts) -> dict[str, Any]:
    """Every view, read whole, by its windows, by lateness, in SQL, and as Arrow."""
    found: dict[str, Any] = {}
    for view in parts.plan.shown_views:
        answer = parts.reader.view(view.name)
        assert arrow_table(answer).num_rows == len(answer.rows)
        asked = parts.reader.sql(f"SELECT * FROM {view.name}").rows
        assert sorted(map(str, asked)) == sorted(map(str, answer.rows))
        if view.has_lateness:
            assert len(parts.reader.late(view.name).windows) == len(answer.rows)
        if view.windowed and not view.carry:
            for moment in TIMES:
                parts.reader.view(view.name, since=moment, until=TIMES[1])
                parts.reader.view(view.name, since=TIMES[0], until=moment)
        found[view.name] = sorted(map(str, answer.rows))
    return found


def test_every_kind_of_view_is_read_and_batch_agrees_with_speed(
    compiled: Compiled, tmp_path: Path
) -> None:
    parts = Parts(compiled, tmp_path)
    parts.catch_up()
    for numbers in (range(3), range(3, len(TIMES))):
        parts.intake("clicks").accept([event(number) for number in numbers])
        parts.intake("payments").accept([event(number) for number in numbers])
        for flow in parts.flows:
            if epoch := parts.epoch(flow):
                parts.store.commit_epoch(epoch)
    by_speed = answers(parts)
    # A time that is computed of an event may be after the year 9999, and counts as any other.
    assert by_speed["moved"] == [str({"n": len(TIMES)})]
    for view in parts.plan.shown_views:
        if view.kept:
            audit = audit_view(parts.store, parts.layout, parts.plan, view.name, compiled.project)
            assert audit.differences == 0, audit
    parts.catch_up()
    assert answers(parts) == by_speed
    parts.close()
