"""A part of an import: records of some files, packed into blocks for each partition of a log.

    magic | header_bytes u32 | header | per block: lengths, crcs, places u32[], marks u8[], body
          | per record with an id: place u32[], id u64[], body u64[]

A process reads, splits, hashes and packs; the one that writes the log gives the records offsets and
statuses, and does not parse them. `places` number the records in the order of their files, in which
ids are decided. `files` says which cursors the part moves, from where and to where. A part is
durable before its name is passed on. tests/ingest/test_import_part.py checks the round trip.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from headrace.core.errors import BadRequest, NotFound
from headrace.core.format_version import FormatVersions
from headrace.ingest.file_cursors import FileCursor
from headrace.ingest.hashing import RecordHashes
from headrace.log.block import PackedRecords

PARTS = FormatVersions("import part", oldest=1, newest=1)
_START = struct.Struct("<4sI")
_MAGIC = b"HRip"
Number = TypeVar("Number", bound=np.generic)
Places = NDArray[np.uint32]


class CursorMove(msgspec.Struct, frozen=True):
    """The cursor of a file before a part, and after it."""

    before: FileCursor | None
    after: FileCursor


@dataclass(frozen=True, slots=True, eq=False)
class PartBlock:
    """Records of a part that become one block; a mark is 0, or that of an unreadable record."""

    partition: int
    packed: PackedRecords
    places: Places
    marks: bytes


@dataclass(frozen=True, slots=True, eq=False)
class ImportPart:
    """A part, as it was packed; without hashes its stream has no id."""

    files: dict[str, CursorMove]
    size: int  # records; more than the blocks have if some of these are left out
    blocks: Sequence[PartBlock]
    hashes: RecordHashes | None

    @property
    def count(self) -> int:
        return sum(len(block.packed) for block in self.blocks)

    @property
    def bytes(self) -> int:
        return sum(len(block.packed.body) for block in self.blocks)

    def without(self, appended: Collection[int]) -> ImportPart:
        """The part without some of its blocks, by their numbers."""
        if not appended:
            return self
        kept = [block for number, block in enumerate(self.blocks) if number not in appended]
        gone = [block.places for number, block in enumerate(self.blocks) if number in appended]
        hashes = self.hashes
        if hashes is not None:
            stays = ~np.isin(np.array(hashes.places), np.concatenate(gone))
            places = np.array(hashes.places)[stays].tolist()
            hashes = RecordHashes(hashes.size, places, hashes.ids[stays], hashes.bodies[stays])
        return ImportPart(self.files, self.size, kept, hashes)


class _Block(msgspec.Struct, frozen=True):
    partition: int
    records: int
    body_bytes: int
    framed: bool


class _Header(msgspec.Struct, frozen=True):
    files: dict[str, CursorMove]
    blocks: list[_Block]
    size: int
    hashed: int | None  # how many records have an id; None if the stream declares none
    version: int = PARTS.newest


def write_part(path: Path, part: ImportPart) -> None:
    """Make a file of a part, durable with its name."""
    with path.open("xb") as file:
        file.writelines(_encoded(part))
        file.flush()
        os.fdatasync(file.fileno())


def _encoded(part: ImportPart) -> Iterator[bytes]:
    blocks = [
        _Block(b.partition, len(b.packed), len(b.packed.body), b.packed.framed) for b in part.blocks
    ]
    found = part.hashes
    hashed = len(found.ids) if found is not None else None
    header = msgspec.json.encode(_Header(part.files, blocks, part.size, hashed))
    yield _START.pack(_MAGIC, len(header)) + header
    for block in part.blocks:
        packed = block.packed
        yield from (packed.lengths.tobytes(), packed.crcs.tobytes(), block.places.tobytes())
        yield from (block.marks, packed.body)
    if found is not None:
        yield np.array(found.places, np.uint32).tobytes()
        yield from (found.ids.tobytes(), found.bodies.tobytes())


def read_part(path: Path) -> ImportPart:
    """The part in a file; NotFound without one."""
    try:
        data = _Bytes(path.read_bytes())
    except FileNotFoundError as error:
        raise NotFound(
            f"there is no part '{path.name}' of an import",
            hint="another import of this stream has begun; run the command again.",
        ) from error
    try:
        magic, header_bytes = _START.unpack(data.take(_START.size))
        if magic != _MAGIC:
            raise ValueError("no part starts here")
        header = msgspec.json.decode(data.take(header_bytes), type=_Header)
        PARTS.check(header.version, path)
        blocks = [_block(data, one) for one in header.blocks]
        return ImportPart(header.files, header.size, blocks, _hashes(data, header))
    except (ValueError, struct.error) as error:
        raise BadRequest(f"the part {path.name} of an import is damaged", detail=str(error)) from (
            error
        )


class _Bytes:
    """Bytes that are taken from the beginning."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = memoryview(data), 0

    def take(self, size: int) -> memoryview:
        taken = self._data[self._at : self._at + size]
        if len(taken) < size:
            raise ValueError("it is truncated")
        self._at += size
        return taken

    def numbers(self, count: int, kind: type[Number]) -> NDArray[Number]:
        return np.frombuffer(self.take(count * np.dtype(kind).itemsize), kind)


def _block(data: _Bytes, said: _Block) -> PartBlock:
    lengths, crcs, places = (data.numbers(said.records, np.uint32) for _ in range(3))
    marks, body = bytes(data.take(said.records)), bytes(data.take(said.body_bytes))
    if int(lengths.sum(dtype=np.int64)) + said.records != said.body_bytes:
        raise ValueError("its lengths do not add up")
    packed = PackedRecords(lengths, crcs, body, said.framed, imported=True)
    return PartBlock(said.partition, packed, places, marks)


def _hashes(data: _Bytes, header: _Header) -> RecordHashes | None:
    if header.hashed is None:
        return None
    places = data.numbers(header.hashed, np.uint32).tolist()
    ids, bodies = (data.numbers(header.hashed, np.uint64) for _ in range(2))
    return RecordHashes(header.size, places, ids, bodies)
