"""The periodic work, with a clock that stands still until it is told: what is due is done, what
fails is said and tried again, and nothing stops the rest.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import structlog

from headrace.batch.build import BuildResult
from headrace.core import worker
from headrace.core.errors import DiskFull, Fenced, HeadraceError, NotFound
from headrace.core.position import Position
from headrace.core.time import SECOND
from headrace.core.watchdog import Watchdog
from headrace.define.settings import ArchiveSettings, BatchSettings, Settings
from headrace.run import schedule as module
from headrace.run.schedule import SPEED_FIRST_US, TIDY_US, Schedule
from headrace.serving.store import AuditResult

SETTINGS = Settings(
    "tests",
    archive=ArchiveSettings(interval_us=5 * SECOND),
    batch=BatchSettings(interval_us=30 * SECOND),
)


@dataclass
class Told:
    """A pipeline that notes what it is asked, and fails where it is told to."""

    name: str
    asked: list[str] = field(default_factory=list)
    fails: dict[str, Exception] = field(default_factory=dict)
    generation: int = 0
    news: bool = True
    log: Position = Position((7,))
    speed: Position = Position((7,))

    def _do(self, what: str) -> None:
        self.asked.append(what)
        if what in self.fails:
            raise self.fails[what]

    def archive(self) -> int:
        self._do("archive")
        return 0

    def tidy(self, topics: Any) -> None:
        self._do(f"tidy {topics['a']}")

    def end(self) -> Position:
        return self.log

    def has_committed(self, end: Position) -> bool:
        return end <= self.speed

    def build(self) -> BuildResult | None:
        return self._promoted("build")

    def rebuild(self, view: str) -> BuildResult | None:
        return self._promoted(f"rebuild {view}")

    def _promoted(self, what: str) -> BuildResult | None:
        self._do(what)
        if not self.news:
            return None
        self.generation += 1
        audits = (AuditResult("pages", 3, 1),)
        return BuildResult(self.name, self.generation, Position((7,)), 7, audits)

    def times(self, what: str) -> int:
        return self.asked.count(what)


class Counting(Schedule):
    """A schedule that counts its turns."""

    turns = 0

    def _turn(self) -> float:
        try:
            return super()._turn()
        finally:
            self.turns += 1


class Bench:
    """A schedule of two streams; `pass_s` moves the clock and waits until a turn has seen it."""

    def __init__(self) -> None:
        self.now_us, self.reports = 0, list[tuple[str, dict[str, Any]]]()
        self.streams = {"a": Told("a"), "b": Told("b")}
        self.schedule = Counting(
            self.streams,  # type: ignore[arg-type]
            {"a": "log a", "b": "log b"},  # type: ignore[dict-item]
            SETTINGS,
            lambda kind, fields: self.reports.append((kind, fields)),
            lambda: self.now_us,
        )

    def start(self) -> None:
        self.schedule.start()
        self.pass_s(0)

    def pass_s(self, seconds: float) -> None:
        self.now_us += int(seconds * SECOND)
        # The turn in progress may have read the old time, so the one after it must end too.
        turns = self.schedule.turns + 2
        until(lambda: self.schedule.turns >= turns)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.001)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(module, "TICK_S", 0.001)
    made = Bench()
    yield made
    made.schedule.stop()


def test_each_kind_of_work_is_done_when_it_is_due(bench: Bench) -> None:
    bench.start()
    a = bench.streams["a"]
    assert (a.times("archive"), a.times("build"), a.times("tidy log a")) == (1, 0, 0)
    bench.pass_s(4.9)
    assert a.times("archive") == 1
    bench.pass_s(0.1)
    assert a.times("archive") == 2
    bench.pass_s(25)
    assert a.times("build") == bench.streams["b"].times("build") == 1
    bench.pass_s(TIDY_US / SECOND - 30)
    assert (a.times("tidy log a"), a.times("build")) == (1, 2)


def test_the_first_steps_wait_until_speed_has_committed_what_the_start_found(bench: Bench) -> None:
    a, b = bench.streams["a"], bench.streams["b"]
    b.log = Position((9,))
    bench.start()
    bench.pass_s(6)
    assert (a.asked, b.asked) == ([], []), "speed of b is to commit two events"
    b.log, b.speed = Position((20,)), Position((9,))
    bench.pass_s(0)
    assert (a.asked, b.asked) == (["archive"], ["archive"]), "later events are not waited for"


def test_the_first_steps_do_not_wait_for_speed_forever(bench: Bench) -> None:
    bench.streams["a"].speed = Position((0,))
    bench.start()
    bench.pass_s(SPEED_FIRST_US / SECOND - 1)
    assert bench.streams["b"].asked == []
    bench.pass_s(1)
    assert bench.streams["b"].asked[:1] == ["archive"]


def test_no_step_is_done_while_they_are_paused(bench: Bench) -> None:
    bench.start()
    b = bench.streams["b"]
    with bench.schedule.paused():
        archived = b.times("archive")
        bench.pass_s(5)
        assert b.times("archive") == archived
    bench.pass_s(0)
    assert b.times("archive") == archived + 1


class Tidied:
    """A ledger that cannot be tidied as long as it is told so."""

    def __init__(self) -> None:
        self.times, self.fails = 0, True

    def remove_old(self) -> int:
        self.times += 1
        if self.fails:
            raise DiskFull("the disk is full")
        return 0


def said(bench: Bench) -> dict[tuple[str, str, str], str]:
    return {one.key: one.message for one in bench.schedule.problems}


def test_the_ledger_is_tidied_and_says_if_it_cannot_be(bench: Bench) -> None:
    ledger = Tidied()
    bench.schedule.retention = ledger  # type: ignore[assignment]
    bench.start()
    bench.pass_s(TIDY_US / SECOND)
    said = [one.message for one in bench.schedule.problems]
    assert (ledger.times, said) == (1, ["removing old alerts failed: the disk is full"])
    ledger.fails = False
    bench.pass_s(TIDY_US / SECOND)
    assert (ledger.times, bench.schedule.problems) == (2, [])


class Reloaded:
    """Tables of which one cannot be read."""

    def __init__(self) -> None:
        self.tables, self.asked, self.fails = {"bad": None, "good": None}, list[str](), True

    def reload(self, name: str) -> str | None:
        self.asked.append(name)
        if name == "bad" and self.fails:
            raise NotFound("there is no file bad.csv")
        return "v2"


def test_a_table_that_cannot_be_reloaded_is_its_own_problem_until_it_can(bench: Bench) -> None:
    tables = Reloaded()
    bench.schedule.tables = tables  # type: ignore[assignment]
    bench.start()
    for _ in range(2):
        bench.pass_s(SETTINGS.tables.interval_us / SECOND)
        problem = "table 'bad' was not reloaded: there is no file bad.csv"
        assert said(bench) == {("table", "bad", "reload"): problem}
    assert tables.asked == ["bad", "good"] * 2, "one keeps no other from being reloaded"
    assert ("table", {"table": "good", "version": "v2"}) in bench.reports
    tables.fails = False
    bench.pass_s(SETTINGS.tables.interval_us / SECOND)
    assert bench.schedule.problems == []


def test_the_reload_of_a_table_is_watched(bench: Bench) -> None:
    watchdog, suspects = Watchdog(), list[str]()
    tables: Any = SimpleNamespace(tables={"sections": None})
    tables.reload = lambda name: suspects.extend(watchdog.suspects)
    bench.schedule.tables, bench.schedule._watchdog = tables, watchdog
    bench.start()
    bench.pass_s(SETTINGS.tables.interval_us / SECOND)
    assert suspects == ["the reload of table 'sections'"]


def test_what_is_not_deployed_any_more_has_no_problems(bench: Bench) -> None:
    tables: Any = Reloaded()
    bench.schedule.tables = tables
    bench.streams["a"].fails["archive"] = bench.streams["b"].fails["archive"] = DiskFull("full")
    bench.start()
    bench.pass_s(SETTINGS.tables.interval_us / SECOND)
    assert {key[:2] for key in said(bench)} == {("flow", "a"), ("flow", "b"), ("table", "bad")}
    left: Any = SimpleNamespace(tables={})
    with bench.schedule.paused():
        bench.schedule.replace({"b": bench.streams["b"]}, left)  # type: ignore[dict-item]
        assert list(said(bench)) == [("flow", "b", "archive")]


def test_a_build_archives_first(bench: Bench) -> None:
    bench.start()
    bench.pass_s(30)
    assert bench.streams["a"].asked[-2:] == ["archive", "build"]


def test_a_generation_is_counted_and_reported(bench: Bench) -> None:
    bench.start()
    bench.pass_s(30)
    schedule = bench.schedule
    assert (schedule.generations, schedule.events, schedule.differences["pages"]) == (2, 14, 2)
    assert bench.reports[0] == (
        "generation",
        {
            "stream": "a",
            "generation": 1,
            "boundary": [7],
            "events": 7,
            "differences": 1,
            "differing": {"pages": 1},
        },
    )


def test_a_failing_step_is_reported_once_and_the_others_go_on(bench: Bench) -> None:
    bench.streams["a"].fails["archive"] = DiskFull("the disk is full", hint="make room.")
    bench.start()
    bench.pass_s(5)
    bench.pass_s(5)
    sentence = "the archive step of stream 'a' failed: the disk is full"
    assert said(bench) == {("flow", "a", "archive"): sentence}
    assert bench.reports == [("problem", {"message": sentence})]
    assert bench.streams["a"].times("archive") == bench.streams["b"].times("archive") == 3
    bench.streams["a"].fails.clear()
    bench.pass_s(5)
    assert bench.schedule.problems == []


def test_an_error_that_nobody_expected_is_one_line(bench: Bench) -> None:
    bench.streams["b"].fails["archive"] = ValueError("first line\nsecond line")
    bench.start()
    problem = "the archive step of stream 'b' failed: ValueError: first line"
    assert said(bench) == {("flow", "b", "archive"): problem}


def test_a_replaced_process_stops_its_work(bench: Bench) -> None:
    bench.streams["a"].fails["archive"] = Fenced("another process has taken over this project")
    bench.schedule.start()
    bench.schedule._worker.join(10)
    assert not bench.schedule._worker.alive
    assert bench.streams["b"].times("archive") == 0
    assert "taken over" in said(bench)["flow", "a", "archive"]


def test_a_wish_for_a_rebuild_is_granted_at_the_next_turn(bench: Bench) -> None:
    bench.start()
    promoted = bench.schedule.rebuild("b", "pages").result(10)
    assert (promoted.stream, promoted.generation) == ("b", 1)
    assert bench.streams["b"].times("rebuild pages") == 1
    assert bench.streams["a"].times("rebuild pages") == 0
    assert bench.schedule.generations == 1


def test_a_rebuild_waits_until_speed_has_taken_all_that_was_acknowledged_before(
    bench: Bench,
) -> None:
    b = bench.streams["b"]
    bench.start()
    b.log = Position((9,))
    request = bench.schedule.rebuild("b", "pages")
    b.log = Position((12,))  # what comes later is not waited for
    bench.pass_s(5)
    assert b.times("rebuild pages") == 0
    assert bench.schedule.rebuild_request("pages") is not None
    assert b.times("archive") == 2  # the other steps go on
    assert bench.schedule.rebuild("a", "pages").result(10).stream == "a"
    b.speed = Position((9,))
    assert request.result(10).stream == "b"
    assert b.times("rebuild pages") == 1


def test_a_rebuild_is_seen_while_it_waits_and_runs_and_not_after_it(bench: Bench) -> None:
    seen = list[tuple[str, int | None]]()

    def look(view: str) -> BuildResult | None:
        found = bench.schedule.rebuild_request(view)
        seen.append((found.stream, found.started_at_us) if found else ("", None))
        return Told.rebuild(bench.streams["b"], view)

    bench.streams["b"].rebuild = look  # type: ignore[method-assign]
    bench.now_us = 5
    request = bench.schedule.rebuild("b", "pages")
    waiting = bench.schedule.rebuild_request("pages")
    assert waiting is not None
    assert (waiting.requested_at_us, waiting.started_at_us) == (5, None)
    assert bench.schedule.rebuild_request("others") is None
    bench.now_us = 7
    bench.start()
    request.result(10)
    assert seen == [("b", 7)]
    assert bench.schedule.rebuild_request("pages") is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda told: told.fails.update({"rebuild pages": DiskFull("full")}), "full"),
        (lambda told: setattr(told, "news", False), "view 'pages' was not built"),
    ],
)
def test_a_wish_that_cannot_be_granted_fails_with_its_reason(
    bench: Bench, change: Callable[[Told], object], said: str
) -> None:
    change(bench.streams["a"])
    bench.start()
    with pytest.raises(HeadraceError) as caught:
        bench.schedule.rebuild("a", "pages").result(10)
    assert caught.value.message == said
    bench.pass_s(5)
    assert bench.streams["a"].times("archive") >= 2


def test_a_wish_that_comes_too_late_does_not_wait_for_ever(bench: Bench) -> None:
    bench.start()
    bench.schedule.stop()
    request = bench.schedule.rebuild("a", "pages")
    with pytest.raises((HeadraceError, RuntimeError)):
        request.result(0.2)


def test_a_log_that_cannot_be_written_does_not_stop_the_work(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        def error(self, *args: Any) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    before = structlog.get_config()
    structlog.configure(logger_factory=lambda *args: Full())
    try:
        bench.streams["a"].fails["archive"] = DiskFull("the disk is full")
        bench.start()
        bench.pass_s(5)
    finally:
        structlog.configure(**before)
    bench.streams["a"].fails.clear()
    bench.pass_s(5)
    assert bench.streams["a"].times("archive") == 3
    assert bench.schedule.problems == []


def test_a_turn_that_dies_is_a_problem_and_the_next_one_goes_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "RETRY_MIN_S", 0.001)
    bench.start()
    bench.streams["a"].fails["archive"] = SystemExit("out of threads")  # type: ignore[assignment]
    bench.now_us += 5 * SECOND
    until(lambda: bool(bench.schedule.problems))
    failed = "schedule failed: SystemExit: out of threads"
    assert said(bench) == {("part", "schedule", "worker"): failed}
    bench.streams["a"].fails.clear()
    bench.pass_s(5)
    assert bench.schedule.problems == []
