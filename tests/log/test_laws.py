"""The laws of a log (headrace/log/protocol.py), on every implementation."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from headrace.core.address import LogAddress
from headrace.core.errors import CorruptLog, NotFound
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


@dataclass(frozen=True)
class Implementation:
    """Where a log of its kind is in a folder, and how a byte of a part (`LogPart.place`) is
    damaged.
    """

    address: Callable[[Path], LogAddress]
    damage: Callable[[str, int], None]


def flip_byte_of_file(place: str, at: int) -> None:
    with open(place, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ (1 << (at % 8))]))


EMBEDDED = Implementation(
    lambda folder: LogAddress.of_files(folder / "log"), damage=flip_byte_of_file
)


@pytest.fixture(params=[pytest.param(EMBEDDED, id="embedded")])
def implementation(request: pytest.FixtureRequest) -> Implementation:
    found: Implementation = request.param
    return found


@pytest.fixture
def bench(implementation: Implementation, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(implementation.address(tmp_path))
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


def test_the_end_never_moves_back(bench: Bench) -> None:
    def write() -> None:
        for n in range(100):
            bench.append(n % 2, b"%d" % n)

    writing, ends = threading.Thread(target=write), [Position((0, 0))]
    reader = bench.reader
    writing.start()
    while ends[-1] != Position((50, 50)):
        ends.append(reader.end())
        for partition, (before, now) in enumerate(
            zip(*(e.offsets for e in ends[-2:]), strict=True)
        ):
            assert before <= now
            assert len(bench.records(partition, Interval(0, now))) == now
    writing.join()
    bench.clock.now_us += HOUR
    assert bench.writer.retain(Position((50, 50)), SECOND) >= 0
    bench.writer.close()
    bench.writer = bench.opened()
    assert bench.writer.end() == bench.reader.end() == reader.end() == Position((50, 50))


def test_damage_is_reported_and_never_a_gap(bench: Bench, implementation: Implementation) -> None:
    records = [b"%0100d" % n for n in range(20)]
    for record in records:
        bench.append(0, record)
    bench.writer.close()
    parts = bench.reader.parts(0)
    for number, part in enumerate(parts):
        for at in range(0, part.bytes, 7):
            implementation.damage(part.place, at)
            for other in parts[:number] + parts[number + 1 :]:
                held = other.interval
                assert bench.records(0, held) == records[held.lower : held.upper]
            with pytest.raises(CorruptLog):
                bench.records(0, part.interval)
            with pytest.raises(CorruptLog):
                bench.records(0, Interval(0, 20))
            implementation.damage(part.place, at)
    assert bench.records(0, Interval(0, 20)) == records


@pytest.mark.parametrize("written", [True, False])
def test_an_address_and_a_reader_can_be_sent_to_a_task(bench: Bench, written: bool) -> None:
    bench.append(0, b"a", b"b")
    if not written:
        bench.writer.close()
    address: LogAddress = pickle.loads(pickle.dumps(bench.address))
    assert address == bench.address
    reader: LogReader = pickle.loads(pickle.dumps(open_reader(address, written=written)))
    assert (reader.partitions, reader.start(), reader.end()) == (
        PARTITIONS, Position((0, 0)), Position((2, 0))
    )  # fmt: skip
    [block] = reader.blocks(0, Interval(0, 2))
    assert block.records() == [b"a", b"b"]
