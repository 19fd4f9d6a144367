"""The speed layer of one flow: a Structured Streaming query whose progress is the store's
position.

Spark's checkpoint is scratch: each start makes a new one and begins at the position that the
store holds, so a lost, older or foreign checkpoint cannot matter. Within a run Spark tells the
batch's end by its offset log; the epoch is then known by its position range, and the store skips
what it already has. tests/speed/test_query.py and the kill tests check this.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import structlog
from msgspec.structs import replace
from py4j.protocol import Py4JError
from structlog.contextvars import bound_contextvars

from headrace.compile.flow import FlowPlan, whole
from headrace.core.failpoint import failpoint
from headrace.core.meters import EPOCH_EVENTS, EPOCH_SECONDS
from headrace.core.position import Position, PositionRange
from headrace.core.shedding import Shedding
from headrace.core.spans import span
from headrace.core.time import MILLISECOND, SECOND, Clock, now_us
from headrace.define.definitions import Pace
from headrace.define.pace import paced
from headrace.define.processors import NO_PROCESSORS, ProcessorDefinition
from headrace.define.settings import SpeedSettings
from headrace.serving.store import Epoch, Store, Superseded
from headrace.spark.feed import Feed, typed
from headrace.spark.source import FORMAT, LogSource, end_of
from headrace.speed.carry import Behind
from headrace.speed.epoch import compute_epoch, together
from headrace.speed.memory import Memory

log = structlog.get_logger()
Watched = Callable[[], AbstractContextManager[None]]  # around each epoch


class SpeedQuery:
    """Keeps the views of one flow fresh while it runs."""

    def __init__(
        self,
        spark: Any,
        flow: FlowPlan,
        feeds: tuple[Feed, ...],
        store: Store,
        work: Path,
        settings: SpeedSettings,
        clock: Clock = now_us,
        processors: Mapping[str, ProcessorDefinition] = NO_PROCESSORS,
        watched: Watched = nullcontext,
    ) -> None:
        self.processors, self._watched = processors, watched
        self.spark, self.flow, self.feeds, self.store = spark, flow, feeds, store
        # Joined streams go at the project's pace, because a partner that is shed is missed twice.
        pace = Pace() if flow.joined else flow.streams[0].pace
        self.settings, self.clock = paced(settings, pace), clock
        self.memory: Memory | None = None
        self.checkpoints = work / "checkpoints" / flow.name
        self.checkpoint = self.checkpoints
        self.query: Any = None
        self.stopping = False
        self._numbers = count(1)
        self.between_epochs = threading.Lock()  # held while no epoch may run

    def start(self, *, available_now: bool = False) -> Any:
        """Begin at the store's position; with `available_now`, end at the log's present end."""
        shutil.rmtree(self.checkpoints, ignore_errors=True)
        # What a query that has failed left in memory is not to be relied on.
        self.memory = Memory(self.spark, self.flow, self.feeds) if self.flow.joined else None
        self.checkpoint = self.checkpoints / uuid.uuid4().hex
        self.spark.dataSource.register(LogSource)
        trigger = f"{max(1, self.settings.trigger_us // MILLISECOND)} milliseconds"
        writer = (
            self._frame()
            .writeStream.foreachBatch(self.epoch)
            .option("checkpointLocation", str(self.checkpoint))
            .queryName(f"speed-{self.flow.name}")
        )
        when = {"availableNow": True} if available_now else {"processingTime": trigger}
        self.query = writer.trigger(**when).start()
        return self.query

    def begun(self) -> bool:
        """Whether the query's sources have answered: before that its Python process may be missing
        still.
        """
        said = str(self.query.status["message"])
        return not said.startswith(("Initializing", "Getting offsets"))

    def _frame(self) -> Any:
        position = self.store.stream(self.flow.name).position
        starts = self.flow.positions(position)
        return together([self._stream_frame(n, start) for n, start in enumerate(starts)])

    def _stream_frame(self, number: int, start: Position) -> Any:
        feed = self.feeds[number]
        stream = replace(feed.stream, pace=Pace()) if self.flow.joined else feed.stream
        frame = (
            self.spark.readStream.format(FORMAT)
            .option("log", str(feed.log))
            .option("stream", msgspec.json.encode(stream).decode())
            .option("columns", ",".join(feed.stream.schema.stored.names))
            .option("start", str(start))
            .option("events_max", self.settings.epoch_events_max)
            .option("store", str(self.store.path))
            .option("flow", self.flow.name)
            .option("number", number)
            .load()
        )
        return typed(frame, stream)

    def epoch(self, frame: Any, batch: int) -> None:
        """Commit one micro-batch as an epoch."""
        with self.between_epochs:
            if not self.stopping:
                # A number of this process, for whoever reads the log; the store knows an epoch by
                # its range.
                said: dict[str, Any] = {"stream": self.flow.name, "epoch": next(self._numbers)}
                with bound_contextvars(**said), span("epoch", **said), self._watched():
                    self._epoch(frame, batch)

    def _epoch(self, frame: Any, batch: int) -> None:
        started_at = self.clock()
        failpoint("epoch.started")
        while (epoch := self._computed(frame, batch, started_at)) is not None:
            failpoint("epoch.computed")
            range = epoch.range
            try:
                with span("epoch.commit", events=len(range)):
                    self.store.commit_epoch(epoch)
            except Superseded as superseded:
                log.info("epoch.superseded", why=str(superseded))
                continue
            EPOCH_SECONDS.labels(self.flow.name).observe((self.clock() - started_at) / SECOND)
            EPOCH_EVENTS.labels(self.flow.name).inc(len(range))
            since, upto = str(range.lower), str(range.upper)
            log.debug("epoch.committed", since=since, upto=upto, **epoch.counts)
            return

    def _computed(self, frame: Any, batch: int, started_at: int) -> Epoch | None:
        """The epoch of a micro-batch, from what the store holds now; None if there is none."""
        with span("epoch.read"):
            state = self.store.stream(self.flow.name)
            upper, shedding = self._end_of(batch, state.position)
            versions = self.store.versions(self.flow.name)
        if upper <= state.position:
            if not state.due(started_at):
                return None
            # Time alone has moved: what the batch may hold was committed before.
            upper, frame = state.position, frame.where("false")
        range = PositionRange(state.position, upper)
        most = self.settings.rebase_events_max
        behind = Behind(self.store, state, self._read, most, self.processors)
        return compute_epoch(
            frame, self.flow, versions, range, behind, started_at, self.memory, shedding
        )

    def _read(self, spark: Any, range: PositionRange, highs: tuple[int | None, ...]) -> Any:
        """The events of a range that lies behind, of a flow of one stream. A streaming query has a
        session of its own, and a relation is known only in the session that made it.
        """
        return self.feeds[0].logged_events(spark, range, highs)

    def _end_of(self, batch: int, position: Position) -> tuple[Position, Shedding | None]:
        """The end of a micro-batch and what was decided for it, which Spark has logged before
        running it: one line for each stream, with a dash for one that has not begun.
        """
        lines = (self.checkpoint / "offsets" / str(batch)).read_text("utf-8").splitlines()
        pairs = zip(lines[-len(self.feeds) :], self.flow.positions(position), strict=True)
        ends = [(start, None) if line == "-" else end_of(json.loads(line)) for line, start in pairs]
        return whole(end for end, _ in ends), ends[0][1]

    def stop(self) -> None:
        """Let the epoch in progress finish, then end the query."""
        self.stopping = True
        with self.between_epochs:
            pass  # whatever comes now sees that it is stopping
        # Not under the lock: Spark waits for an epoch that has been called, and that one for us.
        if self.query is not None:
            # A JVM that died first cannot be asked to stop, and need not be.
            with contextlib.suppress(Py4JError, OSError):
                self.query.stop()
