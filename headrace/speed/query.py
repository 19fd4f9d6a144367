"""The speed layer of one stream: a Structured Streaming query whose progress is the store's
position.

Spark's checkpoint is scratch: each start makes a new one and begins at the position that the
store holds, so a lost, older or foreign checkpoint cannot matter. Within a run Spark tells the
batch's end by its offset log; the epoch is then known by its position range, and the store skips
what it already has. tests/speed/test_query.py and the kill tests check this.
"""

from __future__ import annotations

import json
import shutil
import threading
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from headrace.compile.plan import StreamPlan
from headrace.core.failpoint import failpoint
from headrace.core.position import Position, PositionRange
from headrace.core.shedding import Shedding
from headrace.core.time import MILLISECOND, Clock, now_us
from headrace.define.pace import paced
from headrace.define.processors import NO_PROCESSORS, ProcessorDefinition
from headrace.define.settings import SpeedSettings
from headrace.serving.store import Store
from headrace.spark.source import FORMAT, LogSource, end_of
from headrace.speed.carry import Behind
from headrace.speed.epoch import compute_epoch


class SpeedQuery:
    """Keeps the views of one stream fresh while it runs."""

    def __init__(
        self,
        spark: Any,
        stream: StreamPlan,
        store: Store,
        log: Path,
        work: Path,
        settings: SpeedSettings,
        clock: Clock = now_us,
        processors: Mapping[str, ProcessorDefinition] = NO_PROCESSORS,
    ) -> None:
        self.processors = processors
        self.spark, self.stream, self.store = spark, stream, store
        self.log, self.settings, self.clock = log, paced(settings, stream.pace), clock
        self.checkpoints = work / "checkpoints" / stream.name
        self.checkpoint = self.checkpoints
        self.query: Any = None
        self.stopping = False
        self._in_epoch = threading.Lock()

    def start(self, *, available_now: bool = False) -> Any:
        """Begin at the store's position; with `available_now`, end at the log's present end."""
        shutil.rmtree(self.checkpoints, ignore_errors=True)
        self.checkpoint = self.checkpoints / uuid.uuid4().hex
        self.spark.dataSource.register(LogSource)
        trigger = f"{max(1, self.settings.trigger_us // MILLISECOND)} milliseconds"
        writer = (
            self._frame()
            .writeStream.foreachBatch(self.epoch)
            .option("checkpointLocation", str(self.checkpoint))
            .queryName(f"speed-{self.stream.name}")
        )
        when = {"availableNow": True} if available_now else {"processingTime": trigger}
        self.query = writer.trigger(**when).start()
        return self.query

    def _frame(self) -> Any:
        return (
            self.spark.readStream.format(FORMAT)
            .options(**self._options(self.store.stream(self.stream.name).position))
            .option("events_max", self.settings.epoch_events_max)
            .option("store", str(self.store.path))
            .load()
        )

    def _read(self, range: PositionRange, highs: tuple[int | None, ...]) -> Any:
        """The frame of a range that lies behind."""
        return (
            self.spark.read.format(FORMAT)
            .options(**self._options(range.lower))
            .option("end", str(range.upper))
            .option("highs", msgspec.json.encode(highs).decode())
            .load()
        )

    def _options(self, start: Position) -> dict[str, str]:
        return {
            "log": str(self.log),
            "stream": msgspec.json.encode(self.stream).decode(),
            "columns": ",".join(self.stream.schema.names),
            "start": str(start),
        }

    def epoch(self, frame: Any, batch: int) -> None:
        """Commit one micro-batch as an epoch."""
        with self._in_epoch:
            if not self.stopping:
                self._epoch(frame, batch)

    def _epoch(self, frame: Any, batch: int) -> None:
        started_at = self.clock()
        failpoint("epoch.started")
        state = self.store.stream(self.stream.name)
        upper, shedding = self._end_of(batch)
        if upper <= state.position:
            return
        range = PositionRange(state.position, upper)
        versions = self.store.versions(self.stream.name)
        behind = Behind(
            self.store, state, self._read, self.settings.rebase_events_max, self.processors
        )
        epoch = compute_epoch(frame, self.stream, versions, range, behind, started_at, shedding)
        failpoint("epoch.computed")
        self.store.commit_epoch(epoch)

    def _end_of(self, batch: int) -> tuple[Position, Shedding | None]:
        """The end of a micro-batch and what was decided for it, which Spark has logged before
        running it."""
        lines = (self.checkpoint / "offsets" / str(batch)).read_text("utf-8").splitlines()
        return end_of(json.loads(lines[-1]))

    def stop(self) -> None:
        """Let the epoch in progress finish, then end the query."""
        self.stopping = True
        with self._in_epoch:
            if self.query is not None:
                self.query.stop()
