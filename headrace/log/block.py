"""A block is what one group commit writes: consecutive records, and their checksums.

    header | lengths u32[] | crcs u32[] | statuses u8[] | body        (little endian)

The block's crc covers everything behind it, so one sum verifies a block; the records' own crcs are
checked only when it fails, to name the damaged offsets. The body is each record followed by a
newline, hence NDJSON as it is, unless a record has a newline within: then the block is FRAMED, and
only the lengths say where a record ends. tests/log/test_block.py checks the round trip and one
flipped bit at every byte.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from headrace.core.position import Interval

MAGIC, VERSION, FRAMED = b"HRbk", 1, 1
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

    @staticmethod
    def of(
        first_offset: int,
        arrived_at_us: int,
        records: Sequence[bytes],
        statuses: Sequence[int] | bytes,
    ) -> Block:
        """The block of these records."""
        lengths = np.fromiter(map(len, records), np.uint32, len(records))
        marks = np.frombuffer(bytes(statuses), np.uint8)
        body = b"\n".join([*records, b""])
        framed = body.count(b"\n") != len(records)
        return Block(first_offset, arrived_at_us, lengths, marks, body, framed)

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
        )

    def _starts(self) -> list[int]:
        """Where each record begins in the body, and where the body ends."""
        ends: list[int] = np.cumsum(self.lengths + np.uint32(1), dtype=np.int64).tolist()
        return [0, *ends]


def encode_block(
    first_offset: int, arrived_at_us: int, records: Sequence[bytes], statuses: Sequence[int] | bytes
) -> bytes:
    """The bytes of a block, as they are written to a segment."""
    block = Block.of(first_offset, arrived_at_us, records, statuses)
    crcs = np.fromiter(map(crc32, records), np.uint32, len(records))
    parts = (block.lengths.tobytes(), crcs.tobytes(), block.statuses.tobytes(), block.body)
    size = len(block.body)
    flags = FRAMED if block.framed else 0
    fields = (VERSION, flags, 0, first_offset, arrived_at_us, len(records), size)
    crc = crc32(HEADER.pack(MAGIC, 0, *fields)[_SUMMED_FROM:])
    for part in parts:
        crc = crc32(part, crc)
    return b"".join((HEADER.pack(MAGIC, crc, *fields), *parts))


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
    return Block(first, arrived_at_us, lengths, statuses, body, bool(flags & FRAMED))


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
