"""The ids of all events of a stream, on disk beside its log, as far as they are not in memory.

The index says how far it goes: the ids of all events before `position` are in it. It is made of the
log and can be made of it again: one that is missing, damaged, of another field or format version,
or ahead of the log is built again. Runs of about the same size are merged, four at a time, so an id
is moved a few times and a lookup reads few runs. What cannot be written is an OSError, and leaves
no file behind.
tests/ingest/test_id_index.py checks it against a set.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from headrace.core.errors import UnsupportedFormat
from headrace.core.failpoint import failpoint
from headrace.core.format_version import FormatVersions
from headrace.core.position import Position
from headrace.ingest.hashing import KEY_CHARACTERS, Hashes, hash_records
from headrace.ingest.id_run import IdRun, open_run, write_run

MERGED = 4
IDS = FormatVersions("id index", oldest=1, newest=1)
_MANIFEST = "index.json"


class IdRunFile(msgspec.Struct, frozen=True):
    """A run's file."""

    name: str
    count: int
    crc: int


class _Manifest(msgspec.Struct, frozen=True):
    field: str
    key: str
    probe: int  # the hash of a known text: a library that hashes differently makes a new index
    position: str
    runs: list[IdRunFile] = []
    version: int = IDS.newest


def hash_key(folder: Path) -> str:
    """The key with which the ids of an index in a folder are hashed."""
    return msgspec.json.decode((folder / _MANIFEST).read_bytes(), type=_Manifest).key


class IdIndex:
    """The index of one stream. One thread adds to it while others look up."""

    def __init__(self, folder: Path, field: str, end: Position) -> None:
        self.folder, self._field = folder, field
        manifest = self._found(end) or self._begun(end)
        self.key, self.position = manifest.key, Position.parse(manifest.position)
        self._next = 1 + max((int(kept.name) for kept in self._kept), default=0)

    def __len__(self) -> int:
        return sum(kept.count for kept in self._kept)

    def look_up(self, wanted: Hashes) -> tuple[NDArray[np.bool_], Hashes]:
        """Whether each of the wanted ids is here, and its body if it is."""
        found, bodies = np.zeros(len(wanted), bool), np.zeros(len(wanted), np.uint64)
        for run in self._runs:
            places, values = run.look_up(wanted)
            found[places], bodies[places] = True, values
        return found, bodies

    def add(self, ids: Hashes, bodies: Hashes, position: Position) -> None:
        """Add the ids of the events up to a position."""
        kept, runs = list(self._kept), list(self._runs)
        if len(ids):
            added = self._written([(ids, bodies)])
            kept, runs = [*kept, added[0]], [*runs, added[1]]
        self._save(kept, runs, position)

    def merge(self) -> None:
        """Merge the newest runs of one size, where there are so many."""
        while (first := self._crowded()) is not None:
            old = self._kept[first:]
            kept, run = self._written([(run.ids, run.bodies) for run in self._runs[first:]])
            self._save([*self._kept[:first], kept], [*self._runs[:first], run], self.position)
            for gone in old:
                self._path(gone.name).unlink(missing_ok=True)

    def _crowded(self) -> int | None:
        """Where the runs begin that are to be merged: so many that none is far larger than all."""
        counts = [kept.count for kept in self._kept]
        for first in range(len(counts) - MERGED + 1):
            if counts[first] < MERGED * max(counts[first + 1 :]):
                return first
        return None

    def _written(self, parts: Sequence[tuple[Hashes, Hashes]]) -> tuple[IdRunFile, IdRun]:
        name, self._next = str(self._next), self._next + 1
        with self._removed_on_failure([name]):
            run, crc = write_run(self._path(name), parts)
        failpoint("ids.written")
        return IdRunFile(name, len(run), crc), run

    @contextmanager
    def _removed_on_failure(self, names: Iterable[str]) -> Iterator[None]:
        """Delete runs that no manifest names: on a full disk their space is needed."""
        try:
            yield
        except OSError:
            for name in names:
                self._path(name).unlink(missing_ok=True)
            raise

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.run"

    def _found(self, end: Position) -> _Manifest | None:
        """The manifest of an index that can be continued."""
        try:
            found = msgspec.json.decode((self.folder / _MANIFEST).read_bytes(), type=_Manifest)
            IDS.check(found.version, self.folder)
            reached = Position.parse(found.position)
        except (OSError, ValueError, UnsupportedFormat):
            return None
        same = found.field == self._field and found.probe == _probe(found.key)
        if not same or len(reached.offsets) != len(end.offsets) or not reached <= end:
            return None
        runs = [open_run(self._path(run.name), run.count, run.crc) for run in found.runs]
        if not all(runs):
            return None
        self._kept, self._runs = found.runs, [run for run in runs if run]
        kept = {self._path(run.name) for run in found.runs}
        for left in set(self.folder.glob("*.run")) - kept:  # of a process that was killed
            left.unlink()
        return found

    def _begun(self, end: Position) -> _Manifest:
        self.folder.mkdir(parents=True, exist_ok=True)
        for left in self.folder.iterdir():
            left.unlink()
        self._kept, self._runs = [], []
        self.key = secrets.token_hex(KEY_CHARACTERS // 2)
        start = Position.start(len(end.offsets))
        return self._save([], [], start)

    def _save(self, kept: list[IdRunFile], runs: list[IdRun], position: Position) -> _Manifest:
        manifest = _Manifest(self._field, self.key, _probe(self.key), str(position), kept)
        with self._removed_on_failure({run.name for run in kept} - {r.name for r in self._kept}):
            self._write(manifest)
        failpoint("ids.saved")
        self._kept, self._runs, self.position = kept, runs, position
        return manifest

    def _write(self, manifest: _Manifest) -> None:
        draft = self.folder / f"{_MANIFEST}.new"
        with draft.open("wb") as file:
            file.write(msgspec.json.encode(manifest))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.folder / _MANIFEST)


def _probe(key: str) -> int:
    return int(hash_records(["probe"], [b""], key).ids[0])
