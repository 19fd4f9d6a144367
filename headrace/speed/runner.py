"""The speed layer of one flow: epoch after epoch, each a plain Spark job over a range of the log.

The position in the store is the only checkpoint. An epoch begins there, and its partials and new
position are committed in one transaction; an epoch that was not committed is computed again. Spark
keeps no state between two epochs. An epoch starts when events arrive, but not sooner than
`speed.trigger` after the start of the one before. tests/speed/test_runner.py and the kill tests
check this, tests/speed/test_first_turns.py the start.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import count
from typing import Any

import structlog
from structlog.contextvars import bound_contextvars

from headrace.compile.flow import FlowPlan, whole
from headrace.core.failpoint import failpoint
from headrace.core.meters import EPOCH_EVENTS, EPOCH_SECONDS
from headrace.core.position import Position, PositionRange
from headrace.core.problems import Problem, ProblemKey
from headrace.core.report import Report
from headrace.core.spans import span
from headrace.core.time import SECOND, Clock, now_us
from headrace.core.worker import Worker
from headrace.define.definitions import PaceDefinition
from headrace.define.pace import with_pace
from headrace.define.processors import NO_PROCESSORS, ProcessorDefinition
from headrace.define.settings import SpeedSettings
from headrace.serving.store import Epoch, Store, StreamState, Superseded
from headrace.spark.broadcast_tables import BroadcastTables
from headrace.spark.feed import Feed
from headrace.speed.carry import EpochContext
from headrace.speed.epoch import compute_epoch
from headrace.speed.join_history import JoinHistory
from headrace.speed.next_epoch import FIRST_EVENTS, NextEpoch, limit_after, next_epoch
from headrace.speed.records import LoggedRecords

log = structlog.get_logger()
EpochGuard = Callable[[], AbstractContextManager[None]]  # around each epoch
POLL_S = 0.02  # between two reads of the log's end
PHASES_KEPT = 100  # epochs
FIRST_TURNS_MAX = 4
# All flows of a process share one Spark: if all started at once, each would wait for all others.
_first_turns = threading.BoundedSemaphore(FIRST_TURNS_MAX)

Phases = dict[str, int]  # milliseconds by name


class EpochRunner:
    """Keeps the views of one flow fresh while it runs."""

    def __init__(
        self,
        spark: Any,
        flow: FlowPlan,
        feeds: tuple[Feed, ...],
        store: Store,
        settings: SpeedSettings,
        clock: Clock = now_us,
        processors: Mapping[str, ProcessorDefinition] = NO_PROCESSORS,
        guard: EpochGuard = nullcontext,
        report: Report = lambda kind, fields: None,
        *,
        vectorised: bool = True,
    ) -> None:
        self.spark, self.flow, self.feeds, self.store = spark, flow, feeds, store
        self.processors, self._guard, self.clock = processors, guard, clock
        # A joined flow uses the project's settings: shedding one side would lose matches twice.
        self.pace = PaceDefinition() if flow.joined else flow.streams[0].pace
        self.settings = with_pace(settings, self.pace)
        self.history, self.tables = self._new_history(), BroadcastTables(spark)
        self._vectorised = vectorised
        self.between_epochs = threading.Lock()  # held while no epoch may run
        self.phases: deque[tuple[PositionRange, Phases]] = deque(maxlen=PHASES_KEPT)
        self.warm = False  # whether the views have been run
        self._first = True  # whether no turn was tried before
        self._limit = min(FIRST_EVENTS, self.settings.epoch_events_max)
        self._numbers = count(1)
        self._taken: Position | None = None  # where the newest epoch ended
        self._due_at = 0  # when the store is read again although the log has not grown
        self._stop, self._started = threading.Event(), False
        name, key = f"speed of stream '{flow.name}'", ProblemKey("flow", flow.name, "speed")
        self._worker = Worker(name, self._turn, self._stop, report, key=key)

    # The thread

    def start(self) -> None:
        self._started = True
        self._worker.start()

    def stop(self) -> None:
        """Finish the epoch in progress, and start no other."""
        self._stop.set()
        self._worker.join()

    @property
    def running(self) -> bool:
        """Whether it was started and not stopped."""
        return self._started and not self._stop.is_set()

    @property
    def stopping(self) -> bool:
        return self._stop.is_set()

    @property
    def problem(self) -> Problem | None:
        return self._worker.problem

    def _turn(self) -> float:
        """Run one epoch, if there is work; returns the pause after it in seconds. Few flows run
        their first at the same time; a stop does not wait for them.
        """
        if self.warm:
            return self._paced_step()
        while not _first_turns.acquire(timeout=POLL_S):
            if self._stop.is_set():
                return POLL_S
        try:
            self._warm()
            return self._paced_step()
        finally:
            _first_turns.release()

    def _paced_step(self) -> float:
        began = time.monotonic()
        if not self.step():
            return POLL_S
        return max(0.0, self.settings.trigger_us / SECOND - (time.monotonic() - began))

    def _warm(self) -> None:
        """Commit the first epoch; if no event waits, or after a failure, run the views over none:
        so Spark is warm, and events that cannot be computed do not keep a project from its start.
        """
        first, self._first = self._first, False
        if not (first and self.step()):
            with self.between_epochs, self._guard():
                state = self.store.stream(self.flow.name)
                nothing = PositionRange(state.position, state.position)
                self._compute(state, NextEpoch(nothing), self.clock())
        self.warm = True

    # Epochs

    def step(self) -> bool:
        """Commit the next epoch; False if there is nothing to do."""
        if not self._has_work():
            return False
        with self.between_epochs:
            if self._stop.is_set():
                return False
            # The number is for log lines only; the store identifies an epoch by its range.
            fields: dict[str, Any] = {"stream": self.flow.name, "epoch": next(self._numbers)}
            with bound_contextvars(**fields), span("epoch", **fields), self._guard():
                return self._epoch()

    def _has_work(self) -> bool:
        """Whether the log has grown, or it is time to check for idle partitions. It runs fifty
        times a second, so it does not read the store.
        """
        return self._end() != self._taken or self.clock() >= self._due_at

    def _end(self) -> Position:
        return whole(feed.end() for feed in self.feeds)

    def _epoch(self) -> bool:
        started_at = self.clock()
        failpoint("epoch.started")
        while True:
            phases: Phases = {}
            with _phase("read", phases):
                state = self.store.stream(self.flow.name)
                wanted = self._next(state, started_at)
            if wanted is None:
                return False
            with _phase("compute", phases):
                epoch = self._compute(state, wanted, started_at)
            failpoint("epoch.computed")
            try:
                with _phase("commit", phases):
                    self.store.commit_epoch(epoch)
            except Superseded as superseded:
                log.info("epoch.superseded", why=str(superseded))
                continue
            self._record(epoch, phases)
            return True

    def _next(self, state: StreamState, now_us: int) -> NextEpoch | None:
        events_max, end = self.settings.epoch_events_max, self._end()
        wanted = next_epoch(state, end, self.pace, events_max, self._limit, now_us)
        self._taken = wanted.range.upper if wanted else state.position
        self._due_at = now_us + self.settings.trigger_us
        return wanted

    def _compute(self, state: StreamState, wanted: NextEpoch, started_at: int) -> Epoch:
        versions, most = self.store.versions(self.flow.name), self.settings.rebase_events_max
        context = EpochContext(
            self.store, state, self.feeds[0].logged_events, most, self.processors
        )
        highs, shedding = state.reached.highs, wanted.shedding
        records = LoggedRecords(self.tables, self.flow, self.feeds, wanted.range, highs, shedding)
        try:
            return compute_epoch(
                records, self.flow, versions, wanted.range, context, started_at, self.history,
                shedding, vectorised=self._vectorised,
            )  # fmt: skip
        except BaseException:
            # A failed epoch may have left the cached history incomplete.
            self.history = self._new_history()
            self._taken = None
            raise

    def _new_history(self) -> JoinHistory | None:
        return JoinHistory(self.spark, self.flow, self.feeds) if self.flow.joined else None

    def _record(self, epoch: Epoch, phases: Phases) -> None:
        range, name = epoch.range, self.flow.name
        self._limit = limit_after(len(range), self._limit, self.settings.epoch_events_max)
        self.phases.append((range, phases))
        EPOCH_SECONDS.labels(name).observe((self.clock() - epoch.started_at) / SECOND)
        EPOCH_EVENTS.labels(name).inc(len(range))
        since, upto = str(range.lower), str(range.upper)
        log.debug("epoch.committed", since=since, upto=upto, **epoch.counts)


@contextmanager
def _phase(name: str, phases: Phases) -> Iterator[None]:
    """Measure a part of an epoch."""
    began = time.perf_counter()
    with span(f"epoch.{name}"):
        yield
    phases[name] = round(1000 * (time.perf_counter() - began))
