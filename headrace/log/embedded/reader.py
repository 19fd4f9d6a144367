"""Reading a topic from any process, beside its writer, without a lock.

The durable mark is the published end: no byte behind it is read, so a reader sees only events that
were acknowledged or are about to be. When no process writes, a reader may take the end from the
blocks instead (`recovered_mark`), because a power cut leaves an older or a torn mark. Every block
is verified; damage is CorruptLog, never a gap. tests/log/test_reader.py reads from another process
while a topic is written.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

from headrace.core.errors import NotFound
from headrace.core.position import Interval, Position
from headrace.log.block import Block, BlockError
from headrace.log.embedded.description import read_description
from headrace.log.embedded.index import seek
from headrace.log.embedded.mark import DurableMark, MarkOf, published_mark
from headrace.log.embedded.recover import recovered_mark
from headrace.log.embedded.segment import Segment, corrupt_log, list_segments, read_sound_blocks
from headrace.log.protocol import LogPart


class EmbeddedReader:
    """A topic to read from; cheap to make, and pickled as its path and whether it is written.

    >>> from tempfile import TemporaryDirectory
    >>> from headrace.log.embedded.writer import EmbeddedWriter
    >>> folder = TemporaryDirectory()
    >>> topic = EmbeddedWriter.open(Path(folder.name), 1, segment_bytes_max=1 << 20)
    >>> _ = topic.append(0, [b"a", b"b", b"c"], bytes(3)).result()
    >>> reader = EmbeddedReader(Path(folder.name))
    >>> [block.records() for block in reader.blocks(0, Interval(1, 3))]
    [[b'b', b'c']]
    >>> topic.close(); folder.cleanup()
    """

    def __init__(self, path: Path, *, written: bool = True) -> None:
        partitions = read_description(path)
        if partitions is None:
            raise NotFound(
                f"there is no log at {path}", hint="it is created when its stream first runs."
            )
        self.path, self.partitions, self._written = path, partitions, written
        # Finding the end of a log that no process writes takes as long as reading its last segment.
        self._mark_of: MarkOf = published_mark if written else cache(recovered_mark)

    def __reduce__(self) -> tuple[Callable[..., EmbeddedReader], tuple[Path]]:
        return partial(EmbeddedReader, written=self._written), (self.path,)

    def start(self) -> Position:
        """The oldest event that is still here, in each partition."""
        return Position(tuple(list_segments(f)[0].first_offset for f in self._folders()))

    def end(self) -> Position:
        """The position after the last published event."""
        return Position(tuple(self._mark_of(folder).next_offset for folder in self._folders()))

    def blocks(self, partition: int, interval: Interval) -> Iterator[Block]:
        """Exactly the events with these offsets, in order; the first and last block are trimmed."""
        if not len(interval):
            return
        folder = self.path / str(partition)
        # The mark is read before the names: every segment that it names exists, or was archived and
        # removed.
        mark = self._mark_of(folder)
        segments = list_segments(folder)
        self._check_held(partition, interval, Interval(segments[0].first_offset, mark.next_offset))
        for segment, end in _held(segments, mark):
            if interval.overlaps(Interval(segment.first_offset, end)):
                yield from _blocks_of(segment, mark, interval, end)

    def parts(self, partition: int) -> list[LogPart]:
        """The published segment files and the offsets that each of them holds."""
        folder = self.path / str(partition)
        mark = self._mark_of(folder)
        return [
            LogPart(str(segment.path), Interval(segment.first_offset, end), _limit(segment, mark))
            for segment, end in _held(list_segments(folder), mark)
        ]

    def position_at(self, time_us: int) -> Position:
        """The first event of each partition that arrived at or after this time."""
        return Position(
            tuple(_offset_at(folder, self._mark_of(folder), time_us) for folder in self._folders())
        )

    def _folders(self) -> list[Path]:
        return [self.path / str(partition) for partition in range(self.partitions)]

    def _check_held(self, partition: int, wanted: Interval, held: Interval) -> None:
        where = f"partition {partition} of the log at {self.path}"
        span = f"offsets [{wanted.lower}, {wanted.upper})"
        if wanted.lower < held.lower:
            raise NotFound(
                f"{span} are no longer in {where}",
                detail=f"retention has removed all events before offset {held.lower}.",
                hint="older events are in the master dataset.",
            )
        if wanted.upper > held.upper:
            raise NotFound(
                f"{span} are not yet in {where}", detail=f"it ends at offset {held.upper}."
            )


def _held(segments: list[Segment], mark: DurableMark) -> Iterator[tuple[Segment, int]]:
    """Each published segment and the offset after its last event."""
    ends = [after.first_offset for after in segments[1:]] + [mark.next_offset]
    for segment, end in zip(segments, ends, strict=True):
        if segment.first_offset < mark.next_offset:
            yield segment, min(end, mark.next_offset)


def _limit(segment: Segment, mark: DurableMark) -> int:
    """How many bytes of the segment are published; a sealed one is so as a whole."""
    return mark.length if segment.first_offset == mark.segment else segment.size


def _blocks_of(
    segment: Segment, mark: DurableMark, interval: Interval, end: int
) -> Iterator[Block]:
    """The wanted events of one segment, which holds all offsets before `end`."""
    try:
        limit = _limit(segment, mark)
        at, offset = seek(segment, limit, "offset", interval.lower)
        for placed in read_sound_blocks(segment, limit, at=at, offset=offset):
            at, offset = placed.end, placed.block.next_offset
            if offset > interval.lower:
                yield placed.block.trimmed(interval)
            if offset >= interval.upper:
                return
    except FileNotFoundError as error:
        raise NotFound(f"{segment.path} was removed by retention while it was read") from error
    if offset != end:
        raise corrupt_log(
            segment, at, offset, BlockError("the last blocks of the segment are missing")
        )


def _offset_at(folder: Path, mark: DurableMark, time_us: int) -> int:
    held = [segment for segment, _ in _held(list_segments(folder), mark)]
    later = bisect_left(held, time_us, key=lambda segment: _first_arrival(segment, mark))
    if later == 0:
        return held[0].first_offset if held else mark.next_offset
    # The time falls within the last segment that began before it, or right behind that segment.
    segment, limit = held[later - 1], _limit(held[later - 1], mark)
    at, offset = seek(segment, limit, "arrived_at_us", time_us)
    for placed in read_sound_blocks(segment, limit, at=at, offset=offset):
        if placed.block.arrived_at_us >= time_us:
            return placed.block.first_offset
        offset = placed.block.next_offset
    return offset


def _first_arrival(segment: Segment, mark: DurableMark) -> int:
    return next(read_sound_blocks(segment, _limit(segment, mark))).block.arrived_at_us
