"""What nobody has reported is reported once, and again when it has been well meanwhile."""

from __future__ import annotations

import threading

from headrace.core.problems import Problem
from headrace.run.health import CHECK_S, SHARE, HealthMonitor

WAITED, LONG = "events of 'clicks' have waited for speed for more than 1m", "an epoch takes longer"
LATE = Problem("speed", "clicks", "waiting", WAITED)
SLOW = Problem("speed", "orders", "waiting", LONG, "warn")
SAID = Problem("master", "clicks", "archive", "the archive step of stream 'clicks' failed: no room")


def test_only_what_is_bad_and_new_and_not_said_by_others_is_reported() -> None:
    found, told = [LATE, SLOW, SAID], list[object]()
    watch = HealthMonitor(
        lambda: list(found),
        lambda: [SAID],
        threading.Event(),
        lambda kind, fields: told.append((kind, fields["message"])),
    )
    for _ in range(3):
        watch.turn()
    assert told == [("problem", LATE.message)]
    assert list(watch.known) == found
    found.clear()
    watch.turn()
    assert list(watch.known) == []
    found.append(LATE)
    watch.turn()
    assert len(told) == 2


def test_a_slow_look_is_taken_less_often() -> None:
    times = iter([0.0, 0.01, 10.0, 12.0])
    watch = HealthMonitor(list, list, threading.Event(), lambda kind, fields: None, times.__next__)
    assert watch.turn() == CHECK_S
    assert watch.turn() == SHARE * 2.0
