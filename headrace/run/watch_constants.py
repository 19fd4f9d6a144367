"""The constants of watches as hidden tables for Spark: one file each, written from the store.

A file is written again at each start and whenever a watch begins or ends.
tests/run/test_watch_service.py checks the files.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import msgspec

from headrace.compile.plan import Plan
from headrace.serving.database_store import DatabaseStore
from headrace.serving.progress import read_stream
from headrace.serving.watches import constants, start_watches


def begin_watches(store: DatabaseStore, plan: Plan, shapes: Collection[str]) -> None:
    """Begin the new watches of these shapes now, and close the ended ones. No epoch may run
    meanwhile.
    """
    positions = {
        shape.name: store.stream(shape.streams[0]).position
        for shape in plan.shapes
        if shape.name in shapes
    }
    with store.write() as db:
        for shape, position in positions.items():
            start_watches(db, shape, position)


def write_constants(
    folder: Path, store: DatabaseStore, plan: Plan, shapes: Collection[str] | None = None
) -> None:
    """Write the tables of these shapes, or of all."""
    paths = {table.name: folder / table.location for table in plan.tables}
    for shape in plan.shapes:
        if shapes is None or shape.name in shapes:
            with store.read() as db:
                boundary = read_stream(db, shape.streams[0]).boundary
                rows = constants(db, shape, boundary)
            for name, content in zip(shape.tables, rows, strict=False):
                _write(paths[name], content)


def _write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}")
    fresh.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    os.replace(fresh, path)
