"""The laws of a log (headrace/log/protocol.py), on every implementation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from headrace.core.address import LogAddress
from headrace.core.errors import NotFound
from headrace.core.event import EventStatus
from headrace.core.position import Interval, Position
from headrace.core.time import HOUR, MINUTE, SECOND
from headrace.log.opening import open_reader, open_writer
from headrace.log.protocol import LogReader, LogWriter

PARTITIONS = 2


@dataclass
class Clock:
    now_us: int = HOUR

    def __call__(self) -> int:
        return self.now_us


@dataclass
class Bench:
    """One log, its writer and a clock that the test sets."""

    address: LogAddress
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.writer = self.opened()

    def opened(self) -> LogWriter:
        return open_writer(self.address, PARTITIONS, segment_bytes_max=256, clock=self.clock)

    @property
    def reader(self) -> LogReader:
        return open_reader(self.address)

    def append(self, partition: int, *records: bytes) -> Interval:
        return self.writer.append(partition, records, bytes(len(records))).result(30)

    def records(self, partition: int, interval: Interval) -> list[bytes]:
        blocks = self.reader.blocks(partition, interval)
        return [record for block in blocks for record in block.records()]


def embedded(folder: Path) -> LogAddress:
    return LogAddress.of_files(folder / "log")


@pytest.fixture(params=[embedded])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    make: Callable[[Path], LogAddress] = request.param
    made = Bench(make(tmp_path))
    yield made
    made.writer.close()


def test_offsets_begin_at_zero_and_have_no_gaps(bench: Bench) -> None:
    assert bench.writer.end() == bench.reader.end() == Position((0, 0))
    assert [bench.append(1, b"a"), bench.append(1, b"b", b"c")] == [Interval(0, 1), Interval(1, 3)]
    assert bench.append(0, b"d") == Interval(0, 1)
    assert bench.writer.end() == bench.reader.end() == Position((1, 3))


def test_what_is_acknowledged_is_read_exactly(bench: Bench) -> None:
    records = [b'{"n": %d}' % n for n in range(100)]
    for n in range(0, 100, 7):
        bench.append(0, *records[n : n + 7])
    for lower, upper in ((0, 100), (0, 1), (13, 57), (99, 100), (50, 50)):
        assert bench.records(0, Interval(lower, upper)) == records[lower:upper]


def test_status_and_arrival_are_kept(bench: Bench) -> None:
    statuses = [EventStatus.EVENT, EventStatus.DUPLICATE, EventStatus.DEAD_LETTER]
    bench.writer.append(0, [b"a", b"b\nc", b""], statuses).result(30)
    [block] = bench.reader.blocks(0, Interval(0, 3))
    assert (block.records(), list(block.statuses)) == ([b"a", b"b\nc", b""], statuses)
    assert block.arrived_at_us == HOUR


def test_a_writer_that_is_opened_again_continues(bench: Bench) -> None:
    bench.append(0, b"a", b"b")
    bench.writer.close()
    bench.writer = bench.opened()
    assert bench.append(0, b"c") == Interval(2, 3)
    assert bench.records(0, Interval(0, 3)) == [b"a", b"b", b"c"]


def test_a_time_finds_the_first_record_that_arrived_since(bench: Bench) -> None:
    for record in (b"a", b"b", b"c"):
        bench.append(0, record)
        bench.clock.now_us += MINUTE
    found = {at: bench.reader.position_at(HOUR + at).offsets[0] for at in (0, 1, MINUTE, HOUR)}
    assert found == {0: 0, 1: 1, MINUTE: 1, HOUR: 3}


def test_what_is_not_there_yet_is_not_found(bench: Bench) -> None:
    bench.append(0, b"a")
    with pytest.raises(NotFound, match="not yet"):
        list(bench.reader.blocks(0, Interval(0, 2)))


def test_retention_removes_at_the_beginning_and_only_what_is_archived(bench: Bench) -> None:
    for n in range(20):
        bench.append(0, b"%0100d" % n)
    bench.clock.now_us += HOUR
    bench.append(0, b"new")
    assert bench.writer.retain(Position((0, 0)), SECOND) == 0
    assert bench.writer.retain(Position((21, 0)), 2 * HOUR) == 0
    assert bench.writer.retain(Position((10, 0)), SECOND) > 0
    start = bench.reader.start()
    assert start == bench.writer.start()
    assert 0 < start.offsets[0] <= 10
    kept = Interval(start.offsets[0], 21)
    assert len(bench.records(0, kept)) == len(kept)
    with pytest.raises(NotFound, match="no longer"):
        list(bench.reader.blocks(0, Interval(0, 21)))


def test_the_parts_of_a_partition_hold_all_that_it_holds(bench: Bench) -> None:
    for n in range(20):
        bench.append(0, b"%0100d" % n)
    parts = bench.reader.parts(0)
    assert [part.interval.lower for part in parts[1:]] == [p.interval.upper for p in parts[:-1]]
    assert (parts[0].interval.lower, parts[-1].interval.upper) == (0, 20)
    assert sum(part.bytes for part in parts) > 2_000
