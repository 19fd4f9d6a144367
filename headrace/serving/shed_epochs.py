"""The epochs in which speed has shed events: the range, the decision and the exact number.

While such an epoch is after the boundary, every answer of its stream says that it is sampled. A
boundary is never inside an epoch, so an epoch is absorbed as a whole. The rows of the newest epochs
stay, for `headrace why`. tests/serving/test_shed_epochs.py checks this.
"""

from __future__ import annotations

from collections.abc import Iterator

from headrace.core.position import Position, PositionRange
from headrace.core.shedding import Shedding
from headrace.serving.database import Transaction
from headrace.serving.store import Epoch, ShedEpoch


def record_shed(db: Transaction, epoch: Epoch, number: int) -> None:
    """Record the events that an epoch has shed, inside the transaction that commits it."""
    if epoch.shedding is None:
        return
    texts = map(str, (epoch.range.lower, epoch.range.upper, epoch.shedding))
    total = count_shed_events(db, epoch.stream) + epoch.shed
    db.execute(
        "INSERT INTO _shed VALUES (?, ?, ?, ?, ?, ?, ?)",
        (epoch.stream, number, *texts, epoch.shed, total),
    )


def read_shed_epochs(
    db: Transaction, stream: str, boundary: Position | None = None
) -> Iterator[ShedEpoch]:
    """The epochs that shed events, newest first; with a boundary, only those after it."""
    rows = db.execute(
        "SELECT number, lower, upper, decision, events FROM _shed WHERE stream = ? "
        "ORDER BY number DESC",
        (stream,),
    )
    for number, lower, upper, decision, events in rows:
        range = PositionRange(Position.parse(lower), Position.parse(upper))
        if boundary is not None and range.upper <= boundary:
            return
        yield ShedEpoch(number, range, Shedding.parse(decision), events)


def count_shed_events(db: Transaction, stream: str) -> int:
    """How many events speed has shed since the stream was created."""
    row = db.execute(
        "SELECT total FROM _shed WHERE stream = ? ORDER BY number DESC LIMIT 1", (stream,)
    ).fetchone()
    return int(row[0]) if row else 0


def drop_shed(db: Transaction, stream: str, before: int, boundary: Position) -> None:
    """Drop rows that are absorbed and older than the epochs that are kept. The newest row stays,
    because it has the total.
    """
    for shed in list(read_shed_epochs(db, stream))[1:]:
        if shed.number <= before and shed.range.upper <= boundary:
            db.execute("DELETE FROM _shed WHERE stream = ? AND number = ?", (stream, shed.number))
