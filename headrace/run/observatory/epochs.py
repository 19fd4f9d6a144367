"""Epochs and generations, the newest first, from the store.

tests/run/test_observatory.py reads them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import msgspec

from headrace.api.observed.epochs import Epochs, EpochShape, GenerationShape
from headrace.compile.flow import flows_of
from headrace.core.errors import NotFound
from headrace.core.position import Position
from headrace.core.time import from_iso, iso
from headrace.run.observatory.subject import Subject
from headrace.serving.store import AuditResult

_EPOCHS = """
    SELECT number, stream, lower, upper, events, late, duplicates, dead_letters, started_at,
      committed_at FROM _epochs WHERE ?1 IS NULL OR stream = ?1 ORDER BY number DESC LIMIT ?2
"""
_GENERATIONS = """
    SELECT stream, number, boundary, promoted_at, audits FROM _generations
    WHERE ?1 IS NULL OR stream = ?1 ORDER BY promoted_at DESC, number DESC
"""


def epochs_of(subject: Subject, stream: str | None, limit: int) -> Epochs:
    """The newest of each, of one flow or of all."""
    if stream is not None:
        stream = _flow(subject, stream)
    with subject.store.db.read() as db:
        epochs = [_epoch(*row) for row in db.execute(_EPOCHS, (stream, limit))]
        generations = list(_generations(db, stream))[:limit]
    progress = {name: subject.signs().progress(name) for name in {e.stream for e in epochs}}
    return Epochs([_with_phases(e, progress[e.stream]) for e in epochs], generations)


def _flow(subject: Subject, name: str) -> str:
    """The flow of this name, whatever its case."""
    flows = [flow.name for flow in flows_of(subject.deployed())]
    found = next((flow for flow in flows if flow.lower() == name.lower()), None)
    if found is None:
        raise NotFound(f"there is no stream '{name[:80]}'", hint=f"there are: {', '.join(flows)}.")
    return found


def _epoch(
    number: int, stream: str, lower: str, upper: str, events: int, late: int, duplicates: int,
    dead_letters: int, started_at: int, committed_at: int,
) -> EpochShape:  # fmt: skip
    return EpochShape(
        number,
        stream,
        list(Position.parse(lower).offsets),
        list(Position.parse(upper).offsets),
        events,
        late,
        duplicates,
        dead_letters,
        iso(started_at),
        iso(committed_at),
        (committed_at - started_at) / 1000,
    )


def _generations(db: sqlite3.Connection, stream: str | None) -> Iterator[GenerationShape]:
    rows = db.execute(_GENERATIONS, (stream,)).fetchall()
    boundaries: dict[str, list[tuple[int, Position]]] = {}
    for name, number, boundary, *_ in reversed(rows):
        boundaries.setdefault(name, []).append((number, Position.parse(boundary)))
    events = {
        (name, number): upper - lower
        for name, found in boundaries.items()
        for (_, lower), (number, upper) in pairwise(found)
    }
    for name, number, boundary, at, audits in rows:
        position = Position.parse(boundary)
        known = events.get((name, number), sum(position.offsets) if number == 1 else None)
        told = msgspec.json.decode(audits, type=list[AuditResult])
        yield GenerationShape(name, number, list(position.offsets), known, iso(at), told)


def _with_phases(epoch: EpochShape, progress: list[Any]) -> EpochShape:
    """The epoch with what Spark says of the micro-batch during which it was committed."""
    for batch in progress:
        began = from_iso(batch["timestamp"])
        ended = began + 1000 * batch["durationMs"].get("triggerExecution", 0)
        if began <= from_iso(epoch.committed_at) <= ended:
            return msgspec.structs.replace(epoch, phases=dict(batch["durationMs"]))
    return epoch
