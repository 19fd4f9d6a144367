"""Lines of a file or a pipe, with the byte where the next one begins.

A line above the limit is passed over and told, never held: memory is bounded whatever comes in. The
lines before a damaged or cut-off place are given, then the end is told with its reason.
`taken` only ever stands where a line begins, so that reading can go on there another day.
tests/ingest/test_records.py checks this.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from typing import BinaryIO

_BOM = b"\xef\xbb\xbf"
# What a packed file raises where it is cut off or damaged. An error of the disk is none of these:
# reading there may work another day.
_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)


class Lines:
    """The lines of `stream` from byte `start` on; an unfinished last one only if `whole`."""

    def __init__(
        self, stream: BinaryIO, *, start: int = 0, line_bytes_max: int, whole: bool = True
    ) -> None:
        self._stream, self.whole = stream, whole
        self.line_bytes_max = line_bytes_max
        self._piece_bytes = line_bytes_max + len(b"\r\n")
        self._problems: list[str] = []
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
        return self._first.removeprefix(_BOM)

    def rest(self, bytes_max: int) -> bytes:
        """All that is left, up to a little more than `bytes_max`, so that more can be told."""
        pieces = [self.first()]
        self.taken += len(self._first or b"")
        self._first = b""
        while (size := sum(map(len, pieces))) <= bytes_max:
            piece = self._stream.read(bytes_max + 1 - size)
            if not piece:
                break
            pieces.append(piece)
            self.taken += len(piece)
        return b"".join(pieces)

    def problems(self) -> tuple[str, ...]:
        """What went wrong since this was last asked."""
        told, self._problems = tuple(self._problems), []
        return told

    def __iter__(self) -> Iterator[bytes]:
        """Each line without its end; `taken` is then behind it."""
        while piece := self._next():
            begun, self.taken = self.taken, self.taken + len(piece)
            ended = piece.endswith(b"\n") or self._pass_over(piece)
            if not ended and not self.whole:
                self.taken = begun
                return
            line = piece.removesuffix(b"\n").removesuffix(b"\r")
            if len(line) > self.line_bytes_max:
                self._tell_overlong(begun)
            else:
                yield line if begun else line.removeprefix(_BOM)

    def _next(self) -> bytes:
        held, self._first = self._first, None
        return self._piece() if held is None else held

    def _pass_over(self, piece: bytes) -> bool:
        """Read on to the end of a line whose first piece is full; False if it has no end yet."""
        while len(piece) == self._piece_bytes and not piece.endswith(b"\n"):
            piece = self._piece()
            self.taken += len(piece)
        return piece.endswith(b"\n")

    def _tell_overlong(self, begun: int) -> None:
        size = self.taken - begun
        self._problems.append(
            f"the line at byte {begun} has {size} bytes, above the limit of {self.line_bytes_max}"
        )

    def _piece(self) -> bytes:
        try:
            return self._stream.readline(self._piece_bytes)
        except _DAMAGE as error:
            self._problems.append(f"it cannot be read beyond byte {self.taken}: {error}")
            return b""
