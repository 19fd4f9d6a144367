"""Lines of a file or a pipe, with the byte where the next one begins.

Of a line above the limit only the beginning is held: memory is bounded whatever comes in. The lines
before a damaged or cut-off place are given, then what could be read of the next one. `unread` has
the beginnings of both. `taken` is always the start of a line, so that reading can resume there.
tests/ingest/test_records.py checks this.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from headrace.core.event import DAMAGED, OVERLONG

BOM = b"\xef\xbb\xbf"
# What a packed file raises where it is cut off or damaged. An error of the disk is not among them:
# a later read may succeed.
_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)
_BUFFER_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class UnreadableRecord:
    """A record that could not be read whole: its beginning, its mark in the log, and why."""

    raw: bytes
    mark: int
    why: str


class _Sound(io.RawIOBase):
    """A stream up to where it is damaged. GzipFile would raise there in the middle of a line, and
    drop what it has of it.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream: Any = stream
        self.damage: str | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        try:
            data = self._stream.read1(len(view))
        except _DAMAGE as error:
            self.damage = str(error)
            return 0
        view[: len(data)] = data
        return len(data)


class Lines:
    """The lines of `stream` from byte `start` on; an unfinished last one only if `whole`."""

    def __init__(
        self, stream: BinaryIO, *, start: int = 0, line_bytes_max: int, whole: bool = True
    ) -> None:
        self._sound, self.whole = _Sound(stream), whole
        self._stream = io.BufferedReader(self._sound, _BUFFER_BYTES)
        self.line_bytes_max = line_bytes_max
        self._piece_bytes = line_bytes_max + len(b"\r\n")
        self._unread: list[UnreadableRecord] = []
        self._first: bytes | None = None
        self.taken = start

    def first(self) -> bytes:
        """The first line that is not blank, or as much of it as is allowed; it is still to come."""
        while self._first is None:
            piece = self._piece()
            if piece.isspace():
                self.taken += len(piece)
            else:
                self._first = piece
        return self._first.removeprefix(BOM)

    def rest(self, bytes_max: int) -> bytes:
        """All that is left, up to a little more than `bytes_max`, so that the caller can detect
        more.
        """
        pieces = [self.first()]
        self.taken += len(self._first or b"")
        self._first = b""
        while (size := sum(map(len, pieces))) <= bytes_max:
            piece = self._stream.read(bytes_max + 1 - size)
            if not piece:
                break
            pieces.append(piece)
            self.taken += len(piece)
        if self._sound.damage is not None:
            self._note_damage(b"")
        return b"".join(pieces)

    def unread(self) -> tuple[UnreadableRecord, ...]:
        """The records that could not be read since the last call."""
        told, self._unread = tuple(self._unread), []
        return told

    def __iter__(self) -> Iterator[bytes]:
        """Each line without its end; `taken` is then behind it."""
        while piece := self._next():
            begun, self.taken = self.taken, self.taken + len(piece)
            ended = piece.endswith(b"\n") or self._pass_over(piece)
            damaged = not ended and self._sound.damage is not None
            if damaged or (not ended and not self.whole):
                self.taken = begun
                if damaged:
                    self._note_damage(piece)
                return
            line = piece.removesuffix(b"\n").removesuffix(b"\r")
            if len(line) > self.line_bytes_max:
                self._note_overlong(begun, line)
            else:
                yield line if begun else line.removeprefix(BOM)
        if self._sound.damage is not None:
            self._note_damage(b"")

    def _next(self) -> bytes:
        held, self._first = self._first, None
        return self._piece() if held is None else held

    def _pass_over(self, piece: bytes) -> bool:
        """Read on to the end of a line whose first piece is full; False if it has no end yet."""
        while len(piece) == self._piece_bytes and not piece.endswith(b"\n"):
            piece = self._piece()
            self.taken += len(piece)
        return piece.endswith(b"\n")

    def _note_overlong(self, begun: int, line: bytes) -> None:
        size, limit = self.taken - begun, self.line_bytes_max
        why = f"the line at byte {begun} has {size} bytes, above the limit of {limit}"
        self._unread.append(UnreadableRecord(line[:limit], OVERLONG, why))

    def _note_damage(self, begun: bytes) -> None:
        why = f"it cannot be read beyond byte {self.taken + len(begun)}: {self._sound.damage}"
        self._unread.append(UnreadableRecord(begun[: self.line_bytes_max], DAMAGED, why))

    def _piece(self) -> bytes:
        return self._stream.readline(self._piece_bytes)
