"""A segment is a file of blocks, named by its first offset; its index is a hint and nothing more.

`read_blocks` yields only verified blocks whose offsets follow each other without a gap. An index
entry says "a block begins at this byte": it is believed only if that block is there and is the one
named, so a lost or wrong index costs time and never an answer.
tests/log/test_segment.py reads through missing, torn and lying indexes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headrace.core.errors import CorruptLog
from headrace.log.block import HEADER, Block, BlockError, decode_block, rest_bytes

INDEX_STRIDE_BYTES = 256 << 10
ENTRY = np.dtype([("offset", "<i8"), ("at", "<i8"), ("arrived_at_us", "<i8")])


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
class Placed:
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
) -> Iterator[Placed]:
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
            yield Placed(at, end, block)
            at, expected = end, block.next_offset


def read_sound_blocks(
    segment: Segment, limit: int, *, at: int = 0, offset: int | None = None
) -> Iterator[Placed]:
    """As `read_blocks`, for acknowledged bytes: damage is CorruptLog and names its place."""
    expected = segment.first_offset if offset is None else offset
    try:
        for placed in read_blocks(segment, limit, at=at, offset=offset):
            yield placed
            at, expected = placed.end, placed.block.next_offset
    except BlockError as bad:
        raise corrupt(segment, at, expected, bad) from bad


def corrupt(segment: Segment, at: int, offset: int, bad: BlockError) -> CorruptLog:
    """The error for a block that begins at byte `at` and should hold `offset`."""
    named = bad.offsets or (offset,)
    offsets = ", ".join(map(str, named[:10])) + (", …" if len(named) > 10 else "")
    what = (
        f"the record at offset {offsets}"
        if bad.offsets
        else f"the block that begins at offset {offsets}"
    )
    return CorruptLog(
        f"{what} of the log is damaged, in {segment.path}",
        detail=f"{bad.reason}, in the block at byte {at}.",
        hint="restore this file from a copy; nothing was skipped and nothing was removed.",
        origin=str(segment.path),
    )


def load_index(segment: Segment) -> NDArray[np.void]:
    """The index; empty unless it begins with the segment and rises in each column."""
    try:
        data = segment.index_path.read_bytes()
    except FileNotFoundError:
        return np.empty(0, ENTRY)
    entries = np.frombuffer(data, ENTRY, len(data) // ENTRY.itemsize)
    rising = (np.diff(entries["offset"]) > 0) & (np.diff(entries["at"]) > 0)
    rising &= np.diff(entries["arrived_at_us"]) >= 0
    begins = len(entries) > 0 and (entries["offset"][0], entries["at"][0]) == (
        segment.first_offset,
        0,
    )
    return entries if begins and rising.all() else np.empty(0, ENTRY)


def make_index(placed: Iterator[Placed]) -> NDArray[np.void]:
    """The index of a segment with these blocks."""
    entries: list[tuple[int, int, int]] = []
    for item in placed:
        if wants_entry(entries[-1][1] if entries else None, item.at):
            entries.append((item.block.first_offset, item.at, item.block.arrived_at_us))
    return np.array(entries, ENTRY)


def wants_entry(last_at: int | None, at: int) -> bool:
    return last_at is None or at - last_at >= INDEX_STRIDE_BYTES


def seek(segment: Segment, limit: int, column: str, value: int) -> tuple[int, int]:
    """(byte, offset) of a block from which to read so as not to miss `value` in `column`.

    With "offset" it is the last indexed block that begins at or before the value, with
    "arrived_at_us" the last one that arrived before it; without a sound index, the first block.
    """
    entries = load_index(segment)
    entries = entries[entries["at"] < limit]
    # Arrivals may repeat, and the first of equals is wanted; offsets do not.
    bound = value + 1 if column == "offset" else value
    place = int(np.searchsorted(entries[column], bound)) - 1
    if place < 0:
        return 0, segment.first_offset
    offset, at, arrived_at_us = (int(part) for part in entries[place].item())
    if _begins(segment, limit, at, offset, arrived_at_us):
        return at, offset
    return 0, segment.first_offset


def _begins(segment: Segment, limit: int, at: int, offset: int, arrived_at_us: int) -> bool:
    """Whether the block that an index entry speaks of is where it says."""
    try:
        block = next(read_blocks(segment, limit, at=at, offset=offset)).block
    except (BlockError, StopIteration):
        return False
    return block.arrived_at_us == arrived_at_us
