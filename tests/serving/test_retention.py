"""What is removed from the ledger is old, settled, and never raised again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.core.time import DAY, HOUR
from headrace.serving.outbox import Queue
from headrace.serving.retention import AlertRetention
from tests.killed import run_module
from tests.serving.bench import Bench, Click
from tests.serving.rule_bench import BUSY, SLOW, RuleBench
from tests.serving.watch_bench import WatchBench, watch

from .marks import on_every_database

pytestmark = on_every_database

KEEP_US = 10 * DAY
FILE = " NOTIFY FILE 'alerts.ndjson'"
Open = Callable[..., RuleBench]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    made: list[Bench] = []

    def make(rules: str = SLOW, kind: Any = RuleBench, **said: Any) -> Any:
        told = {"rules": rules} if kind is RuleBench else {"said": rules}
        made.append(kind(tmp_path / "serving.db", **told, **said))
        made[-1].build()
        made[-1].look()
        return made[-1]

    yield make
    for bench in made:
        bench.close()


def slow(user: str, second: int = 5) -> Click:
    return Click("/a", user, second, 99)


def tidy(bench: Bench, keep_us: int = KEEP_US) -> int:
    return AlertRetention(bench.store.db, keep_us, bench.clock).remove_old()


def later(bench: Bench, us: int = KEEP_US + HOUR) -> None:
    bench.clock.now_us += us


def deliver(bench: RuleBench) -> None:
    queue = Queue(bench.store.db, bench.plan.rules[0].destinations[0].name)
    queue.delivered(queue.due(bench.clock(), 100), bench.clock())


def raised_again(bench: Any) -> int:
    """What looks after all kinds of promotions raise."""
    found = 0
    for full in (False, True, False):
        bench.build(full=full)
        found += bench.look()
    return found


def test_old_alert_goes_and_no_promotion_raises_it_again(opened: Open) -> None:
    bench = opened(SLOW + FILE)
    bench.send(slow("ann"))
    bench.look()
    bench.build()
    bench.look()
    deliver(bench)
    assert tidy(bench) == 0
    later(bench)
    assert (tidy(bench), bench.said("user"), bench.notices()) == (1, [], [])
    assert raised_again(bench) == 0
    bench.redeploy(f"{SLOW} SEVERITY 'low'{FILE}")
    assert raised_again(bench) == 0, "nor does the rule when it begins anew"


def test_alert_stays_until_its_notification_is_settled(opened: Open) -> None:
    bench = opened(SLOW + FILE)
    bench.send(slow("ann"))
    bench.look()
    bench.build()
    later(bench)
    assert tidy(bench) == 0
    deliver(bench)
    assert (tidy(bench), len(bench.notices())) == (1, 1)
    later(bench)
    tidy(bench)
    assert bench.notices() == [], "it goes when its own end is old"


def test_one_notification_of_two_alerts_goes_with_the_last(opened: Open) -> None:
    bench = opened(f"{SLOW} COUPLING EPOCH{FILE}")
    bench.send(slow("ann"), slow("bob"))
    bench.look()
    bench.build()
    deliver(bench)
    later(bench)
    with bench.store.write() as db:
        db.execute("UPDATE _alerts SET raised_at = ? WHERE body LIKE '%bob%'", (bench.clock(),))
    assert (tidy(bench), len(bench.notices())) == (1, 1)
    later(bench)
    assert (tidy(bench), len(bench.notices())) == (1, 0)


def test_alert_that_only_speed_knows_stays(opened: Open) -> None:
    bench = opened()
    bench.send(slow("ann"))
    bench.look()
    later(bench)
    assert tidy(bench) == 0
    bench.build()
    assert (tidy(bench), raised_again(bench)) == (1, 0)


def test_what_speed_decides_is_raised_however_old_its_event(opened: Open) -> None:
    bench = opened()
    later(bench)
    tidy(bench)
    bench.send(slow("ann"))
    assert bench.look() == 1
    bench.build()
    assert (tidy(bench), raised_again(bench), bench.said("user")) == (0, 0, [("ann",)])


def test_what_came_after_the_floor_is_found_by_batch_alone(opened: Open) -> None:
    bench = opened(lost={"bob"})
    bench.send(slow("ann"))
    bench.look()
    bench.build()
    later(bench)
    assert tidy(bench) == 1
    bench.send(slow("bob", (KEEP_US + HOUR) // 1_000_000))
    bench.look()
    assert (raised_again(bench), bench.said("user", "missed")) == (1, [("bob", True)])


def test_row_of_a_view_stays_while_it_is_in_the_answer(opened: Open) -> None:
    bench = opened(BUSY)
    bench.send(slow("ann"), slow("bob"))
    bench.look()
    (first,) = bench.said("id")
    later(bench)
    assert (tidy(bench), bench.look()) == (0, 0)
    with bench.store.write() as db:
        db.execute("UPDATE _alerts SET left_at = 1")
    assert tidy(bench) == 1
    bench.send(slow("cid"))
    assert bench.look() == 1
    assert bench.said("id") != [first], "it came in again, and is another alert"


def test_alert_that_may_suppress_another_stays(opened: Open) -> None:
    bench = opened(f"{SLOW} SUPPRESS FOR INTERVAL 30 DAYS PER user")
    bench.send(slow("ann"))
    bench.look()
    bench.build()
    later(bench)
    assert tidy(bench) == 0
    later(bench, 20 * DAY)
    assert tidy(bench) == 1


def test_alerts_of_a_rule_that_is_no_more_go(opened: Open) -> None:
    bench = opened()
    bench.send(slow("ann"))
    bench.look()
    bench.redeploy(BUSY)
    later(bench)
    assert tidy(bench) == 1


def test_matches_of_watches_go_and_are_not_raised_again(opened: Open) -> None:
    said = watch("all", 9, "AFTER 99 MATCHES", "") + watch("one", 9, "AFTER 1 MATCH", "")
    bench: Any = opened(said, WatchBench)
    bench.send(slow("ann"))
    bench.look()
    later(bench)
    assert tidy(bench) == 1, "what has ended raises nothing; the other waits for a generation"
    bench.build()
    bench.look()
    assert (tidy(bench), raised_again(bench)) == (1, 0)
    assert (bench.watch("all").matches, bench.watch("one").state) == (1, "ended")


def test_floor_never_goes_back(opened: Open) -> None:
    bench = opened()
    bench.send(slow("ann"))
    bench.look()
    bench.build()
    later(bench)
    assert tidy(bench) == 1
    assert tidy(bench, 1_000 * DAY) == 0
    assert raised_again(bench) == 0


# Killed


def work(path: Path) -> None:
    bench = RuleBench(path, rules=SLOW)
    if not bench.store.stream("clicks").generation:
        bench.build()
        bench.look()
        bench.send(*(slow(f"u{n}") for n in range(5)))
        bench.look()
        bench.build()
    bench.clicks = [slow(f"u{n}") for n in range(5)]
    later(bench)
    bench.look()
    tidy(bench)
    bench.build()
    bench.look()
    bench.close()


@pytest.mark.process
@pytest.mark.parametrize("point", ["alerts.removing:1", "alerts.removed:1"])
def test_alerts_are_removed_with_the_floor_or_not_at_all(point: str, tmp_path: Path) -> None:
    path = tmp_path / "serving.db"
    for failpoint in (point, ""):
        run_module("tests.serving.test_retention", str(path), failpoint=failpoint)
        bench = RuleBench(path, rules=SLOW)
        known = 5 if failpoint == "alerts.removing:1" else 0
        assert len(bench.alerts()) == known
        bench.close()


if __name__ == "__main__":
    work(Path(sys.argv[1]))
