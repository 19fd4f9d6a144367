"""What speed has passed over, kept epoch by epoch: the range, the decision and the exact number.

While a boundary has not absorbed such an epoch, every answer of its stream says that it is sampled.
A boundary is never inside an epoch, so an epoch is absorbed as a whole. The rows of the newest
epochs stay for whoever asks how an answer came about. tests/serving/test_shed_epochs.py checks this.
"""

from __future__ import annotations

from collections.abc import Iterator

from headrace.core.position import Position, PositionRange
from headrace.core.shedding import Shedding
from headrace.serving.database import Transaction
from headrace.serving.store import Epoch, ShedEpoch


def note_shed(db: Transaction, epoch: Epoch, number: int) -> None:
    """Keep what an epoch has passed over, inside the transaction that commits it."""
    if epoch.shedding is None:
        return
    texts = map(str, (epoch.range.lower, epoch.range.upper, epoch.shedding))
    total = shed_total(db, epoch.stream) + epoch.shed
    db.execute(
        "INSERT INTO _shed VALUES (?, ?, ?, ?, ?, ?, ?)",
        (epoch.stream, number, *texts, epoch.shed, total),
    )


def shed_epochs(
    db: Transaction, stream: str, boundary: Position | None = None
) -> Iterator[ShedEpoch]:
    """The epochs that passed over events, newest first; only those after a boundary if it is
    given."""
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


def shed_total(db: Transaction, stream: str) -> int:
    """All events that speed has ever passed over."""
    row = db.execute(
        "SELECT total FROM _shed WHERE stream = ? ORDER BY number DESC LIMIT 1", (stream,)
    ).fetchone()
    return int(row[0]) if row else 0


def forget_shed(db: Transaction, stream: str, before: int, boundary: Position) -> None:
    """Drop what is absorbed and older than the epochs that are kept; the newest row has the
    total."""
    for shed in list(shed_epochs(db, stream))[1:]:
        if shed.number <= before and shed.range.upper <= boundary:
            db.execute("DELETE FROM _shed WHERE stream = ? AND number = ?", (stream, shed.number))
