"""The outbox of a sink: what it has told and what is still to be delivered, in the store.

The account after a look and the look's panes are saved in one transaction, before anything is
delivered. So a pane is decided once: after a kill it is found here with its number, and is never
computed again from an answer that has moved on. What is delivered is marked and dropped. After a
restore the numbers go on where the copy was, so later panes are told from those by another `begun`.
tests/run/test_sinks.py checks it, tests/run/test_sinks_killed.py with kills.
"""

from __future__ import annotations

from secrets import token_hex

import msgspec

from headrace.core.failpoint import failpoint
from headrace.serving.account import Account, Look, Told
from headrace.serving.database import Database, Transaction

Waiting = list[tuple[int, bytes]]  # sequence and pane


class Outbox:
    """One sink's."""

    def __init__(self, db: Database, sink: str) -> None:
        self.db, self.sink = db, sink
        #: Tells the numbers of this sink from those of an earlier one, which began at 1 too.
        self.begun = ""

    def open(self, fingerprint: str) -> Account:
        """The account as it was saved; a sink that means something else now begins anew, with
        numbers that go on.
        """
        with self.db.write() as db:
            db.execute(
                "INSERT INTO _sinks VALUES (?, ?, 0, 0, NULL, 0, ?) ON CONFLICT DO NOTHING",
                (self.sink, fingerprint, token_hex(4)),
            )
            known, sequence, watermark, dropped, self.begun = db.execute(
                "SELECT fingerprint, sequence, watermark_us, dropped, begun FROM _sinks "
                "WHERE name = ?",
                (self.sink,),
            ).fetchone()
            if known != fingerprint:
                db.execute("DELETE FROM _sink_rows WHERE sink = ?", (self.sink,))
                db.execute(
                    "UPDATE _sinks SET fingerprint = ?, watermark_us = NULL WHERE name = ?",
                    (fingerprint, self.sink),
                )
                return Account(sequence, None, dropped)
            rows = db.execute("SELECT key, told FROM _sink_rows WHERE sink = ?", (self.sink,))
            told = {key: msgspec.json.decode(text, type=Told) for key, text in rows}
        return Account(sequence, watermark, dropped, told)

    def save(self, look: Look) -> None:
        """Decide on a look's panes."""
        panes = [(self.sink, p.sequence, msgspec.json.encode(p)) for p in look.panes]
        gone = [(self.sink, key) for key, told in look.changed.items() if told is None]
        kept = [(self.sink, k, msgspec.json.encode(t)) for k, t in look.changed.items() if t]
        with self.db.write() as db:
            db.executemany("INSERT INTO _outbox VALUES (?, ?, ?)", panes)
            db.executemany("DELETE FROM _sink_rows WHERE sink = ? AND key = ?", gone)
            db.executemany(
                "INSERT INTO _sink_rows VALUES (?, ?, ?) "
                "ON CONFLICT (sink, key) DO UPDATE SET told = excluded.told",
                kept,
            )
            db.execute(
                "UPDATE _sinks SET sequence = ?, watermark_us = ?, dropped = ? WHERE name = ?",
                (look.sequence, look.watermark_us, look.dropped, self.sink),
            )
            failpoint("sink.saving")
        failpoint("sink.saved")

    def waiting(self, limit: int) -> Waiting:
        """The oldest panes that are not delivered."""
        with self.db.read() as db:
            return db.execute(
                "SELECT sequence, pane FROM _outbox WHERE sink = ? ORDER BY sequence LIMIT ?",
                (self.sink, limit),
            ).fetchall()

    def numbers(self) -> tuple[int, int, int, int]:
        """The newest pane, the newest that was delivered, how many wait, and changes dropped."""
        with self.db.read() as db:
            sequence, delivered, dropped = db.execute(
                "SELECT sequence, delivered, dropped FROM _sinks WHERE name = ?", (self.sink,)
            ).fetchone() or (0, 0, 0)
            (waiting,) = db.execute(
                "SELECT count(*) FROM _outbox WHERE sink = ?", (self.sink,)
            ).fetchone()
        return sequence, delivered, waiting, dropped

    def mark(self, sequence: int) -> None:
        """All panes up to this one are delivered."""
        with self.db.write() as db:
            db.execute(
                "DELETE FROM _outbox WHERE sink = ? AND sequence <= ?", (self.sink, sequence)
            )
            db.execute("UPDATE _sinks SET delivered = ? WHERE name = ?", (sequence, self.sink))

    def begin_again(self) -> None:
        """Give new ids to all that is delivered from now on."""
        with self.db.write() as db:
            draw_begun(db, self.sink)
            sql = "SELECT begun FROM _sinks WHERE name = ?"
            (self.begun,) = db.execute(sql, (self.sink,)).fetchone()


def draw_begun(db: Transaction, sink: str | None = None) -> None:
    """Tell the panes of a sink, or of all, from those that had the same numbers."""
    known = [name for (name,) in db.execute("SELECT name FROM _sinks").fetchall()]
    for name in known if sink is None else [sink]:
        db.execute("UPDATE _sinks SET begun = ? WHERE name = ?", (token_hex(4), name))


def forget_others(db: Database, sinks: set[str]) -> None:
    """Drop what sinks have left that are no longer defined."""
    with db.write() as connection:
        known = [name for (name,) in connection.execute("SELECT name FROM _sinks").fetchall()]
        for name in set(known) - sinks:
            for table, column in (("_sinks", "name"), ("_sink_rows", "sink"), ("_outbox", "sink")):
                connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (name,))


def sequences(db: Transaction) -> dict[str, int]:
    """How many panes each sink has decided on."""
    return dict(db.execute("SELECT name, sequence FROM _sinks").fetchall())
