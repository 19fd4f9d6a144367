"""How large the state is, part by part, and how fast it grows.

Growth is between the oldest and the newest of a few measurements, so it needs some minutes of a
running project. tests/run/test_observatory.py holds the clock.
"""

from __future__ import annotations

import os
import shutil
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from headrace.api.resources.system import DiskShape
from headrace.core.time import HOUR, MINUTE
from headrace.define.layout import Layout

KEPT = 60
LEAST_US = MINUTE  # what grew in less says little about an hour


@dataclass(frozen=True, slots=True)
class Measured:
    """The size of the state at a moment."""

    at_us: int
    bytes: int


class Growth:
    """The newest measurements."""

    def __init__(self) -> None:
        self._measured: deque[Measured] = deque(maxlen=KEPT)

    def add(self, at_us: int, layout: Layout) -> None:
        self._measured.append(Measured(at_us, sum(parts_of(layout).values())))

    def per_hour(self) -> float | None:
        """Bytes an hour; None while too little was seen."""
        if not self._measured:
            return None
        first, last = self._measured[0], self._measured[-1]
        span = last.at_us - first.at_us
        return (last.bytes - first.bytes) * HOUR / span if span >= LEAST_US else None


def parts_of(layout: Layout) -> dict[str, int]:
    """Bytes of each part of the state folder."""
    store = layout.store
    files = [store, *(store.with_name(store.name + end) for end in ("-wal", "-shm"))]
    folders = {name: layout.state / name for name in ("log", "master", "work")}
    sizes = {name: _folder_bytes(path) for name, path in folders.items()}
    return sizes | {"store": sum(_file_bytes(path) for path in files)}


def disk_of(layout: Layout, growth: Growth | None) -> DiskShape:
    """The disk now."""
    parts, usage = parts_of(layout), shutil.disk_usage(_there(layout.state))
    pace = growth.per_hour() if growth else None
    runway = usage.free / pace if pace and pace > 0 else None
    return DiskShape(
        str(layout.state), usage.free, usage.total, sum(parts.values()), parts, pace, runway
    )


def _there(path: Path) -> Path:
    return path if path.exists() else _there(path.parent)


def _file_bytes(path: Path) -> int:
    # Files come and go while the folder is walked.
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _folder_bytes(path: Path) -> int:
    return sum(
        _file_bytes(Path(folder) / name) for folder, _, names in os.walk(path) for name in names
    )
