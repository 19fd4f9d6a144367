"""A stream, its topic and its intake, made in a folder of the test's own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from headrace.core.origin import Origin
from headrace.core.position import Interval
from headrace.core.schema import Column, Schema, Type
from headrace.define.definitions import StreamDefinition
from headrace.define.settings import DedupSettings, LogSettings, Settings
from headrace.ingest.connector import Connector
from headrace.ingest.intake import Intake
from headrace.ingest.load_ids import History, no_history
from headrace.log.embedded.reader import EmbeddedReader
from headrace.log.embedded.writer import EmbeddedWriter

SCHEMA = Schema(
    (
        Column("user", Type("STRING"), nullable=False),
        Column("ts", Type("TIMESTAMP"), nullable=False),
        Column("ms", Type("BIGINT")),
    )
)


def stream(**changes: Any) -> StreamDefinition:
    """The stream 'clicks' with these changes."""
    return replace(StreamDefinition("clicks", SCHEMA, Origin("shop.sql", 3)), **changes)


def settings(**changes: Any) -> Settings:
    """Settings whose dedup and log sections have these changes; the disk is never full."""
    dedup = {k: v for k, v in changes.items() if k == "ids_max"}
    log = {"free_bytes_min": 0} | {k: v for k, v in changes.items() if k not in dedup}
    return Settings("shop", dedup=DedupSettings(**dedup), log=LogSettings(**log))


@dataclass
class HeldClock:
    now_us: int = 1_700_000_000_000_000

    def __call__(self) -> int:
        return self.now_us


@dataclass
class Bench:
    """One topic in `folder`, which can be closed and opened again as a restart would."""

    folder: Path
    clock: HeldClock = field(default_factory=HeldClock)
    topic: EmbeddedWriter | None = None
    opened: Intake | None = None
    segment_bytes_max: int = 1 << 20
    history: History = no_history

    def intake(
        self, *, partitions: int = 2, changes: dict[str, Any] | None = None, **said: Any
    ) -> Intake:
        self.close()
        self.topic = EmbeddedWriter.open(
            self.folder / "topic",
            partitions,
            segment_bytes_max=self.segment_bytes_max,
            clock=self.clock,
        )
        self.opened = Intake(
            stream(**said),
            self.topic,
            settings=settings(**(changes or {})),
            clock=self.clock,
            history=self.history,
        )
        return self.opened

    def close(self) -> None:
        if self.topic:
            self.topic.close()
        if self.opened:
            self.opened.close()
        self.topic = self.opened = None

    def logged(self) -> list[tuple[int, bytes, int]]:
        """All that the log has, as (partition, record, status), in order within a partition."""
        reader = EmbeddedReader(self.folder / "topic")
        ends = reader.end().offsets
        return [
            (partition, record, int(status))
            for partition, end in enumerate(ends)
            for block in reader.blocks(partition, Interval(0, end))
            for record, status in zip(block.records(), block.statuses, strict=True)
        ]

    def records(self) -> list[bytes]:
        return [record for _, record, _ in self.logged()]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.close()


def ids_in_memory(intake: Intake) -> int:
    """How many ids of its stream an intake holds in memory; none without an id."""
    memory = intake._ids._memory
    return len(memory) if memory is not None else 0


def wait_for(condition: Callable[[], Any], seconds: float = 10.0) -> None:
    """Wait until the condition holds; fail if it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


@contextmanager
def running(connector: Connector) -> Iterator[threading.Event]:
    """The connector at work in a thread; stopped at the end, and what it raised is raised."""
    stop, raised = threading.Event(), list[BaseException]()

    def work() -> None:
        try:
            connector.run(stop)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield stop
    finally:
        stop.set()
        thread.join(20)
    assert not thread.is_alive()
    if raised:
        raise raised[0]
