"""One client and its process, which another thread ends at the worst moment. The process is real
and without Spark; tests/spark/test_query_worker.py asks one that has it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.core.cancellation import Cancellation
from headrace.core.errors import Cancelled, Unavailable
from headrace.define.settings import QuerySettings, SparkSettings
from headrace.spark import query_client
from headrace.spark.query_client import QueryClient, QueryRequest

pytestmark = pytest.mark.process

PROGRAM = (sys.executable, "-S", "-E", str(Path(__file__).with_name("stand_in_worker.py")))
QUICK = QueryRequest("answer")


@pytest.fixture
def client(tmp_path: Path) -> Iterator[QueryClient]:
    made = QueryClient(SparkSettings(), QuerySettings(seconds_max=30.0), tmp_path, PROGRAM)
    yield made
    made.close()


class StoppedBeforeTheWrite(Cancellation):
    """Is stopped between the last look at it and the write of the request."""

    def __init__(self) -> None:
        super().__init__()
        self.checks = 0

    def check(self) -> None:
        super().check()
        self.checks += 1
        if self.checks == 2:
            self.stop()


def test_a_query_that_is_stopped_before_it_is_written_is_cancelled(client: QueryClient) -> None:
    with pytest.raises(Cancelled):
        client.run(QUICK, StoppedBeforeTheWrite())
    assert client.run(QUICK).rows


class ClosedAfterALook(QueryClient):
    """Another thread closes it as soon as its worker was looked at once."""

    @property
    def _worker(self) -> Any:
        return self.__dict__.pop("worker", None)

    @_worker.setter
    def _worker(self, worker: Any) -> None:
        self.__dict__["worker"] = worker


def test_a_worker_that_is_closed_meanwhile_was_alive(tmp_path: Path) -> None:
    client = ClosedAfterALook(SparkSettings(), QuerySettings(), tmp_path, PROGRAM)
    client.start()
    worker = client.__dict__["worker"]
    try:
        assert client.alive is True
        assert client.alive is False
    finally:
        worker.kill()


def test_a_client_that_is_ended_while_its_worker_starts_leaves_no_process(
    client: QueryClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, started = query_client._start, list[Any]()

    def slowly(*given: Any) -> Any:
        started.append(start(*given))
        client.end()
        return started[0]

    monkeypatch.setattr(query_client, "_start", slowly)
    for _ in range(2):
        with pytest.raises(Unavailable, match="the project is shutting down"):
            client.run(QUICK)
    (worker,) = started
    assert not worker.alive
