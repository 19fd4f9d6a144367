"""A run: some ids of a stream on disk, sorted by hash, with a filter before them.

    ids u64[n], sorted | bodies u64[n] | filter u8[m]

The file is mapped and never changes. Most ids that are looked up are new, and the filter says so of
99 in 100 of them with one to three reads; the others are searched for. The filter is a Bloom filter
of 12 to 24 bits an id.
tests/ingest/test_id_index.py looks up what is there and what is not.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from headrace.core.files import sync
from headrace.ingest.hashing import Hashes

_PROBES, _BITS_MIN = 3, 12
_FEW = 16
_PIECES = 64  # a merge holds a piece of each run at a time
_READ_BYTES, _STEP = 1 << 20, 1 << 14


@dataclass(frozen=True, slots=True, eq=False)
class IdRun:
    """An open run."""

    path: Path
    ids: Hashes
    bodies: Hashes
    filter: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.ids)

    def look_up(self, wanted: Hashes) -> tuple[NDArray[np.int64], Hashes]:
        """Which of the wanted ids are here, by their place among them, and their bodies."""
        maybe = self._maybe_many(wanted) if len(wanted) > _FEW else self._maybe_few(wanted)
        if not len(maybe):
            return maybe, wanted[maybe]
        at = np.searchsorted(self.ids, wanted[maybe])
        here = at < len(self.ids)
        here[here] = self.ids[at[here]] == wanted[maybe[here]]
        return maybe[here], self.bodies[at[here]]

    def _maybe_many(self, wanted: Hashes) -> NDArray[np.int64]:
        """The places of the ids that the filter lets through; most do not pass the first probe."""
        maybe = np.arange(len(wanted))
        for bits in _probes(wanted, len(self.filter)):
            at = bits[maybe]
            byte = self.filter[at >> np.uint64(3)]
            maybe = maybe[(byte >> (at & np.uint64(7)).astype(np.uint8)) & 1 == 1]
            if not len(maybe):
                break
        return maybe

    def _maybe_few(self, wanted: Hashes) -> NDArray[np.int64]:
        """The same for few ids, for which numpy's calls would cost more than the work."""
        bytes_of, mask = self.filter.data, len(self.filter) * 8 - 1
        maybe = [n for n, one in enumerate(wanted.tolist()) if _passes(bytes_of, mask, one)]
        return np.array(maybe, np.int64)


def _passes(filter: memoryview, mask: int, identity: int) -> bool:
    step = identity >> 32 | 1
    for probe in range(_PROBES):
        at = (identity + probe * step) & mask
        if not filter[at >> 3] >> (at & 7) & 1:
            return False
    return True


def _filter_bytes(count: int) -> int:
    return max(8, 1 << (max(1, count) * _BITS_MIN - 1).bit_length() - 3)


def _probes(ids: Hashes, filter_bytes: int) -> Iterator[Hashes]:
    mask, step = np.uint64(filter_bytes * 8 - 1), (ids >> np.uint64(32)) | np.uint64(1)
    at = ids
    for _ in range(_PROBES):
        yield at & mask
        at = at + step


def open_run(path: Path, count: int, crc: int) -> IdRun | None:
    """The run in a file; None if it is missing, or is not what was written."""
    size = 16 * count + _filter_bytes(count)
    try:
        if path.stat().st_size != size or crc_of(path) != crc:
            return None
        return _mapped(path, count)
    except OSError:
        return None


def _mapped(path: Path, count: int, *, new: bool = False) -> IdRun:
    size = 16 * count + _filter_bytes(count)
    with path.open("w+b" if new else "rb") as file:
        if new:
            # Writing to a page of a sparse file without free disk kills the process.
            os.posix_fallocate(file.fileno(), 0, size)
        access = mmap.ACCESS_WRITE if new else mmap.ACCESS_READ
        # A plain array over the mapping: numpy's own kind costs more at each small call.
        whole = np.frombuffer(mmap.mmap(file.fileno(), size, access=access), np.uint8)
    ids, bodies = whole[: 16 * count].view(np.uint64).reshape(2, count)
    return IdRun(path, ids, bodies, whole[16 * count :])


def write_run(path: Path, parts: Sequence[tuple[Hashes, Hashes]]) -> tuple[IdRun, int]:
    """Make a run of ids and their bodies, sorted or not, and make it durable; and its checksum. A
    disk without room for it is an OSError.

    Ids are spread evenly over all numbers, so what lies between two numbers is a small piece.
    """
    count = sum(len(ids) for ids, _ in parts)
    run, at = _mapped(path, count, new=True), 0
    for piece_ids, piece_bodies in _pieces(parts):
        order = np.argsort(piece_ids, kind="stable")
        upto = at + len(order)
        run.ids[at:upto], run.bodies[at:upto] = piece_ids[order], piece_bodies[order]
        # In steps, because each of them keeps other threads waiting.
        for start in range(0, len(order), _STEP):
            _note(run.filter, piece_ids[start : start + _STEP])
        at = upto
    sync(path)
    return _mapped(path, count), crc_of(path)


def _note(filter: NDArray[np.uint8], ids: Hashes) -> None:
    for bits in _probes(ids, len(filter)):
        mask = np.uint8(1) << (bits & np.uint64(7)).astype(np.uint8)
        np.bitwise_or.at(filter, bits >> np.uint64(3), mask)


def _pieces(parts: Sequence[tuple[Hashes, Hashes]]) -> Iterator[tuple[Hashes, Hashes]]:
    """All of the parts, from the lowest ids to the highest."""
    if len(parts) == 1:
        yield parts[0]
        return
    edges = [np.uint64((n << 64) // _PIECES) for n in range(1, _PIECES)]
    cuts = [[0, *np.searchsorted(ids, edges).tolist(), len(ids)] for ids, _ in parts]
    for n in range(_PIECES):
        slices = [slice(cut[n], cut[n + 1]) for cut in cuts]
        pairs = [(ids[s], bodies[s]) for (ids, bodies), s in zip(parts, slices, strict=True)]
        yield np.concatenate([i for i, _ in pairs]), np.concatenate([b for _, b in pairs])


def crc_of(path: Path) -> int:
    crc = 0
    with path.open("rb") as file:
        while data := file.read(_READ_BYTES):
            crc = crc32(data, crc)
    return crc
