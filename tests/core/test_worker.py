"""A worker outlives what its turns die of, and says so until one is well again."""

from __future__ import annotations

import math
import threading
from random import Random

import pytest

from headrace.core import worker as module
from headrace.core.errors import Fenced
from headrace.core.worker import Worker, backoff, problems_of
from tests.run.waiting import wait


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_MIN_S", 0.001)
    monkeypatch.setattr(module, "RETRY_MAX_S", 0.001)


class Turns:
    """Turns that fail as long as they are told so."""

    def __init__(self, settled_s: float = math.inf) -> None:
        self.done, self.error, self.now_s = 0, None, 0.0
        self.error: BaseException | None
        self.stop, self.reports = threading.Event(), list[str]()
        self.worker = Worker(
            "schedule",
            self.turn,
            self.stop,
            lambda kind, fields: self.reports.append(str(fields["message"])),
            settled_s=settled_s,
            clock=lambda: self.now_s,
        )

    def turn(self) -> float | None:
        self.done += 1
        if self.error is not None:
            raise self.error
        return 0.001

    def more(self) -> None:
        """Wait for two turns that begin from now on."""
        turns = self.done + 3
        wait(lambda: self.done >= turns)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), SystemExit(1)])
def test_a_turn_that_fails_is_a_problem_and_is_tried_again_until_it_is_well(
    error: BaseException,
) -> None:
    turns = Turns()
    turns.worker.start()
    turns.error = error
    turns.more()
    assert turns.worker.alive
    (problem,) = problems_of([turns.worker])
    assert (problem.about, problem.message[:17]) == ("schedule", "schedule failed: ")
    turns.error = None
    turns.more()
    assert problems_of([turns.worker]) == []
    turns.stop.set()
    turns.worker.join(10)
    assert not turns.worker.alive
    assert len(turns.reports) == 1


def test_a_replaced_process_works_no_more_and_says_why() -> None:
    turns = Turns()
    turns.error = Fenced("another process has taken over this project")
    turns.worker.start()
    turns.worker.join(10)
    assert not turns.worker.alive
    problem = turns.worker.problem
    assert problem is not None
    assert problem.message == "schedule failed: another process has taken over this project"


def test_a_worker_whose_turn_lasts_is_well_when_it_has_run_for_a_while() -> None:
    turns, inside, go = Turns(settled_s=10), threading.Event(), threading.Event()

    def listen() -> None:
        if turns.done == 0:
            turns.done = 1
            raise OSError("the port is in use")
        inside.set()
        go.wait(10)

    turns.worker._turn = listen
    turns.worker.start()
    assert inside.wait(10)
    assert turns.worker.problem is not None
    turns.now_s += 10
    assert turns.worker.problem is None
    go.set()
    turns.worker.join(10)


def test_turns_that_take_long_to_fail_are_a_problem_throughout_and_back_off() -> None:
    turns, problems, failures = Turns(), list[bool](), list[int]()

    def fail_slowly() -> None:
        turns.now_s += 3_600
        problems.append(turns.worker.problem is not None)
        raise TimeoutError("no answer")

    turns.worker._turn = fail_slowly
    for _ in range(4):
        assert turns.worker._tried() is not None
        failures.append(turns.worker._failures)
    assert problems == [False, True, True, True]
    assert failures == [1, 2, 3, 4], "the back-off doubles each time"
    assert len(turns.reports) == 1


def test_workers_that_failed_together_do_not_return_together() -> None:
    pauses = {backoff(3, 1.0, 30.0, Random(seed)) for seed in range(20)}
    assert len(pauses) == 20
    assert all(2.0 <= one <= 4.0 for one in pauses)
    assert backoff(10_000, 1.0, 30.0, Random(1)) <= 30.0
