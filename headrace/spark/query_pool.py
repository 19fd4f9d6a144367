"""A pool of worker processes for ad-hoc queries, shared fairly between users.

A query waits for its turn, and no user may occupy all processes, so that one user's slow queries do
not block those of others. One process is kept warm. Each is a JVM, so another is started only when
all running ones are busy, and is stopped after an idle time. The queue is bounded, and a refusal
says how many queries run and wait. What Spark computes for a subscription is a query of the user
who subscribed. tests/spark/test_query_pool.py runs queries of several users.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from headrace.core.cancellation import Cancellation
from headrace.core.errors import Overloaded, Unavailable
from headrace.core.fair_queue import FairQueue, FairQueueEntry
from headrace.core.meters import QUERIES, RUNNING, WAITING
from headrace.core.time import SECOND
from headrace.define.settings import QuerySettings, SparkSettings
from headrace.spark.query_client import WORKER, QueryClient, QueryRequest, QueryResult

_POLL_S = 0.1


class QueryPool:
    """Runs ad-hoc queries on Spark. Thread-safe."""

    def __init__(
        self,
        spark: SparkSettings,
        query: QuerySettings,
        work: Path,
        command: Sequence[str] = WORKER,
    ) -> None:
        self._query = query
        self._turns = FairQueue(query.workers, query.workers - 1, query.waiting_max)
        self._clients = [
            QueryClient(spark, query, work / str(number), command)
            for number in range(query.workers)
        ]
        self._idle = list(self._clients)
        self._retiring: dict[QueryClient, threading.Timer] = {}
        self._lock = threading.Lock()
        self._closed = False

    def run(
        self, request: QueryRequest, user: str, stopping: Cancellation | None = None
    ) -> QueryResult:
        """Run the query in the user's turn. `stopping` cancels it from another thread."""
        stopping = stopping or Cancellation()
        with self._turn(user, stopping), self._client() as client:
            return client.run(request, stopping)

    @property
    def processes(self) -> int:
        """The number of running processes."""
        return sum(client.alive for client in self._clients)

    def close(self) -> None:
        """Kill the processes, and with them the running queries; waiting and later queries are
        refused.
        """
        with self._lock:
            self._closed = True
            for timer in self._retiring.values():
                timer.cancel()
            self._retiring.clear()
        for client in self._clients:
            client.end()

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("the project is shutting down")

    # Turns

    @contextmanager
    def _turn(self, user: str, stopping: Cancellation) -> Iterator[None]:
        woken = threading.Event()
        turn = self._turns.enter(user, woken.set)
        try:
            self._count()
            self._wait(turn, woken, stopping)
            yield
        finally:
            self._turns.leave(turn)
            self._count()

    def _wait(self, turn: FairQueueEntry, woken: threading.Event, stopping: Cancellation) -> None:
        seconds = self._query.seconds_max
        deadline = time.monotonic() + seconds
        while not woken.wait(_POLL_S):
            stopping.check()
            self._check_open()
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"the ad-hoc query did not start within {seconds:g} seconds",
                    detail=self._queue(),
                    hint="try again, or raise the setting query.workers.",
                )
        if turn.state == "dropped":
            raise Overloaded(
                f"the ad-hoc query queue is full ({self._query.waiting_max} waiting)",
                detail=self._queue(),
                hint="try again after the time in Retry-After, or raise query.waiting_max.",
            )

    def _queue(self) -> str:
        return f"{self._turns.running} running, {self._turns.waiting} waiting."

    def _count(self) -> None:
        QUERIES.labels(RUNNING).set(self._turns.running)
        QUERIES.labels(WAITING).set(self._turns.waiting)

    # Processes

    @contextmanager
    def _client(self) -> Iterator[QueryClient]:
        """An idle client, preferably one whose process is already running."""
        with self._lock:
            self._check_open()
            client = max(self._idle, key=lambda idle: idle.alive)
            self._idle.remove(client)
            if client in self._retiring:
                self._retiring.pop(client).cancel()
        try:
            yield client
        finally:
            with self._lock:
                self._idle.append(client)
                self._retire_later(client)

    def _retire_later(self, client: QueryClient) -> None:
        if self.processes > 1:
            timer = threading.Timer(self._query.idle_us / SECOND, self._retire, [client])
            timer.daemon = True
            self._retiring[client] = timer
            timer.start()

    def _retire(self, client: QueryClient) -> None:
        with self._lock:
            timer = self._retiring.pop(client, None)
            if timer is threading.current_thread() and self.processes > 1:
                client.close()
