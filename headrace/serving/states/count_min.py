"""Spark's count-min sketch, merged and read here.

Its bytes are big-endian: version INT, total BIGINT, depth INT, width INT, then `depth` factors and
`depth` rows of `width` counters, all BIGINT. A text has one counter in each row, found by two
Murmur3 hashes of its UTF-8 bytes; the smallest of them is the estimate, which is never too low.
tests/serving/test_sketches.py checks it against sketches made by Spark.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

_HEAD = struct.Struct(">iqii")


def merge(sketches: Sequence[bytes]) -> bytes:
    """The sum of sketches of one shape."""
    version, _, depth, width = _HEAD.unpack_from(sketches[0])
    total = sum(_HEAD.unpack_from(sketch)[1] for sketch in sketches)
    factors = sketches[0][_HEAD.size : _HEAD.size + 8 * depth]
    sums = [sum(column) for column in zip(*map(_counters, sketches), strict=True)]
    return _HEAD.pack(version, total, depth, width) + factors + struct.pack(f">{len(sums)}q", *sums)


def estimate(sketch: bytes, value: str) -> int:
    """The estimated count of a text, which is given as the hexadecimal digits of its bytes."""
    depth, width = _size(sketch)
    counters = _counters(sketch)
    return min(counters[n * width + c] for n, c in enumerate(_columns(value, depth, width)))


def _size(sketch: bytes) -> tuple[int, int]:
    _, _, depth, width = _HEAD.unpack_from(sketch)
    return int(depth), int(width)


def _counters(sketch: bytes) -> tuple[int, ...]:
    depth, width = _size(sketch)
    return struct.unpack_from(f">{depth * width}q", sketch, _HEAD.size + 8 * depth)


def _columns(value: str, depth: int, width: int) -> list[int]:
    data = bytes.fromhex(value)
    first = murmur3(data, 0)
    second = murmur3(data, first)
    return [abs(_signed(first + n * second)) % width for n in range(depth)]


def murmur3(data: bytes, seed: int) -> int:
    """Spark's Murmur3 of bytes: each byte after the last full word is a word of its own."""
    whole = len(data) - len(data) % 4
    words = [*struct.unpack(f"<{whole // 4}i", data[:whole])]
    words += struct.unpack(f"{len(data) - whole}b", data[whole:])
    mixed = seed & 0xFFFFFFFF
    for word in words:
        mixed ^= _rotated(word * 0xCC9E2D51, 15) * 0x1B873593 & 0xFFFFFFFF
        mixed = _rotated(mixed, 13) * 5 + 0xE6546B64 & 0xFFFFFFFF
    mixed ^= len(data)
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return _signed(mixed ^ mixed >> 16)


def _rotated(word: int, bits: int) -> int:
    word &= 0xFFFFFFFF
    return (word << bits | word >> (32 - bits)) & 0xFFFFFFFF


def _signed(number: int) -> int:
    """The lowest 32 bits as Java reads an int."""
    return (number + (1 << 31) & 0xFFFFFFFF) - (1 << 31)
