"""Streams start a few at a time, and one that fails waits without the others."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from headrace.core.paths import hide_paths
from headrace.core.time import SECOND
from headrace.run.starts import RETRY_MAX_US, Starter, Starts, sentence


def test_no_more_than_so_many_are_inside() -> None:
    starts = Starts(2)
    assert [starts.enter(name) for name in ("a", "b", "c")] == [True, True, False]
    starts.leave("a")
    starts.leave("a")
    assert starts.enter("c")


class Speed:
    """A query that begins, runs and fails as it is told."""

    def __init__(self) -> None:
        self.query: Any = None
        self.starts, self.is_begun, self.refuses = 0, False, False

    def start(self) -> None:
        self.starts += 1
        if self.refuses:
            raise OSError(28, "No space left on device")
        said = RuntimeError("Python worker failed to connect back.")
        self.query = SimpleNamespace(isActive=True, exception=lambda: said)

    def begun(self) -> bool:
        return self.is_begun

    def fail(self) -> None:
        self.query.isActive = False


class Bench:
    """Queries that share a gate, as far as their starts are concerned."""

    def __init__(self, names: str, most: int = 1) -> None:
        self.now_us, starts = 0, Starts(most)
        self.speeds = {name: Speed() for name in names}
        self.starters = {
            name: Starter(name, speed, starts, lambda: self.now_us)
            for name, speed in self.speeds.items()
        }

    def mend(self) -> None:
        for starter in self.starters.values():
            starter.mend()

    @property
    def started(self) -> dict[str, int]:
        return {name: speed.starts for name, speed in self.speeds.items()}


def test_a_stream_that_is_stopped_while_it_starts_makes_room_for_the_next() -> None:
    bench = Bench("ab")
    bench.mend()
    bench.starters.pop("a").stop()
    bench.mend()
    assert bench.started == {"a": 1, "b": 1}


def test_the_next_stream_starts_when_the_one_before_it_has_begun() -> None:
    bench = Bench("abc")
    for _ in range(3):
        bench.mend()
    assert bench.started == {"a": 1, "b": 0, "c": 0}
    assert not bench.starters["a"].started
    bench.speeds["a"].is_begun = True
    bench.mend()
    assert bench.started == {"a": 1, "b": 1, "c": 0}
    assert bench.starters["a"].started
    bench.speeds["b"].fail()
    bench.mend()
    assert bench.started == {"a": 1, "b": 1, "c": 1}
    assert bench.starters["b"].problem == "Python worker failed to connect back."


def test_streams_that_failed_together_are_not_started_again_together() -> None:
    bench = Bench("abcdefgh", most=8)
    bench.mend()
    for speed in bench.speeds.values():
        speed.fail()
    bench.mend()
    again = set[int]()
    while any(many < 2 for many in bench.started.values()):
        bench.now_us += SECOND // 100
        before = bench.started
        bench.mend()
        again |= {bench.now_us} if bench.started != before else set()
    assert len(again) > 1
    assert bench.now_us <= SECOND
    assert all(starter.problem for starter in bench.starters.values())


def test_a_problem_is_over_when_the_query_has_begun_and_forgotten_when_it_has_lived() -> None:
    bench = Bench("a")
    bench.mend()
    bench.speeds["a"].fail()
    bench.mend()
    starter = bench.starters["a"]
    bench.now_us += SECOND
    bench.mend()
    assert starter.problem
    bench.speeds["a"].is_begun = True
    bench.mend()
    assert (starter.problem, starter.failures) == (None, 1)
    bench.now_us += RETRY_MAX_US + SECOND
    bench.mend()
    assert starter.failures == 0


def test_a_start_that_is_refused_lets_the_next_one_in_and_is_tried_again() -> None:
    bench = Bench("ab")
    bench.speeds["a"].refuses = True
    bench.mend()
    assert bench.started == {"a": 1, "b": 1}
    assert "No space left" in (bench.starters["a"].problem or "")
    bench.speeds["a"].refuses, bench.speeds["b"].is_begun = False, True
    bench.now_us += SECOND
    bench.mend()
    bench.mend()
    assert bench.started == {"a": 2, "b": 1}


def test_the_reason_of_a_failure_names_no_folder_of_the_machine(tmp_path: Path) -> None:
    hide_paths(tmp_path)
    said = sentence(RuntimeError(f"java.io.IOException: {tmp_path}/run is full"))
    assert said == "java.io.IOException: …/run is full"
