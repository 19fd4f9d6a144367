"""The constants of watches as Spark reads them: a file of each hidden table, made from the store.

The store is the truth; a file is written anew at each start and whenever a watch begins or ends.
tests/run/test_watchbook.py checks what is written.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import msgspec

from headrace.compile.plan import Plan, ShapePlan
from headrace.core.position import Position
from headrace.serving.progress import read_stream
from headrace.serving.sqlite_store import SqliteStore
from headrace.serving.watches import constants, start_watches


def begin_watches(store: SqliteStore, plan: Plan, shapes: Collection[str]) -> None:
    """Watches of these shapes that have not begun begin now, and those that ended are closed.
    No epoch may run meanwhile.
    """
    places = {s.name: position_of(store, s) for s in plan.shapes if s.name in shapes}
    with store.write() as db:
        for shape, position in places.items():
            start_watches(db, shape, position)


def position_of(store: SqliteStore, shape: ShapePlan) -> Position:
    """How far speed has come in the shape's stream."""
    return store.stream(shape.streams[0]).position


def write_constants(
    folder: Path, store: SqliteStore, plan: Plan, shapes: Collection[str] | None = None
) -> None:
    """Write the tables of these shapes, or of all."""
    places = {table.name: folder / table.location for table in plan.tables}
    for shape in plan.shapes:
        if shapes is None or shape.name in shapes:
            with store.read() as db:
                boundary = read_stream(db, shape.streams[0]).boundary
                rows = constants(db, shape, boundary)
            for name, content in zip(shape.tables, rows, strict=False):
                _write(places[name], content)


def _write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}")
    fresh.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    os.replace(fresh, path)
