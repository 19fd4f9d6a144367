"""What a look raises, and whether it is notified. Epochs and generations are made by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.compile.view_subscription import shape_of
from headrace.core.rule import hidden
from headrace.core.time import MINUTE, SECOND
from headrace.define.view_subscription import read_subscription
from headrace.serving.emit_state import EmitState
from headrace.serving.mutes import mute
from headrace.serving.rules import DISABLED, ENABLED, add_version, start_rule
from headrace.serving.view_tracker import ViewTracker
from tests.serving.bench import Click
from tests.serving.rule_bench import BUSY, SLOW, VISITS, RuleBench

from .marks import on_every_database

pytestmark = on_every_database

FILE = " NOTIFY FILE 'alerts.ndjson'"
Open = Callable[..., RuleBench]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    made: list[RuleBench] = []

    def make(rules: str = SLOW + FILE, **said: Any) -> RuleBench:
        made.append(RuleBench(tmp_path / "serving.db", rules=rules, **said))
        made[-1].build()
        made[-1].look()
        return made[-1]

    yield make
    for bench in made:
        bench.close()


def slow(user: str, second: int, page: str = "/a", **said: Any) -> Click:
    return Click(page, user, second, 99, **said)


def test_each_row_is_one_alert_however_often_one_looks(opened: Open) -> None:
    bench = opened()
    bench.send(slow("ann", 5), Click("/a", "bob", 6, 7), slow("cid", 7, partition=1))
    assert (bench.look(), bench.look()) == (2, 0)
    assert bench.said("user", "state", "raised_by", "event_time") == [
        ("ann", "open", "speed", "2026-01-01T00:00:05Z"),
        ("cid", "open", "speed", "2026-01-01T00:00:07Z"),
    ]
    ids = bench.said("id")
    assert [notice[1:] for notice in bench.notices()] == [
        (id, "raised", "waiting") for (id,) in ids
    ]


def test_what_time_alone_has_ripened_is_raised(opened: Open) -> None:
    bench = opened()
    waiting = slow("ann", 5, partition=1)
    bench.lost.add("ann")  # as a match that waits for the watermark
    bench.send(waiting)
    bench.clock.now_us += SECOND
    bench.send(Click("/a", "bob", 70))
    assert bench.look() == 0
    bench.clock.now_us += 2 * MINUTE
    bench.lost.clear()
    rule = next(v for v in bench.store.versions("clicks") if hidden(v.name))
    epoch = bench.epoch()
    ripe = epoch.rows | {rule.id: bench.rows_of(rule.plan, [waiting], (0, 0))}
    assert bench.store.commit_epoch(replace(epoch, rows=ripe))
    assert (bench.look(), bench.look()) == (1, 0)
    assert bench.said("user", "state", "raised_by") == [("ann", "open", "speed")]


def test_batch_finds_the_same_ids_as_speed(opened: Open) -> None:
    bench = opened()
    bench.send(slow("ann", 5), slow("bob", 6, partition=1))
    bench.look()
    before = bench.alerts()
    bench.build(full=False)
    assert bench.look() == 0
    bench.build(full=True)
    assert bench.look() == 0
    assert bench.alerts() == before


def test_what_batch_takes_before_a_look_is_raised_and_not_missed(opened: Open) -> None:
    bench = opened()
    bench.send(slow("ann", 5))
    bench.build(full=False)
    assert bench.look() == 1
    assert bench.said("user", "raised_by", "missed", "state") == [
        ("ann", "generation 2", False, "open")
    ]


def test_equal_rows_of_two_events_are_two_alerts(opened: Open) -> None:
    bench = opened()
    bench.send(slow("ann", 5), slow("ann", 5))
    assert bench.look() == 2


@pytest.mark.parametrize(
    ("more", "state", "kinds"), [("", "missed", []), (" WITH CORRECTIONS", "open", ["missed"])]
)
def test_missed_alert_is_recorded_and_notified_only_with_corrections(
    more: str, state: str, kinds: list[str], opened: Open
) -> None:
    bench = opened(SLOW + FILE + more, lost={"bob"})
    bench.send(slow("bob", 5))
    bench.look()
    bench.build()
    assert bench.look() == 1
    assert bench.said("user", "missed", "state", "raised_by") == [
        ("bob", True, state, "generation 2")
    ]
    assert [notice[2] for notice in bench.notices()] == kinds


def test_alert_that_batch_does_not_find_is_withdrawn(opened: Open) -> None:
    bench = opened(f"{SLOW + FILE} WITH CORRECTIONS", wrong={"bob"})
    bench.send(slow("ann", 5), slow("bob", 6))
    bench.look()
    bench.build()
    assert bench.look() == 1
    assert [(a.body["user"], a.withdrawn_at is None) for a in bench.alerts()] == [
        ("ann", True), ("bob", False),
    ]  # fmt: skip
    assert [notice[2] for notice in bench.notices()] == ["raised", "raised", "withdrawn"]
    bench.wrong.clear()
    bench.build()
    bench.look()
    assert all(alert.withdrawn_at is None for alert in bench.alerts())


def test_nothing_is_withdrawn_before_batch_has_come_there(opened: Open) -> None:
    bench = opened(wrong={"bob"})
    bench.send(slow("ann", 5))
    bench.build()
    bench.send(slow("bob", 6))
    bench.look()
    assert [alert.withdrawn_at for alert in bench.alerts()] == [None, None]


def test_alerts_that_follow_too_soon_are_suppressed_in_event_time(opened: Open) -> None:
    bench = opened(f"{SLOW} SUPPRESS FOR INTERVAL 1 MINUTE PER user{FILE}")
    bench.send(slow("ann", 70), slow("ann", 5), slow("bob", 6), slow("ann", 64))
    bench.look()
    bench.send(slow("ann", 65), slow("ann", 129), slow("ann", 130))
    bench.look()
    found = {(a.body["ts"][14:19], a.body["user"]): a for a in bench.alerts()}
    shown = {key: alert.state for key, alert in found.items()}
    assert shown == {
        ("00:05", "ann"): "open", ("00:06", "bob"): "open", ("01:04", "ann"): "suppressed",
        ("01:10", "ann"): "open", ("01:05", "ann"): "open", ("02:09", "ann"): "suppressed",
        ("02:10", "ann"): "open",
    }  # fmt: skip
    assert found["01:04", "ann"].suppressed_by == found["00:05", "ann"].id
    assert found["02:09", "ann"].suppressed_by == found["01:10", "ann"].id
    assert len(bench.notices()) == 5


def test_muted_alerts_are_recorded_and_not_notified(opened: Open) -> None:
    bench = opened()
    now = bench.clock()
    with bench.store.write() as db:
        mute(db, "slow", {"user": "ann", "ms": "99"}, now + MINUTE, "ann", now)
    bench.send(slow("ann", 5), slow("bob", 6))
    bench.look()
    bench.clock.now_us += MINUTE
    bench.send(slow("ann", 7))
    bench.look()
    assert bench.said("user", "state") == [("ann", "muted"), ("bob", "open"), ("ann", "open")]
    assert len(bench.notices()) == 2


def test_epoch_coupling_is_one_notification_a_commit(opened: Open) -> None:
    bench = opened(f"{SLOW}{FILE} COUPLING EPOCH")
    bench.send(slow("ann", 5), slow("bob", 6))
    bench.look()
    bench.send(slow("cid", 7))
    bench.look()
    with bench.store.read() as db:
        rows = db.execute("SELECT alerts FROM _outbox ORDER BY number").fetchall()
    assert [len(json.loads(alerts)) for (alerts,) in rows] == [2, 1]


def test_history_before_a_rule_is_backfilled_and_not_notified(opened: Open) -> None:
    bench = opened("")
    bench.send(slow("ann", 5))
    bench.redeploy(SLOW + FILE)
    bench.send(slow("bob", 6))
    assert bench.look() == 0, "it is being built for the first time"
    bench.build()
    assert bench.look() == 2
    assert bench.said("user", "state", "missed") == [
        ("ann", "backfilled", False), ("bob", "open", False),
    ]  # fmt: skip
    assert len(bench.notices()) == 1


def test_rule_that_says_more_raises_only_what_is_new(opened: Open) -> None:
    bench = opened()
    bench.send(slow("ann", 5))
    bench.look()
    bench.redeploy(f"{SLOW} SEVERITY 'high'{FILE}")
    bench.look()
    bench.send(slow("bob", 6))
    bench.look()
    assert bench.said("user", "severity", "version", "state") == [
        ("ann", "medium", 1, "open"), ("bob", "high", 2, "open"),
    ]  # fmt: skip


def test_disabled_rule_raises_nothing_and_what_it_slept_through_is_history(opened: Open) -> None:
    bench = opened()

    def switch(state: str) -> None:
        with bench.store.write() as db:
            add_version(db, "slow", bench.plan.rules[0].text, state, False, "ann", 0)
            start_rule(db, bench.plan.rules[0])

    switch(DISABLED)
    bench.send(slow("ann", 5))
    assert bench.look() == 0
    switch(ENABLED)
    bench.send(slow("bob", 6))
    bench.look()
    assert bench.said("user", "state", "version") == [("ann", "backfilled", 3), ("bob", "open", 3)]


def test_row_of_a_view_is_an_alert_when_it_comes_in_and_again_after_it_left(opened: Open) -> None:
    bench = opened(BUSY + FILE)
    bench.send(Click("/a", "ann", 5), Click("/b", "ann", 6))
    assert bench.look() == 0
    bench.send(Click("/a", "bob", 7))
    assert bench.look() == 1
    bench.send(Click("/a", "cid", 8))
    assert bench.look() == 0, "it is in the answer still"
    bench.send(Click("/a", "dan", 65), Click("/a", "dan", 66))
    assert bench.look() == 1, "another window is another row"
    bench.redeploy(f"{BUSY.replace('1', '9')}{FILE}")
    bench.look()
    bench.redeploy(BUSY + FILE)
    bench.look()
    states = [(alert.state, alert.version) for alert in bench.alerts()]
    assert states == [("open", 1), ("open", 1), ("backfilled", 3), ("backfilled", 3)]
    assert len(set(bench.said("id"))) == 4
    first = bench.alerts()[0]
    assert first.body == {
        "page": "/a", "n": 2, "slowest": None,
        "minute": {"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:01:00Z"},
    }  # fmt: skip


LONG = f"{VISITS}CREATE RULE long AS SELECT * FROM visits WHERE n > 1{FILE}"


def test_session_is_one_alert_however_it_grows(opened: Open) -> None:
    bench = opened(LONG)
    bench.send(Click("/a", "ann", 5), Click("/a", "ann", 6), Click("/b", "ann", 6))
    assert bench.look() == 1
    bench.send(Click("/a", "ann", 9))
    assert bench.look() == 0, "it ends later"
    bench.send(Click("/a", "ann", 2))
    assert bench.look() == 0, "it begins earlier"
    bench.send(Click("/b", "ann", 5))
    assert bench.look() == 1, "the session of another key"
    bench.send(Click("/a", "ann", 30), Click("/a", "ann", 31))
    assert bench.look() == 1, "another session"
    bench.build()
    assert bench.look() == 0
    assert bench.said("page", "n") == [("/a", 2), ("/b", 2), ("/a", 2)]


def test_merged_sessions_keep_their_alerts(opened: Open) -> None:
    bench = opened(LONG)
    bench.send(*(Click("/a", "ann", second) for second in (0, 1, 10, 11)))
    assert bench.look() == 2
    bench.send(Click("/a", "ann", 6))
    assert bench.look() == 0
    with bench.store.read() as db:
        assert db.execute("SELECT count(left_at) FROM _alerts").fetchone() == (0,)


def test_session_that_left_and_returns_longer_is_another_alert(opened: Open) -> None:
    rule = "CREATE RULE pairs AS SELECT visit, page, n FROM visits WHERE n = 2 OR n = 4"
    bench = opened(f"{VISITS}{rule}{FILE}")
    bench.send(Click("/a", "ann", 5), Click("/a", "ann", 6))
    assert bench.look() == 1
    bench.send(Click("/a", "ann", 7))
    assert bench.look() == 0
    bench.send(Click("/a", "ann", 8))
    assert bench.look() == 1


def test_look_that_finds_much_is_saved_in_parts(opened: Open) -> None:
    bench = opened()
    bench.send(*(slow(f"u{number}", number) for number in range(2_500)))
    assert bench.look() == 2_500
    assert len(set(bench.said("id"))) == 100, "the newest are listed"
    assert len(bench.notices()) == 2_500


def test_alerts_can_be_asked_for_in_sql(opened: Open) -> None:
    bench = opened()
    bench.send(slow("ann", 5))
    bench.look()
    rows = bench.reader.sql("SELECT rule, severity, state, event_time, missed FROM alerts").rows
    assert rows == [
        {
            "rule": "slow", "severity": "medium", "state": "open", "missed": False,
            "event_time": "2026-01-01T00:00:05Z",
        }
    ]  # fmt: skip
    assert bench.reader.view("alerts").rows[0]["body"].startswith('{"page":"/a"')


def test_alerts_can_be_subscribed_to(opened: Open) -> None:
    bench = opened()
    asked = read_subscription("SUBSCRIBE TO alerts EMIT INSERTS")
    tracker = ViewTracker(bench.reader, asked, shape_of(bench.plan, asked), EmitState())
    assert [emission.panes for emission in [tracker.poll()] if emission] == [[]]
    bench.send(slow("ann", 5))
    bench.look()
    found = tracker.poll()
    assert found is not None
    assert [pane.row["rule"] for pane in found.panes] == ["slow"]
    tracker.commit(found)
    assert tracker.poll() is None
