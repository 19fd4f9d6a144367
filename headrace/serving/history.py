"""The history in the store: the newest epochs and generations of each flow.

tests/serving/test_history.py reads it back; the console and `headrace why` show it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headrace.core.position import Position, PositionRange
from headrace.serving.database import Transaction
from headrace.serving.store import AuditResult
from headrace.serving.stored_json import decode_stored


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """A committed epoch."""

    number: int
    stream: str
    range: PositionRange
    events: int
    late: int
    duplicates: int
    dead_letters: int
    started_at: int
    committed_at: int


@dataclass(frozen=True, slots=True)
class GenerationRecord:
    """A promoted generation, with the results of its audit."""

    stream: str
    number: int
    boundary: Position
    promoted_at: int
    audits: tuple[AuditResult, ...]


def read_epochs(
    db: Transaction, stream: str | None = None, limit: int = 1_000
) -> Iterator[EpochRecord]:
    """The newest first, of one flow or of all."""
    rows = db.execute(
        "SELECT number, stream, lower, upper, events, late, duplicates, dead_letters, started_at, "
        "committed_at FROM _epochs WHERE CAST(?1 AS TEXT) IS NULL OR stream = ?1 "
        "ORDER BY number DESC LIMIT ?2",
        (stream, limit),
    )
    for number, name, lower, upper, *counts in rows:
        range = PositionRange(Position.parse(lower), Position.parse(upper))
        yield EpochRecord(number, name, range, *counts)


def read_generations(
    db: Transaction, stream: str | None = None, limit: int = 100_000
) -> Iterator[GenerationRecord]:
    """The newest first, of one flow or of all."""
    rows = db.execute(
        "SELECT stream, number, boundary, promoted_at, audits FROM _generations "
        "WHERE CAST(?1 AS TEXT) IS NULL OR stream = ?1 "
        "ORDER BY promoted_at DESC, number DESC LIMIT ?2",
        (stream, limit),
    )
    for name, number, boundary, promoted_at, audits in rows:
        found = decode_stored(audits, tuple[AuditResult, ...])
        yield GenerationRecord(name, number, Position.parse(boundary), promoted_at, found)


def newest_audit(db: Transaction, stream: str, view: str) -> tuple[AuditResult, int] | None:
    """The audit of a view at the newest promotion, and its time."""
    for generation in read_generations(db, stream, limit=1):
        for audit in generation.audits:
            if audit.view == view:
                return audit, generation.promoted_at
    return None


def count_epochs(db: Transaction, since_us: int, stream: str | None = None) -> int:
    """How many epochs were committed since a time, of those in the history: of one flow or all."""
    sql = (
        "SELECT count(*) FROM _epochs WHERE committed_at >= ?1 "
        "AND (CAST(?2 AS TEXT) IS NULL OR stream = ?2)"
    )
    return int(db.execute(sql, (since_us, stream)).fetchone()[0])


def read_late(db: Transaction, stream: str) -> int:
    """How many late events speed has processed."""
    return int(db.execute("SELECT late FROM _streams WHERE name = ?", (stream,)).fetchone()[0])
