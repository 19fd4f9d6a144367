"""Several users and a few processes: who waits for whom. The processes are real and without Spark;
tests/spark/test_query_worker.py asks those that have it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.core.cancellation import Cancellation
from headrace.core.errors import Cancelled, Overloaded, Unavailable
from headrace.core.meters import REGISTRY
from headrace.core.time import MILLISECOND
from headrace.define.settings import QuerySettings, SparkSettings
from headrace.spark.query_client import QueryRequest, QueryResult
from headrace.spark.query_pool import QueryPool

pytestmark = pytest.mark.process

PROGRAM = (sys.executable, "-S", "-E", str(Path(__file__).with_name("stand_in_worker.py")))
PATIENT = QuerySettings(seconds_max=60.0)
QUICK = QueryRequest("answer")


class Users:
    """Ask a pool, each in a thread of their own; what waits goes on when it is let go."""

    def __init__(self, pool: QueryPool, folder: Path) -> None:
        self.pool, self._folder = pool, folder
        self._threads = ThreadPoolExecutor(20)

    def slow(self, user: str, stopping: Cancellation | None = None, go: str = "go") -> Future[int]:
        request = QueryRequest(f"wait {self._folder / go}")
        return self._threads.submit(self._pid, request, user, stopping)

    def quick(self, user: str) -> Future[int]:
        return self._threads.submit(self._pid, QUICK, user)

    def _pid(self, request: QueryRequest, user: str, stopping: Cancellation | None = None) -> int:
        result: QueryResult = self.pool.run(request, user, stopping)
        return int(result.rows[0][0])

    def go(self, name: str = "go") -> None:
        (self._folder / name).touch()

    def queue(self) -> tuple[float | None, float | None]:
        """How many run and wait, as /metrics says it."""
        return tuple(  # type: ignore[return-value]
            REGISTRY.get_sample_value("headrace_queries", {"state": state})
            for state in ("running", "waiting")
        )

    def close(self) -> None:
        self.go()
        self.pool.close()
        self._threads.shutdown()


Make = Callable[[QuerySettings], Users]


@pytest.fixture
def users(tmp_path: Path) -> Iterator[Make]:
    made = list[Users]()

    def make(query: QuerySettings = PATIENT) -> Users:
        pool = QueryPool(SparkSettings(), query, tmp_path / "work", PROGRAM)
        made.append(Users(pool, tmp_path))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_a_slow_query_of_one_user_keeps_no_other_user_waiting(users: Make) -> None:
    asks = users(PATIENT)
    slow = [asks.slow("ada") for _ in range(3)]
    assert asks.quick("bob").result(30) != 0
    until(lambda: asks.queue() == (1, 2))
    asks.go()
    assert len({future.result(30) for future in slow}) <= 2


def test_the_second_process_is_started_when_the_first_is_busy(users: Make) -> None:
    asks = users(PATIENT)
    first = asks.quick("ada").result(30)
    assert asks.quick("bob").result(30) == first
    assert asks.pool.processes == 1
    slow = asks.slow("ada")
    assert asks.quick("bob").result(30) != first
    assert asks.pool.processes == 2
    asks.go()
    assert slow.result(30) == first


def test_a_process_that_no_query_needs_ends_and_one_stays(users: Make) -> None:
    asks = users(replace(PATIENT, idle_us=200 * MILLISECOND))
    slow = asks.slow("ada")
    asks.quick("bob").result(30)
    asks.go()
    slow.result(30)
    until(lambda: asks.pool.processes == 1)
    time.sleep(0.5)  # longer than the time after which another would have ended
    assert asks.pool.processes == 1
    assert asks.quick("bob").result(30) != 0


def test_what_waits_is_bounded_and_the_refusal_says_how_many(users: Make) -> None:
    asks = users(replace(PATIENT, waiting_max=2))
    running = [asks.slow("ada"), asks.slow("bob")]
    until(lambda: asks.queue() == (2, 0))
    waiting = [asks.quick("ada") for _ in range(2)]
    until(lambda: asks.queue() == (2, 2))
    with pytest.raises(Overloaded) as refused:
        asks.quick("ada").result(30)
    assert refused.value.message == "the ad-hoc query queue is full (2 waiting)"
    assert refused.value.detail == "2 running, 2 waiting."
    other = asks.quick("cid")
    until(lambda: sum(one.done() for one in waiting) == 1)
    asks.go()
    assert other.result(30), "who asks least is not the one who is refused"
    assert all(one.result(30) for one in running)
    refusals = [one.exception(30) for one in waiting]
    assert [type(one) for one in refusals if one] == [Overloaded]


def test_waiting_for_a_turn_ends_in_time(users: Make) -> None:
    asks = users(QuerySettings(seconds_max=0.2))
    asks.pool._turns.enter("eve", lambda: None)  # and never leaves
    with pytest.raises(Unavailable) as refused:
        asks.quick("eve").result(30)
    assert refused.value.message == "the ad-hoc query did not start within 0.2 seconds"
    assert refused.value.detail == "1 running, 1 waiting."


def test_whoever_waits_can_be_stopped_and_whoever_runs_too(users: Make) -> None:
    asks = users()
    running, waiting = Cancellation(), Cancellation()
    first = asks.slow("ada", running)
    until(lambda: asks.queue() == (1, 0))
    second = asks.slow("ada", waiting)
    until(lambda: asks.queue() == (1, 1))
    waiting.stop()
    with pytest.raises(Cancelled):
        second.result(30)
    running.stop()
    with pytest.raises(Cancelled):
        first.result(30)
    assert asks.quick("ada").result(30)
    assert asks.queue() == (0, 0)


def test_the_end_refuses_whoever_waits_and_starts_no_process_for_them(users: Make) -> None:
    asks = users()
    running = asks.slow("ada")
    until(lambda: asks.queue() == (1, 0))
    waiting = asks.quick("ada")
    until(lambda: asks.queue() == (1, 1))
    asks.pool.close()
    for future in (running, waiting, asks.quick("cid")):
        with pytest.raises(Unavailable) as refused:
            future.result(10)
        assert refused.value.message == "the project is shutting down"
    assert asks.pool.processes == 0


def until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)
