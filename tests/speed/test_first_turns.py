"""The first turn of speed commits what waits, or runs the views over no events; without Spark here.
A few flows have theirs at a time, under the watchdog, and again until it succeeds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from serving.bench import plan_of

from headrace.compile.flow import flows_of
from headrace.core import worker
from headrace.core.position import Position
from headrace.define.settings import SpeedSettings
from headrace.speed import runner as module
from headrace.speed.runner import FIRST_TURNS_MAX, EpochRunner
from tests.run.waiting import wait

STATE = SimpleNamespace(position=Position((0, 0)))


class Starting(EpochRunner):
    """Speed of a stream without events; `compute` stands for Spark."""

    def __init__(self, compute: Callable[[], object]) -> None:
        (flow,), store, self.computing = flows_of(plan_of()), SimpleNamespace(), compute
        store.stream = lambda name: STATE
        self.watched, self.waits = False, 0
        super().__init__(None, flow, (), store, SpeedSettings(), guard=self._watch)  # type: ignore[arg-type]

    @contextmanager
    def _watch(self) -> Iterator[None]:
        self.watched = True
        try:
            yield
        finally:
            self.watched = False

    def _compute(self, *_: object) -> Any:
        assert self.watched
        return self.computing()

    def step(self) -> bool:
        self.waits -= 1
        return self.waits >= 0


def test_speed_whose_first_turn_fails_is_not_warm_until_one_succeeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "RETRY_MIN_S", 0.001)
    fails, tries = threading.Event(), list[bool]()
    fails.set()

    def compute() -> None:
        tries.append(True)
        if fails.is_set():
            raise ValueError("no such function")

    runner = Starting(compute)
    runner.start()
    wait(lambda: len(tries) > 2, 10)
    assert not runner.warm
    for _ in range(FIRST_TURNS_MAX):
        module._first_turns.acquire()
    time.sleep(0.1)
    assert runner.problem is not None, "also while it waits for other flows"
    for _ in range(FIRST_TURNS_MAX):
        module._first_turns.release()
    fails.clear()
    wait(lambda: runner.warm and runner.problem is None, 10)
    runner.stop()


def test_the_first_turn_of_speed_runs_the_views_over_no_events_only_if_none_waits() -> None:
    for waits, empty in ((1, []), (0, [True])):
        ran = list[bool]()
        runner = Starting(lambda ran=ran: ran.append(True))  # type: ignore[misc]
        runner.waits = waits
        runner.start()
        wait(lambda runner=runner: runner.warm, 10)  # type: ignore[misc]
        runner.stop()
        assert ran == empty


def test_speed_whose_first_epoch_fails_is_warm_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "RETRY_MIN_S", 0.001)

    def fail() -> bool:
        raise ValueError("an event that no view takes")

    runner = Starting(lambda: None)
    runner.step = fail  # type: ignore[method-assign]
    runner.start()
    wait(lambda: runner.warm, 10)
    assert runner.problem is not None
    runner.stop()


def test_a_few_flows_have_their_first_turn_at_a_time_and_a_stop_waits_for_no_others() -> None:
    inside, most, go, lock = list[int](), list[int](), threading.Event(), threading.Lock()

    def compute() -> None:
        with lock:
            inside.append(1)
            most.append(len(inside))
        go.wait(10)
        with lock:
            inside.pop()

    runners = [Starting(compute) for _ in range(2 * FIRST_TURNS_MAX + 1)]
    for runner in runners:
        runner.start()
    wait(lambda: len(inside) == FIRST_TURNS_MAX, 10)
    waiting = next(runner for runner in runners if not runner.watched)
    waiting.stop()
    assert not waiting.warm
    go.set()
    wait(lambda: sum(runner.warm for runner in runners) == len(runners) - 1, 10)
    assert max(most) == FIRST_TURNS_MAX
    for runner in runners:
        runner.stop()
