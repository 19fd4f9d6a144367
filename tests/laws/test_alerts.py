"""Batch and speed find the same alerts, whatever a rule reads and wherever the log is cut.

The events are sent in parts. After each part speed commits an epoch and the rules are looked for;
at a cut (one is drawn; `make prove` tries each) batch builds a generation in between. The ids must
be those of a run by batch alone, with none missed and none withdrawn.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chance import PROVE, drawn

from headrace.serving.alert_raiser import AlertRaiser
from headrace.serving.alerts import Alert, AlertFilter, read_alerts
from tests.engines import Compiled, Parts, compile_sql

SQL = """
CREATE STREAM clicks (user STRING, ms INT, price DOUBLE, ok BOOLEAN, tags ARRAY<STRING>, day DATE,
  ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 HOUR);
CREATE STREAM payments (user STRING, paid BIGINT, ts TIMESTAMP,
  WATERMARK ts DELAY OF INTERVAL 1 HOUR);
CREATE STREAM dear AS SELECT user, price * 1.1 AS gross, tags, day, ok, ts FROM clicks
  WHERE price > 5;
CREATE STREAM counted AS SELECT user, ms, sum(ms) OVER (PARTITION BY user ORDER BY ts) AS so_far,
  ts FROM clicks;
CREATE STREAM settled AS SELECT c.user, c.ms, p.paid FROM clicks c JOIN payments p
  ON c.user = p.user AND p.ts BETWEEN c.ts - INTERVAL 1 HOUR AND c.ts + INTERVAL 1 HOUR;
CREATE STREAM taps (user STRING, kind STRING, ts TIMESTAMP,
  WATERMARK ts DELAY OF INTERVAL 1 SECOND);
CREATE STREAM pairs AS SELECT * FROM taps MATCH_RECOGNIZE (PARTITION BY user ORDER BY ts
  MEASURES x.ts AS began PATTERN (x y) DEFINE x AS kind = 'x', y AS kind = 'y');
CREATE STREAM users AS SELECT user FROM pairs;
CREATE STREAM crowds AS count(*) >= 2 WITHIN INTERVAL 10 MINUTES PER user FROM taps;
CREATE VIEW totals AS SELECT user, count(*) AS n FROM clicks GROUP BY user;
CREATE RULE plain AS SELECT * FROM clicks WHERE ms > 2;
CREATE RULE derived AS SELECT * FROM dear WHERE gross > 6;
CREATE RULE exploded AS SELECT user, explode(tags) AS tag FROM clicks;
CREATE RULE carried AS SELECT * FROM counted WHERE so_far > 6;
CREATE RULE joined AS SELECT * FROM settled WHERE paid > 1;
CREATE RULE paired AS SELECT * FROM users;
CREATE RULE crowded AS SELECT user FROM crowds;
CREATE RULE undated AS SELECT user FROM clicks WHERE ms > 9;
CREATE RULE often AS SELECT * FROM totals WHERE n > 2;
"""
PARTS = 4
CUTS = range(PARTS) if PROVE else (drawn("alerts").randrange(PARTS),)


def click(number: int) -> bytes:
    said = {
        "user": "ab"[number % 2], "ms": number, "price": number * 1.7, "ok": number % 3 == 0,
        "tags": ["x", f"t{number}"], "day": "2026-01-01", "ts": f"2026-01-01T00:{number:02}:00Z",
    }  # fmt: skip
    return json.dumps(said).encode()


def payment(number: int) -> bytes:
    return json.dumps(
        {"user": "ab"[number % 2], "paid": number, "ts": f"2026-01-01T00:{number:02}:30Z"}
    ).encode()


def tap(number: int) -> bytes:
    kind = "xy"[number // 2 % 2]
    return json.dumps(
        {"user": "ab"[number % 2], "kind": kind, "ts": f"2026-01-01T00:{number:02}:00Z"}
    ).encode()


@pytest.fixture(scope="module")
def compiled(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compile_sql(spark, tmp_path_factory.mktemp("rules"), SQL)


def play(compiled: Compiled, state: Path, cut: int | None) -> list[Alert]:
    """All alerts; with speed for each part if there is a cut, else by batch alone."""
    parts = Parts(compiled, state)
    parts.store.deploy_rules(parts.plan, (), "ann")
    parts.catch_up()
    raiser = AlertRaiser(parts.store.db)
    for part in range(PARTS):
        numbers = range(part * 3, part * 3 + 3)
        parts.intake("clicks").accept([click(n) for n in numbers])
        parts.intake("payments").accept([payment(n) for n in numbers])
        parts.intake("taps").accept([tap(n) for n in numbers])
        for flow in parts.flows if cut is not None else ():
            if (epoch := parts.epoch(flow)) is not None:
                parts.store.commit_epoch(epoch)
        if part == cut:
            parts.catch_up()
        evaluate(parts, raiser)
    parts.catch_up()
    evaluate(parts, raiser)
    with parts.store.read() as db:
        found = read_alerts(db, AlertFilter(limit=10_000)).alerts
    parts.close()
    return found


def evaluate(parts: Parts, raiser: AlertRaiser) -> None:
    for rule in parts.plan.rules:
        raiser.evaluate(rule)


@pytest.fixture(scope="module")
def by_batch(compiled: Compiled, tmp_path_factory: pytest.TempPathFactory) -> list[Alert]:
    return play(compiled, tmp_path_factory.mktemp("batch"), None)


def ids(found: list[Alert], *, places: bool = True) -> dict[str, str]:
    return {a.id: a.rule for a in found if (a.rule != "often") == places}


def test_alerts_are_the_rows_of_their_rules(by_batch: list[Alert]) -> None:
    numbers: dict[str, int] = {}
    for alert in by_batch:
        numbers[alert.rule] = numbers.get(alert.rule, 0) + 1
    # By hand: 12 clicks, 12 payments; users have every second number.
    joined = sum(p > 1 for c in range(12) for p in range(12) if c % 2 == p % 2)
    assert numbers == {
        "plain": 9, "derived": 8, "exploded": 24, "carried": 7, "joined": joined, "often": 2,
        "paired": 5, "crowded": 2, "undated": 2,
    }  # fmt: skip
    bodies = [alert.body for alert in by_batch if alert.rule == "derived"]
    assert bodies[-1] == {
        "user": "a", "gross": pytest.approx(7.48), "tags": ["x", "t4"], "day": "2026-01-01",
        "ok": False, "ts": "2026-01-01T00:04:00Z",
    }  # fmt: skip


def test_alerts_have_the_time_of_their_events_selected_or_not(by_batch: list[Alert]) -> None:
    times: dict[str, list[int]] = {}
    for alert in by_batch:
        times.setdefault(alert.rule, []).append(int(alert.event_time[14:16]))
    # A match is dated by its last row, a threshold by the event that reached it. The tap of minute
    # 11 has not been passed by the watermark.
    assert sorted(times["paired"]) == [2, 3, 6, 7, 10]
    assert sorted(times["crowded"]) == [2, 3]
    assert sorted(times["undated"]) == [10, 11]


@pytest.mark.parametrize("cut", CUTS)
def test_speed_finds_the_same_ids_as_batch_wherever_the_log_is_cut(
    cut: int, compiled: Compiled, by_batch: list[Alert], tmp_path: Path
) -> None:
    found = play(compiled, tmp_path, cut)
    assert ids(found) == ids(by_batch)
    assert [a for a in found if a.missed or a.withdrawn_at or a.state != "open"] == []
    assert len(ids(found, places=False)) == 2
