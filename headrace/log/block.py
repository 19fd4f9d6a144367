"""A block is what one group commit writes: consecutive records, and their checksums.

    header | lengths u32[] | crcs u32[] | statuses u8[] | body        (little endian)

The block's crc covers everything behind it, so one sum verifies a block; the records' own crcs are
checked only when it fails, to name the damaged offsets. The body is each record followed by a
newline, hence NDJSON as it is, unless a record has a newline within: then the block is FRAMED, and
only the lengths say where a record ends. A block is IMPORTED if it is one of an import's parts as a
whole, by which an import that was killed finds it again. tests/log/test_block.py checks the round
trip and one flipped bit at every byte.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from headrace.core.position import Interval

MAGIC, VERSION = b"HRbk", 1
FRAMED, IMPORTED = 1, 2  # flags
BLOCK_BYTES_MAX, BLOCK_RECORDS_MAX = 4 << 20, 65_536
# magic, crc, version, flags, unused, first_offset, arrived_at_us, count, body_bytes
HEADER = struct.Struct("<4sIBBHqqII")
_SUMMED_FROM = 8  # the crc covers all bytes behind itself
_TABLE_BYTES = 9  # per record: length, crc, status


class BlockError(Exception):
    """The bytes are not a whole block; `offsets` are the records known to be damaged."""

    def __init__(self, reason: str, offsets: Sequence[int] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.offsets = tuple(offsets)


@dataclass(frozen=True, slots=True, eq=False)
class PackedRecords:
    """Records as a block has them, before it is known which offsets they are given."""

    lengths: NDArray[np.uint32]
    crcs: NDArray[np.uint32]
    body: bytes
    framed: bool
    imported: bool = False

    @staticmethod
    def of(records: Sequence[bytes], *, imported: bool = False) -> PackedRecords:
        lengths = np.fromiter(map(len, records), np.uint32, len(records))
        crcs = np.fromiter(map(crc32, records), np.uint32, len(records))
        body = b"\n".join([*records, b""])
        return PackedRecords(lengths, crcs, body, body.count(b"\n") != len(records), imported)

    def __len__(self) -> int:
        return len(self.lengths)


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Records with consecutive offsets that arrived together.

    >>> block = Block.of(7, 0, [b"a", b"bc"], bytes(2))
    >>> block.records(), block.next_offset, block.trimmed(Interval(8, 9)).records()
    ([b'a', b'bc'], 9, [b'bc'])
    """

    first_offset: int
    arrived_at_us: int
    lengths: NDArray[np.uint32]
    statuses: NDArray[np.uint8]
    body: bytes
    framed: bool
    imported: bool = False

    @staticmethod
    def of(
        first_offset: int,
        arrived_at_us: int,
        records: Sequence[bytes],
        statuses: Sequence[int] | bytes,
    ) -> Block:
        """The block of these records."""
        packed, marks = PackedRecords.of(records), np.frombuffer(bytes(statuses), np.uint8)
        body, framed = packed.body, packed.framed
        return Block(first_offset, arrived_at_us, packed.lengths, marks, body, framed)

    @property
    def count(self) -> int:
        return len(self.lengths)

    @property
    def next_offset(self) -> int:
        return self.first_offset + len(self.lengths)

    @property
    def stored_bytes(self) -> int:
        return HEADER.size + _TABLE_BYTES * self.count + len(self.body)

    def records(self) -> list[bytes]:
        """The exact bytes of each record."""
        if not self.framed:
            return self.body.split(b"\n")[:-1]
        starts = self._starts()
        return [self.body[a : b - 1] for a, b in pairwise(starts)]

    def trimmed(self, interval: Interval) -> Block:
        """Only those records whose offsets lie in `interval`."""
        lower = min(max(interval.lower - self.first_offset, 0), self.count)
        upper = max(min(interval.upper - self.first_offset, self.count), lower)
        if (lower, upper) == (0, self.count):
            return self
        starts = self._starts()
        return Block(
            self.first_offset + lower,
            self.arrived_at_us,
            self.lengths[lower:upper],
            self.statuses[lower:upper],
            self.body[starts[lower] : starts[upper]],
            self.framed,
            self.imported,
        )

    def _starts(self) -> list[int]:
        """Where each record begins in the body, and where the body ends."""
        ends: list[int] = np.cumsum(self.lengths + np.uint32(1), dtype=np.int64).tolist()
        return [0, *ends]


def encode_block(
    first_offset: int, arrived_at_us: int, packed: PackedRecords, statuses: bytes
) -> bytes:
    """The bytes of a block, as they are written to a segment."""
    parts = (packed.lengths.tobytes(), packed.crcs.tobytes(), statuses, packed.body)
    flags = FRAMED * packed.framed | IMPORTED * packed.imported
    size = len(packed.body)
    fields = (VERSION, flags, 0, first_offset, arrived_at_us, len(packed), size)
    crc = crc32(HEADER.pack(MAGIC, 0, *fields)[_SUMMED_FROM:])
    for part in parts:
        crc = crc32(part, crc)
    return b"".join((HEADER.pack(MAGIC, crc, *fields), *parts))


def block_cuts(records: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Half-open index ranges of the records, each small enough for one block; none without any."""
    if not records:
        return
    if (
        len(records) <= BLOCK_RECORDS_MAX
        and sum(map(len, records)) + len(records) <= BLOCK_BYTES_MAX
    ):
        yield 0, len(records)
        return
    lengths = np.fromiter(map(len, records), np.int64, len(records))
    ends, first = np.cumsum(lengths + 1), 0
    while first < len(records):
        full = BLOCK_BYTES_MAX + (ends[first - 1] if first else 0)
        last = min(first + BLOCK_RECORDS_MAX, int(np.searchsorted(ends, full, "right")))
        last = max(last, first + 1)  # a record of more bytes is a block of its own
        yield first, last
        first = last


def rest_bytes(header: bytes) -> int:
    """How many bytes of the block follow this header."""
    if len(header) < HEADER.size:
        raise BlockError("the header is truncated")
    magic, _, version, _, _, _, _, count, body_bytes = HEADER.unpack(header)
    if magic != MAGIC or version != VERSION:
        raise BlockError("no block starts here")
    return int(_TABLE_BYTES * count + body_bytes)


def decode_block(header: bytes, rest: bytes, first_offset: int) -> Block:
    """The block in these bytes, verified, which must begin at `first_offset`."""
    _, crc, _, flags, _, first, arrived_at_us, count, body_bytes = HEADER.unpack(header)
    if len(rest) != _TABLE_BYTES * count + body_bytes:
        raise BlockError("the block is truncated")
    if crc32(rest, crc32(header[_SUMMED_FROM:])) != crc:
        raise BlockError("the checksum does not match", _damaged(rest, count, first_offset))
    if first != first_offset:
        raise BlockError(f"expected offset {first_offset}, got {first}")
    lengths = np.frombuffer(rest, np.uint32, count)
    statuses = np.frombuffer(rest, np.uint8, count, 8 * count)
    body = rest[_TABLE_BYTES * count :]
    framed, imported = bool(flags & FRAMED), bool(flags & IMPORTED)
    return Block(first, arrived_at_us, lengths, statuses, body, framed, imported)


def _damaged(rest: bytes, count: int, first_offset: int) -> list[int]:
    """The offsets whose own crc fails too; none if the damage is in the header or the table."""
    lengths, crcs = np.frombuffer(rest, np.uint32, 2 * count).reshape(2, count)
    ends = np.cumsum(lengths.astype(np.int64) + 1)
    body = rest[_TABLE_BYTES * count :]
    if count and ends[-1] != len(body):
        return []
    pairs = zip((ends - lengths - 1).tolist(), ends.tolist(), strict=True)
    sums = [crc32(body[a : b - 1]) for a, b in pairs]
    return (first_offset + np.flatnonzero(np.array(sums, np.uint32) != crcs)).tolist()
