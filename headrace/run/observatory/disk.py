"""The size of each part of the state, and how fast the state grows.

Growth is the difference of the oldest and the newest of the last samples, so it requires some
minutes of a running project. tests/run/test_observatory.py holds the clock.
"""

from __future__ import annotations

import os
import shutil
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from headrace.api.resources.system import DiskUsage
from headrace.core.address import FILE
from headrace.core.time import HOUR, MINUTE
from headrace.define.layout import Layout

SAMPLES_MAX = 60
RANGE_US_MIN = MINUTE  # between two samples, for an estimate per hour


@dataclass(frozen=True, slots=True)
class DiskSample:
    """The size of the state at a time."""

    at_us: int
    bytes: int


class DiskGrowth:
    """The newest samples."""

    def __init__(self) -> None:
        self._samples: deque[DiskSample] = deque(maxlen=SAMPLES_MAX)

    def add(self, at_us: int, layout: Layout) -> None:
        self._samples.append(DiskSample(at_us, sum(parts_of(layout).values())))

    def per_hour(self) -> float | None:
        """Bytes per hour; None before there are enough samples."""
        if not self._samples:
            return None
        first, last = self._samples[0], self._samples[-1]
        span = last.at_us - first.at_us
        return (last.bytes - first.bytes) * HOUR / span if span >= RANGE_US_MIN else None


def parts_of(layout: Layout) -> dict[str, int]:
    """Bytes of each part of the state folder."""
    files = list[Path]()
    if layout.store.kind == FILE:
        store = layout.store.path
        files = [store, *(store.with_name(store.name + end) for end in ("-wal", "-shm"))]
    folders = {name: layout.state / name for name in ("log", "master", "work")}
    sizes = {name: _folder_bytes(path) for name, path in folders.items()}
    return sizes | {"store": sum(_file_bytes(path) for path in files)}


def disk_of(layout: Layout, growth: DiskGrowth | None) -> DiskUsage:
    """The current use of the disk."""
    parts, usage = parts_of(layout), shutil.disk_usage(_existing(layout.state))
    pace = growth.per_hour() if growth else None
    runway = usage.free / pace if pace and pace > 0 else None
    return DiskUsage(
        str(layout.state), usage.free, usage.total, sum(parts.values()), parts, pace, runway
    )


def _existing(path: Path) -> Path:
    return path if path.exists() else _existing(path.parent)


def _file_bytes(path: Path) -> int:
    # The file may have been removed since the folder was listed.
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _folder_bytes(path: Path) -> int:
    return sum(
        _file_bytes(Path(folder) / name) for folder, _, names in os.walk(path) for name in names
    )
