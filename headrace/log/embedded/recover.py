"""Opening a partition for writing: what is kept, what is torn, what is damaged.

Below the durable mark all was acknowledged: damage there is CorruptLog, and nothing is changed.
Above it nothing was: whole blocks are kept, since they may have been synced, and the first that is
not whole is a torn tail, to be cut off. Without a mark, a bad block with a good one behind it is
damage, else a torn tail. A segment is sealed by fsync before the next is made, so only the last can
have a torn tail.
tests/log/test_recovery.py tears the last block at every byte and flips a bit in every byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headrace.core.errors import CorruptLog
from headrace.log.block import MAGIC, BlockError
from headrace.log.embedded.index import seek
from headrace.log.embedded.mark import DurableMark, load_mark
from headrace.log.embedded.segment import (
    Segment,
    SegmentBlock,
    corrupt_log,
    list_segments,
    read_blocks,
    read_sound_blocks,
)


@dataclass(frozen=True, slots=True)
class RecoveredEnd:
    """Where the writer continues; bytes of the segment beyond `mark.length` are to be cut off."""

    mark: DurableMark
    arrived_at_us: int


def recover(folder: Path) -> RecoveredEnd:
    """Find the end of the partition's log; changes nothing on disk."""
    segments, mark = list_segments(folder), load_mark(folder)
    if not segments:
        if mark is not None and mark.next_offset > 0:
            raise _missing(Segment(folder, mark.segment))
        return RecoveredEnd(DurableMark(0, 0, 0), 0)
    if mark is None:
        return _without_mark(segments)
    if Segment(folder, mark.segment) not in segments:
        raise _missing(Segment(folder, mark.segment))
    return _with_mark(segments, mark)


def recovered_mark(folder: Path) -> DurableMark:
    """The end of a log that no process writes; of a damaged one its mark, if there is one, so that
    reading its blocks reports the damage.
    """
    try:
        return recover(folder).mark
    except CorruptLog:
        mark = load_mark(folder)
        if mark is None:
            raise
        return mark


def last_arrival(segment: Segment, limit: int) -> int:
    """When the last block before byte `limit` arrived; 0 if there is none."""
    at, offset = seek(segment, limit, "offset", 1 << 62)
    arrived_at_us = 0
    for placed in read_sound_blocks(segment, limit, at=at, offset=offset):
        arrived_at_us = placed.block.arrived_at_us
    return arrived_at_us


def _with_mark(segments: list[Segment], mark: DurableMark) -> RecoveredEnd:
    first = next(i for i, segment in enumerate(segments) if segment.first_offset == mark.segment)
    _check_acknowledged(segments[first], mark)
    at, offset = mark.length, mark.next_offset
    # A mark that a power cut left behind may name a segment that has been sealed since.
    for segment, after in zip(segments[first:-1], segments[first + 1 :], strict=True):
        for placed in read_sound_blocks(segment, segment.size, at=at, offset=offset):
            offset = placed.block.next_offset
        if after.first_offset != offset:
            raise corrupt_log(
                segment,
                segment.size,
                offset,
                BlockError("the last blocks of the segment are missing"),
            )
        at = 0
    return _tail(segments, at, offset)


def _check_acknowledged(segment: Segment, mark: DurableMark) -> None:
    """Read all blocks up to the mark."""
    at, offset = 0, segment.first_offset
    for placed in read_sound_blocks(segment, mark.length):
        at, offset = placed.end, placed.block.next_offset
    if offset != mark.next_offset:
        raise corrupt_log(segment, at, offset, BlockError("acknowledged blocks are missing"))


def _tail(segments: list[Segment], at: int, offset: int) -> RecoveredEnd:
    """The whole blocks of the last segment from byte `at` on, up to the torn one if any."""
    last, arrived_at_us = segments[-1], 0
    try:
        for placed in read_blocks(last, last.size, at=at, offset=offset):
            at, offset = placed.end, placed.block.next_offset
            arrived_at_us = placed.block.arrived_at_us
    except BlockError:
        pass  # the torn tail: never acknowledged, and cut off by the writer
    mark = DurableMark(last.first_offset, at, offset)
    return RecoveredEnd(mark, arrived_at_us or _arrival_before(segments, mark))


def _arrival_before(segments: list[Segment], mark: DurableMark) -> int:
    """The last arrival of the log up to the mark, which may be in an earlier segment."""
    if mark.length:
        return last_arrival(segments[-1], mark.length)
    return last_arrival(segments[-2], segments[-2].size) if len(segments) > 1 else 0


def _without_mark(segments: list[Segment]) -> RecoveredEnd:
    last = segments[-1]
    at, offset = 0, last.first_offset
    try:
        for placed in read_blocks(last, last.size):
            at, offset = placed.end, placed.block.next_offset
    except BlockError as bad:
        if _block_behind(last, at, offset) is not None:
            raise corrupt_log(last, at, offset, bad) from bad
    return _tail(segments, at, offset)


def _block_behind(segment: Segment, at: int, offset: int) -> SegmentBlock | None:
    """A whole block somewhere behind byte `at`, whatever lies between."""
    data = segment.path.read_bytes()
    place = data.find(MAGIC, at + 1)
    while place >= 0:
        first = int.from_bytes(data[place + 12 : place + 20], "little", signed=True)
        if first >= offset:
            try:
                return next(read_blocks(segment, len(data), at=place, offset=first))
            except BlockError:
                pass  # these four bytes were part of a record, or this block is damaged too
        place = data.find(MAGIC, place + 1)
    return None


def _missing(segment: Segment) -> CorruptLog:
    return CorruptLog(
        f"the log file {segment.path} is missing",
        detail="according to the log's durable mark, it contains acknowledged events.",
        hint="restore this file from a copy.",
        origin=str(segment.path),
    )
