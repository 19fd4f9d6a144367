"""The index of a segment: the start of a block about every 256 KiB. It is only a hint.

An entry says "the block with this offset and arrival begins at this byte". It is used only if that
block is there, so a lost or wrong index costs time but never changes an answer. A failure to write
it is ignored for the same reason. tests/log/test_index.py reads through missing, torn and wrong
indexes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headrace.core.errors import CorruptLog
from headrace.log.block import BlockError
from headrace.log.embedded.files import Files, write_all
from headrace.log.embedded.mark import DurableMark
from headrace.log.embedded.segment import (
    Segment,
    SegmentBlock,
    list_segments,
    read_blocks,
    read_sound_blocks,
)

STRIDE_BYTES = 256 << 10
ENTRY = np.dtype([("offset", "<i8"), ("at", "<i8"), ("arrived_at_us", "<i8")])


class IndexWriter:
    """Keeps the indexes of one partition, as far as the disk lets it."""

    def __init__(self, folder: Path, files: Files) -> None:
        self.folder, self._files = folder, files
        self._last: tuple[Segment, int] | None = None  # the newest entry's segment and byte

    def note(self, segment: Segment, offset: int, at: int, arrived_at_us: int) -> None:
        """A block was made durable: index it, if the last entry is far enough behind."""
        last_at = self._last[1] if self._last and self._last[0] == segment else None
        if _wants_entry(last_at, at):
            self._append(segment, np.array([(offset, at, arrived_at_us)], ENTRY))

    def make_sound(self, mark: DurableMark) -> None:
        """Make the indexes that are missing or make no sense, and the active one in any case."""
        active = Segment(self.folder, mark.segment)
        for segment in list_segments(self.folder):
            # Damage in a segment is reported when its events are read.
            with contextlib.suppress(OSError, CorruptLog):
                if segment == active:
                    self._rebuild(segment, mark.length)
                elif not len(load_index(segment)):
                    self._rebuild(segment, segment.size)

    def _rebuild(self, segment: Segment, limit: int) -> None:
        entries = make_index(read_sound_blocks(segment, limit))
        self._files.unlink(segment.index_path)
        self._append(segment, entries)

    def _append(self, segment: Segment, entries: NDArray[np.void]) -> None:
        if not len(entries):
            return
        with contextlib.suppress(OSError):
            fd = self._files.open(segment.index_path)
            try:
                end = segment.index_path.stat().st_size
                write_all(self._files, fd, entries.tobytes(), end)
                self._last = (segment, int(entries["at"][-1]))
            finally:
                self._files.close(fd)


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


def make_index(placed: Iterator[SegmentBlock]) -> NDArray[np.void]:
    """The index of a segment with these blocks."""
    entries: list[tuple[int, int, int]] = []
    for item in placed:
        if _wants_entry(entries[-1][1] if entries else None, item.at):
            entries.append((item.block.first_offset, item.at, item.block.arrived_at_us))
    return np.array(entries, ENTRY)


def _wants_entry(last_at: int | None, at: int) -> bool:
    return last_at is None or at - last_at >= STRIDE_BYTES


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
    """Whether the block of an index entry is at its byte."""
    try:
        block = next(read_blocks(segment, limit, at=at, offset=offset)).block
    except (BlockError, StopIteration):
        return False
    return block.arrived_at_us == arrived_at_us
