"""The progress of each flow, in speed and in batch: position, highest event times, watermarks."""

from __future__ import annotations

import msgspec

from headrace.compile.flow import FlowPlan
from headrace.core.errors import NotFound
from headrace.core.msgspec_types import prepare_types
from headrace.core.position import Position
from headrace.serving.database import Transaction
from headrace.serving.shed_epochs import read_shed_epochs
from headrace.serving.store import GroupState, StreamState
from headrace.serving.stored_json import decode_stored
from headrace.serving.watermark import FlowProgress, Times

prepare_types(FlowPlan, Times)


def read_stream(db: Transaction, name: str) -> StreamState:
    row = db.execute(
        "SELECT plan, generation, committed_at, promoted_at, marks, "
        "boundary, boundary_highs, boundary_marks FROM _streams WHERE name = ?",
        (name,),
    ).fetchone()
    if row is None:
        raise NotFound(f"there is no stream '{name}'")
    progress = db.execute(
        "SELECT next_offset, high_us, heard_at FROM _progress WHERE stream = ? ORDER BY partition",
        (name,),
    ).fetchall()
    offsets, highs, received_at = zip(*progress, strict=True)
    built = _progress(*row[5:])
    return StreamState(
        decode_stored(row[0], FlowPlan),
        FlowProgress(Position(offsets), highs, read_times(row[4])),
        built,
        row[1],
        received_at,
        committed_at=row[2],
        promoted_at=row[3],
        shed=sum(shed.events for shed in read_shed_epochs(db, name, built.position)),
    )


def read_offsets(db: Transaction, stream: str) -> tuple[int, ...]:
    """The next offset of each partition of a stream."""
    sql = "SELECT next_offset FROM _progress WHERE stream = ? ORDER BY partition"
    return tuple(row[0] for row in db.execute(sql, (stream,)))


def read_groups(db: Transaction, stream: str, *, closed: bool = False) -> list[GroupState]:
    """The groups of a stream, or those that are closed."""
    rows = db.execute(
        "SELECT number, upper, highs, marks FROM _groups WHERE stream = ? AND closed >= ? "
        "ORDER BY number",
        (stream, closed),
    )
    return [GroupState(number, _progress(*columns)) for number, *columns in rows]


def advance(db: Transaction, before: StreamState, reached: FlowProgress, now_us: int) -> None:
    """Set the progress of a stream; the events up to there count as received now."""
    columns = (reached.position.offsets, reached.highs, before.received(reached.position, now_us))
    for partition, values in enumerate(zip(*columns, strict=True)):
        db.execute(
            "UPDATE _progress SET next_offset = ?, high_us = ?, heard_at = ? "
            "WHERE stream = ? AND partition = ?",
            (*values, before.plan.name, partition),
        )
    db.execute(
        "UPDATE _streams SET marks = ?, listened_at = ? WHERE name = ?",
        (stored_times(reached.marks), now_us, before.plan.name),
    )


def resume_idle_times(db: Transaction, now_us: int) -> None:
    """Time without a running process is not idle time: a process that starts continues with the
    idle time of each partition at the newest commit.
    """
    since = "SELECT listened_at FROM _streams WHERE name = stream"
    db.execute(f"UPDATE _progress SET heard_at = heard_at + ? - ({since})", (now_us,))
    db.execute("UPDATE _streams SET listened_at = ? WHERE listened_at IS NOT NULL", (now_us,))


def stored_times(times: Times) -> str:
    return msgspec.json.encode(times).decode()


def read_times(text: str) -> Times:
    return msgspec.json.decode(text, type=Times)


def _progress(position: str, highs: str, marks: str) -> FlowProgress:
    return FlowProgress(Position.parse(position), read_times(highs), read_times(marks))


def count_processed(db: Transaction) -> dict[str, int]:
    """How many records of each flow speed has processed."""
    sql = "SELECT stream, sum(next_offset) FROM _progress GROUP BY stream"
    return {name: int(records) for name, records in db.execute(sql).fetchall()}
