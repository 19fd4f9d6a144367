"""Each match is one alert until its watch ends, and the end is said once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.core.errors import NotFound
from headrace.core.time import HOUR, from_iso, iso
from headrace.serving import watches
from tests.killed import run_module
from tests.serving.bench import Click
from tests.serving.watch_bench import WatchBench, watch

from .marks import on_every_database

pytestmark = on_every_database

Make = Callable[..., WatchBench]
ENDLESS = "UNTIL '2100-01-01'"


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[WatchBench] = []

    def open_(said: str = "", **more: Any) -> WatchBench:
        made.append(WatchBench(tmp_path / "serving.db", said=said, **more))
        made[-1].build()
        made[-1].look()
        return made[-1]

    yield open_
    for bench in made:
        bench.close()


def clicks(*ms: int, partition: int = 0) -> list[Click]:
    return [Click("/a", f"u{n}", n, value, partition) for n, value in enumerate(ms)]


def said(bench: WatchBench, name: str) -> list[int]:
    return [alert.body["ms"] for alert in bench.matches(name)]


def test_watches_of_one_shape_have_the_matches_of_their_own_constants(make: Make) -> None:
    bench = make(watch("high", 90, ENDLESS) + watch("low", 10, ENDLESS))
    assert len(bench.plan.shapes) == 1
    bench.send(*clicks(5, 50, 99))
    bench.look()
    assert (said(bench, "high"), said(bench, "low")) == ([99], [50, 99])
    assert bench.look() == 0
    assert (bench.watch("low").matches, bench.watch("low").state) == (2, "active")


def test_a_watch_ends_after_its_matches_and_says_so_once(make: Make) -> None:
    bench = make(watch("two", 10, "AFTER 2 MATCHES"))
    bench.send(*clicks(50, 60, 70))
    bench.look()
    bench.send(*clicks(80))
    bench.look()
    ended = bench.watch("two")
    assert (said(bench, "two"), ended.state, ended.why) == ([50, 60], "ended", "it had 2 matches")
    assert ended.ended_at == iso(bench.clock())
    assert bench.notices() == [
        ("two", "raised", None), ("two", "raised", None), ("two", "ended", "it had 2 matches"),
    ]  # fmt: skip


def test_a_watch_ends_with_the_match_for_which_when_is_true(make: Make) -> None:
    bench = make(watch("w", 10, "WHEN (ms < 40)"), done=40)
    bench.send(*clicks(50, 30, 60))
    bench.look()
    assert (said(bench, "w"), bench.watch("w").why) == ([50, 30], "its WHEN condition was met")


def test_a_watch_ends_at_its_moment_by_the_clock_and_what_arrives_then_is_no_match(
    make: Make,
) -> None:
    bench = make(watch("w", 10, "UNTIL '2026-01-01T01:00:03Z'"))
    bench.clock.now_us = from_iso("2026-01-01T01:00:02Z")
    bench.send(*(Click("/a", "u", 3600 + n, 50 + n) for n in (1, 2, 9)))
    bench.clock.now_us += HOUR
    bench.look()
    assert said(bench, "w") == [51], "the second one arrived at three seconds"
    assert bench.watch("w").state == "ended"
    assert bench.watch("w").why == "its UNTIL time was reached: 2026-01-01T01:00:03Z"
    assert [kind for _, kind, _ in bench.notices()] == ["raised", "ended"]
    bench.look()
    assert len(bench.notices()) == 2


def test_a_watch_speaks_of_events_that_are_committed_after_it_was_added(make: Make) -> None:
    bench = make(shapes=watch("shape", 0, ENDLESS))
    bench.send(*clicks(50, 60))
    bench.add(watch("late", 10, ENDLESS))
    bench.look()
    bench.send(*clicks(70))
    bench.look()
    assert said(bench, "late") == [70]
    bench.build()
    bench.look()
    assert said(bench, "late") == [70], "batch finds the same"


def test_what_batch_alone_has_found_is_raised_once(make: Make) -> None:
    bench = make(watch("w", 10, ENDLESS))
    epoch = bench.epoch(*clicks(50))
    bench.store.commit_epoch(
        replace(epoch, rows={id: rows.slice(0, 0) for id, rows in epoch.rows.items()})
    )
    bench.clicks += clicks(50)
    bench.look()
    assert said(bench, "w") == []
    bench.build()
    bench.look()
    bench.build()
    bench.look()
    assert [a.raised_by for a in bench.matches("w")] == ["generation 2"]


def test_ended_watches_are_compared_no_more_once_batch_has_passed_them(make: Make) -> None:
    bench = make(watch("one", 10, "AFTER 1 MATCH") + watch("all", 10, ENDLESS))
    bench.send(*clicks(50))
    bench.look()
    with bench.store.read() as db:
        assert watches.shapes_to_close(db) == {bench.plan.shapes[0].name}
    bench.begin()
    assert [(row["_watch"], row["_to0"]) for row in bench.constants()] == [(1, 1), (2, 2**63 - 1)]
    assert bench.build(audit=True)[-1].differences == 0
    assert [row["_watch"] for row in bench.constants()] == [2]


def test_the_weakest_constants_are_the_bounds(make: Make) -> None:
    bench = make(watch("high", 90, ENDLESS) + watch("low", 10, ENDLESS))
    with bench.store.read() as db:
        _, bounds = watches.constants(db, bench.plan.shapes[0], bench.position([]))
        assert bounds == [{"_c0": 10.0}]
        with bench.store.write() as writer:
            for name in ("high", "low"):
                watches.remove(writer, name, "ann", bench.clock())
    bench.begin()
    bench.build()
    with bench.store.read() as db:
        assert watches.constants(db, bench.plan.shapes[0], bench.position([])) == ([], [])


def test_another_text_is_another_watch_and_the_files_decide_which_there_are(make: Make) -> None:
    bench = make(watch("w", 10, "AFTER 1 MATCH"))
    bench.send(*clicks(50))
    bench.look()
    with bench.store.write() as db:
        watches.deploy_files(db, bench.plans(watch("w", 10, "AFTER 1 MATCH")), "ann", 1)
    assert bench.watch("w").state == "ended", "the same text stays ended"
    with bench.store.write() as db:
        watches.deploy_files(db, bench.plans(watch("w", 20, "AFTER 1 MATCH")), "ann", 1)
    bench.begin()
    assert (bench.watch("w").state, bench.watch("w").number) == ("active", 2)
    with bench.store.write() as db:
        watches.deploy_files(db, [], "ann", 1)
    with pytest.raises(NotFound):
        bench.watch("w")


# Killed

POINTS = ["watches.saving:1", "watches.saved:1", "watches.saving:3", "watches.saved:4"]
SENT = tuple(Click("/a", f"u{n}", n, n % 100, n % 2) for n in range(60))


def work(path: Path) -> None:
    """Go on where the store ends: one epoch a few clicks, one look after each."""
    bench = WatchBench(path, said=watch("all", 9, ENDLESS) + watch("five", 9, "AFTER 5 MATCHES"))
    if not bench.store.stream("clicks").generation:
        bench.build()
    done = sum(bench.store.stream("clicks").position.offsets)
    bench.clicks = list(SENT[:done])
    bench.look()
    for first in range(done, len(SENT), 6):
        bench.send(*SENT[first : first + 6])
        bench.look()
        if first % 18 == 0:
            bench.begin()
            bench.build()
            bench.look()
    bench.close()


@pytest.mark.process
@pytest.mark.parametrize("point", POINTS)
def test_each_match_is_raised_once_when_the_process_is_killed(point: str, tmp_path: Path) -> None:
    path = tmp_path / "serving.db"
    for failpoint in (point, ""):
        run_module("tests.serving.test_match_raiser", str(path), failpoint=failpoint)
    bench = WatchBench(path, said=watch("all", 9, ENDLESS) + watch("five", 9, "AFTER 5 MATCHES"))
    try:
        assert said(bench, "all") == [click.ms for click in SENT if (click.ms or 0) > 9]
        assert said(bench, "five") == [10, 11, 12, 13, 14]
        kinds = [kind for name, kind, _ in bench.notices() if name == "five"]
        assert kinds == ["raised"] * 5 + ["ended"]
    finally:
        bench.close()


if __name__ == "__main__":
    work(Path(sys.argv[1]))
