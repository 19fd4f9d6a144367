"""The outbox: all panes and notifications to deliver, one table with many queues.

A message is inserted in the transaction that creates it, before anything is delivered, under a key
that is unique in its queue. So it is created once, and found after a kill. Waiting messages are in
the table and not in memory, however long they wait.

    panes           a queue for each sink, in their order; a delivered pane is deleted
    notifications   a queue for each destination, shared by all rules; a failed one is retried later
                    while the others are delivered, and its state is kept with its alerts

The key of a pane contains the incarnation of its sink, which distinguishes it from an earlier pane
with the same number (headrace/serving/sinks.py). tests/run/test_deliveries.py checks the queues.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headrace.destination.protocol import Message
from headrace.serving.database import Database, Transaction

# Panes are due before all else, in the order of their numbers, whatever the clock says.
_AT_ONCE = 0
_DUE = """
SELECT number, coalesce(s.name || ':' || s.begun || ':', '') || key, body, attempts
FROM _outbox LEFT JOIN _sinks s ON s.name = sink
WHERE queue = ? AND state = 'waiting' AND due_at <= ? ORDER BY due_at, number LIMIT ?
"""
_DUE_QUEUES = """
WITH RECURSIVE queues(name) AS (
  SELECT min(queue) FROM _outbox WHERE state = 'waiting'
  UNION ALL
  SELECT (SELECT min(queue) FROM _outbox WHERE state = 'waiting' AND queue > queues.name)
  FROM queues WHERE name IS NOT NULL)
SELECT name FROM queues WHERE EXISTS (
  SELECT 1 FROM _outbox
  WHERE queue = queues.name AND state = 'waiting' AND due_at <= ?)
"""


def sink_queue(sink: str) -> str:
    """The queue of a sink's panes."""
    return f"sink {sink}"


def put_panes(db: Transaction, sink: str, panes: Iterable[tuple[int, bytes]], now_us: int) -> None:
    """Queue panes, each with its number, inside the caller's transaction."""
    db.executemany(
        "INSERT INTO _outbox (queue, key, sink, body, state, attempts, due_at, queued_at) "
        "VALUES (?, ?, ?, ?, 'waiting', 0, ?, ?)",
        [(sink_queue(sink), str(n), sink, body, _AT_ONCE, now_us) for n, body in panes],
    )


def put_notification(
    db: Transaction,
    queues: Iterable[str],
    key: str,
    rule: str,
    alerts: str,
    body: bytes,
    now_us: int,
) -> None:
    """Queue one notification in each of these queues, unless its key exists, inside the caller's
    transaction.
    """
    db.executemany(
        "INSERT INTO _outbox (queue, key, rule, alerts, body, state, attempts, due_at, queued_at) "
        "VALUES (?1, ?2, ?3, ?4, ?5, 'waiting', 0, ?6, ?6) ON CONFLICT DO NOTHING",
        [(queue, key, rule, alerts, body, now_us) for queue in queues],
    )


def due_queues(db: Transaction, now_us: int) -> list[str]:
    """The queues with messages that are due. It is called ten times a second, so the index is
    searched once for each queue: reading all waiting messages takes 80 ms for 200,000 of them.
    """
    return [queue for (queue,) in db.execute(_DUE_QUEUES, (now_us,))]


@dataclass(frozen=True, slots=True)
class Queue:
    """One queue of the outbox."""

    db: Database
    name: str

    def due(self, now_us: int, limit: int) -> list[Message]:
        """The oldest messages that are due."""
        with self.db.read() as db:
            return [Message(*row) for row in db.execute(_DUE, (self.name, now_us, limit))]

    def delivered(self, messages: Sequence[Message], now_us: int) -> None:
        """Delete delivered panes; of a notification all but its body is kept."""
        numbers = [(message.number,) for message in messages]
        with self.db.write() as db:
            db.executemany("DELETE FROM _outbox WHERE number = ? AND sink IS NOT NULL", numbers)
            db.executemany(
                "UPDATE _outbox SET state = 'delivered', attempts = attempts + 1, reason = NULL, "
                f"ended_at = {int(now_us)}, body = NULL WHERE number = ?",
                numbers,
            )

    def failed(self, messages: Sequence[Message], reason: str, now_us: int) -> None:
        """Give up messages; they are kept with the reason."""
        self._update(messages, "state = 'failed', reason = ?, ended_at = ?", reason, now_us)

    def retry_later(self, messages: Sequence[Message], reason: str, due_us: int) -> None:
        self._update(messages, "reason = ?, due_at = ?", reason, due_us)

    def _update(self, messages: Sequence[Message], what: str, reason: str, at_us: int) -> None:
        with self.db.write() as db:
            db.executemany(
                f"UPDATE _outbox SET attempts = attempts + 1, {what} WHERE number = ?",
                [(reason, at_us, message.number) for message in messages],
            )
