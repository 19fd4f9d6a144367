"""Ranges of files as parts of an import: what a worker does, in a process of its own.

A task is some ranges of lines, which become one part together, or one file from a line to its end,
which becomes as many as it needs: a packed one, a CSV and a JSON array can be read from their
beginning only. Records, and what cannot be read, are those that the connector of files gives.
tests/laws/test_import.py compares the log after both.
"""

from __future__ import annotations

import gzip
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec
import numpy as np

from headrace.core.errors import Unavailable
from headrace.core.failpoint import failpoint
from headrace.core.files import sync
from headrace.define.definitions import StreamDefinition
from headrace.ingest.fields import field_reader
from headrace.ingest.file_cursors import FileCursor
from headrace.ingest.hashing import RecordHashes, hash_records
from headrace.ingest.import_part import CursorMove, ImportPart, PartBlock, write_part
from headrace.ingest.lines import BOM, Lines, UnreadableRecord
from headrace.ingest.partitions import Partitioner, Share
from headrace.ingest.records import Chunk, Kind, file_chunks, read_chunks, split_lines, unreadable
from headrace.log.block import PackedRecords, block_cuts

PART_BYTES = 8 << 20
_PROBLEMS_MAX = 3


@dataclass(frozen=True, slots=True)
class PackSpec:
    """What all parts of an import have in common."""

    definition: StreamDefinition
    partitions: int
    record_bytes_max: int
    folder: Path
    hash_key: str | None  # of a stream with an id
    part_bytes: int = PART_BYTES


@dataclass(frozen=True, slots=True)
class FileRange:
    """A file from one cursor to another, or to its end; `before` is the cursor that is saved."""

    name: str
    path: Path
    kind: Kind
    before: FileCursor | None
    start: FileCursor
    end: FileCursor | None

    @property
    def packed(self) -> bool:
        return self.path.name.endswith(".gz")

    @property
    def bytes(self) -> int:
        return (self.end.taken if self.end else self.start.size) - self.start.taken


PackTask = tuple[FileRange, ...]


@dataclass(frozen=True, slots=True)
class StagedPart:
    """The file of a part that is durable; `read` are bytes of files, for the progress."""

    name: str
    read: int
    unread: int  # records that could not be read whole
    problems: tuple[str, ...]  # why, for the first of them


class BlockPacker:
    """Packs tasks; the names of its parts are unique among processes."""

    def __init__(self, spec: PackSpec) -> None:
        self._spec, self._fields = spec, field_reader(spec.definition)
        self._names = map((secrets.token_hex(4) + "-{}.part").format, count())

    def pack(self, task: PackTask) -> Iterator[StagedPart]:
        if task[0].end is None:
            yield from self._whole(task[0])
        else:
            yield self._ranges(task)

    def _ranges(self, task: PackTask) -> StagedPart:
        content = _Content(self._spec.record_bytes_max)
        for piece in task:
            assert piece.end is not None, "a file that is read to its end is a task of its own"
            with piece.path.open("rb", buffering=0) as file:
                if not self._add_plain(content, file.fileno(), piece):
                    for chunk in self._lines(file, piece, piece.end.taken):
                        content.add(piece.name, chunk)
            content.moves[piece.name] = CursorMove(piece.before, piece.end)
            content.read += piece.bytes
        return self._stage(content)

    def _add_plain(self, content: _Content, fd: int, piece: FileRange) -> bool:
        """Add lines that need no more than to be split: all in nearly every file."""
        if piece.bytes > 2 * self._spec.part_bytes:
            return False  # there is a line of millions of bytes, which memory need not hold
        data = os.pread(fd, piece.bytes, piece.start.taken)
        if len(data) < piece.bytes:
            raise Unavailable(f"{piece.path} has become shorter while it was imported")
        return not data.startswith(BOM) and content.add_lines(data)

    def _lines(self, file: Any, piece: FileRange, end: int) -> Iterator[Chunk]:
        stream = cast(BinaryIO, _Slice(file.fileno(), piece.start.taken, end))
        limit = self._spec.record_bytes_max
        lines = Lines(stream, start=piece.start.taken, line_bytes_max=limit)
        return read_chunks(lines, "ndjson", self._spec.definition.schema.stored)

    def _whole(self, piece: FileRange) -> Iterator[StagedPart]:
        before, cursor, definition = piece.before, piece.start, self._spec.definition
        with piece.path.open("rb") as file:
            content, shown = _Content(self._spec.record_bytes_max), 0
            for chunk in file_chunks(
                cast(BinaryIO, gzip.GzipFile(fileobj=file)) if piece.packed else file,
                piece.kind,
                definition.schema.stored,
                start=cursor.taken,
                header=definition.options.get("header") != "false",
                convert=definition.format == "json",
                record_bytes_max=self._spec.record_bytes_max,
            ):
                if content.bytes >= self._spec.part_bytes:
                    content.moves[piece.name] = CursorMove(before, cursor)
                    content.read, shown = file.tell() - shown, file.tell()
                    yield self._stage(content)
                    before, content = cursor, _Content(self._spec.record_bytes_max)
                content.add(piece.name, chunk)
                cursor = cursor.moved(file, chunk.taken, piece.packed)
            ended = msgspec.structs.replace(cursor, ended=True)
            content.moves[piece.name] = CursorMove(before, ended)
            content.read = piece.start.size - shown
            yield self._stage(content)

    def _stage(self, content: _Content) -> StagedPart:
        name = next(self._names)
        write_part(self._spec.folder / name, self._part(content))
        sync(self._spec.folder)
        failpoint("import.staged")
        return StagedPart(name, content.read, len(content.unread), tuple(content.problems))

    def _part(self, content: _Content) -> ImportPart:
        keys, ids = self._fields(content.records)
        hashes = self._hashes(ids, content)
        shares = Partitioner(self._spec.partitions).share(keys, content.records)
        records = [*content.records, *(one.raw for one in content.unread)]
        marks = bytes(len(content.records)) + bytes(one.mark for one in content.unread)
        if content.unread:
            turn = len(records) % self._spec.partitions
            shares = [*shares, (turn, range(len(content.records), len(records)))]
        blocks = [block for share in shares for block in _blocks(share, records, marks)]
        return ImportPart(content.moves, len(records), blocks, hashes)

    def _hashes(self, ids: Sequence[Any], content: _Content) -> RecordHashes | None:
        if not ids:
            return None
        assert self._spec.hash_key is not None, "a stream with an id has an index with a key"
        found = hash_records(ids, content.records, self._spec.hash_key)
        size = len(content.records) + len(content.unread)
        return RecordHashes(size, found.places, found.ids, found.bodies)


class _Content:
    """What becomes one part."""

    def __init__(self, record_bytes_max: int) -> None:
        self._limit = record_bytes_max
        self.records: list[bytes] = []
        self.unread: list[UnreadableRecord] = []
        self.problems: list[str] = []
        self.moves: dict[str, CursorMove] = {}
        self.read = self.bytes = 0

    def add_lines(self, data: bytes) -> bool:
        """Add whole lines; False, and nothing is added, if one is too long."""
        records = split_lines(data)
        if records and max(map(len, records)) > self._limit:
            return False
        self.records += records
        return True

    def add(self, name: str, chunk: Chunk) -> None:
        found = unreadable(chunk, self._limit)
        self.records += (record for record in chunk.records if len(record) <= self._limit)
        self.unread += found
        room = _PROBLEMS_MAX - len(self.problems)
        self.problems += (f"{name}: {one.why}" for one in found[: max(0, room)])
        self.bytes += sum(map(len, chunk.records)) + sum(len(one.raw) for one in found)


class _Slice:
    """The bytes `[start, end)` of a file, for `Lines`."""

    def __init__(self, fd: int, start: int, end: int) -> None:
        self._fd, self._at, self._end = fd, start, end

    def read1(self, size: int) -> bytes:
        data = os.pread(self._fd, min(size, self._end - self._at), self._at)
        self._at += len(data)
        return data


def _blocks(share: Share, records: Sequence[bytes], marks: bytes) -> Iterator[PartBlock]:
    partition, places = share
    own = [records[place] for place in places]
    numbers = np.fromiter(places, np.uint32, len(places))
    words = bytes([marks[place] for place in places]) if any(marks) else bytes(len(own))
    for a, b in block_cuts(own):
        packed = PackedRecords.of(own[a:b], imported=True)
        yield PartBlock(partition, packed, numbers[a:b], words[a:b])
