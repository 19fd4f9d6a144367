"""A segment is a file of blocks, named by its first offset.

`read_blocks` yields only verified blocks whose offsets follow each other without a gap. For bytes
that were acknowledged, `read_sound_blocks` turns anything else into CorruptLog, which names the
file and the offset: damage is reported, never skipped.
tests/log/test_recovery.py flips a bit in every byte of a segment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from headrace.core.errors import CorruptLog
from headrace.log.block import HEADER, Block, BlockError, decode_block, rest_bytes


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment file of a partition.

    >>> Segment(Path("clicks/0"), 42).path.name
    '00000000000000000042.seg'
    """

    folder: Path
    first_offset: int

    @property
    def path(self) -> Path:
        return self.folder / f"{self.first_offset:020d}.seg"

    @property
    def index_path(self) -> Path:
        return self.folder / f"{self.first_offset:020d}.idx"

    @property
    def size(self) -> int:
        return self.path.stat().st_size


@dataclass(frozen=True, slots=True)
class SegmentBlock:
    """A block and the bytes `[at, end)` of its segment that hold it."""

    at: int
    end: int
    block: Block


def list_segments(folder: Path) -> list[Segment]:
    """The partition's segments, oldest first."""
    stems = sorted(path.stem for path in folder.glob("*.seg"))
    return [Segment(folder, int(stem)) for stem in stems]


def read_blocks(
    segment: Segment, limit: int, *, at: int = 0, offset: int | None = None
) -> Iterator[SegmentBlock]:
    """The blocks in bytes `[at, limit)`, the first of which holds `offset`; raises BlockError.

    A block that goes beyond the limit is cut off there, as if the file ended.
    """
    expected = segment.first_offset if offset is None else offset
    with segment.path.open("rb", buffering=1 << 20) as file:
        file.seek(at)
        while at < limit:
            header = file.read(min(HEADER.size, limit - at))
            size = min(rest_bytes(header), limit - at - HEADER.size)
            block = decode_block(header, file.read(size), expected)
            end = at + block.stored_bytes
            yield SegmentBlock(at, end, block)
            at, expected = end, block.next_offset


def read_sound_blocks(
    segment: Segment, limit: int, *, at: int = 0, offset: int | None = None
) -> Iterator[SegmentBlock]:
    """As `read_blocks`, for acknowledged bytes: damage is CorruptLog and names its place."""
    expected = segment.first_offset if offset is None else offset
    try:
        for placed in read_blocks(segment, limit, at=at, offset=offset):
            yield placed
            at, expected = placed.end, placed.block.next_offset
    except BlockError as bad:
        raise corrupt_log(segment, at, expected, bad) from bad


def corrupt_log(segment: Segment, at: int, offset: int, bad: BlockError) -> CorruptLog:
    """The error for a block that begins at byte `at` and should hold `offset`."""
    named = bad.offsets or (offset,)
    offsets = ", ".join(map(str, named[:10])) + (", …" if len(named) > 10 else "")
    what = (
        f"the record at offset {offsets}"
        if bad.offsets
        else f"the block that starts at offset {offsets}"
    )
    return CorruptLog(
        f"{what} of the log is damaged in {segment.path}",
        detail=f"at byte {at}: {bad.reason}.",
        hint="restore this file from a copy; nothing was skipped and nothing was removed.",
        origin=str(segment.path),
    )
