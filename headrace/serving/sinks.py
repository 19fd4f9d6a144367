"""The state of sinks in the store: what each has emitted, and the incarnation of its numbers.

The state after an emission and its panes are saved in one transaction, before anything is
delivered. So a pane is computed once: after a kill it is in the outbox with its number, and is
never computed again from a newer answer. Numbers have no gaps, so the waiting panes are the newest.
After a restore the numbers continue from the copy; a new incarnation (the column `begun`)
distinguishes later panes from those that had the same numbers. tests/run/test_sinks.py checks it,
tests/run/test_sinks_killed.py with kills.
"""

from __future__ import annotations

from secrets import token_hex

import msgspec

from headrace.core.failpoint import failpoint
from headrace.serving.database import Database, Transaction
from headrace.serving.emit_state import Emission, EmitState, EmittedRow
from headrace.serving.outbox import put_panes, sink_queue
from headrace.serving.stored_json import decode_stored


def open_state(db: Database, sink: str, fingerprint: str) -> EmitState:
    """The saved state. A sink whose definition has changed starts with an empty one; its numbers
    continue.
    """
    with db.write() as connection:
        connection.execute(
            "INSERT INTO _sinks VALUES (?, ?, 0, NULL, 0, ?) ON CONFLICT DO NOTHING",
            (sink, fingerprint, token_hex(4)),
        )
        known, sequence, watermark, dropped = connection.execute(
            "SELECT fingerprint, sequence, watermark_us, dropped FROM _sinks WHERE name = ?",
            (sink,),
        ).fetchone()
        if known != fingerprint:
            connection.execute("DELETE FROM _sink_rows WHERE sink = ?", (sink,))
            connection.execute(
                "UPDATE _sinks SET fingerprint = ?, watermark_us = NULL WHERE name = ?",
                (fingerprint, sink),
            )
            return EmitState(sequence, None, dropped)
        rows = connection.execute("SELECT key, told FROM _sink_rows WHERE sink = ?", (sink,))
        emitted = {key: decode_stored(text, EmittedRow) for key, text in rows}
    return EmitState(sequence, watermark, dropped, emitted)


def save_emission(db: Database, sink: str, emission: Emission, now_us: int) -> None:
    """Queue new panes and save the state after them."""
    panes = [(pane.sequence, msgspec.json.encode(pane)) for pane in emission.panes]
    changed = emission.changed.items()
    gone = [(sink, key) for key, entry in changed if entry is None]
    kept = [(sink, key, msgspec.json.encode(entry)) for key, entry in changed if entry]
    with db.write() as connection:
        put_panes(connection, sink, panes, now_us)
        connection.executemany("DELETE FROM _sink_rows WHERE sink = ? AND key = ?", gone)
        connection.executemany(
            "INSERT INTO _sink_rows VALUES (?, ?, ?) "
            "ON CONFLICT (sink, key) DO UPDATE SET told = excluded.told",
            kept,
        )
        connection.execute(
            "UPDATE _sinks SET sequence = ?, watermark_us = ?, dropped = ? WHERE name = ?",
            (emission.sequence, emission.watermark_us, emission.dropped, sink),
        )
        failpoint("sink.saving")
    failpoint("sink.saved")


def count_panes(db: Transaction, sink: str) -> tuple[int, int, int, int]:
    """The number of the newest pane and of the newest delivered one, how many wait, and how many
    changes were dropped.
    """
    found = "SELECT sequence, dropped FROM _sinks WHERE name = ?"
    sequence, dropped = db.execute(found, (sink,)).fetchone() or (0, 0)
    counted = "SELECT count(*) FROM _outbox WHERE queue = ? AND state = 'waiting'"
    (waiting,) = db.execute(counted, (sink_queue(sink),)).fetchone()
    return sequence, sequence - waiting, waiting, dropped


def mark_delivered(db: Database, sink: str, number: int) -> None:
    """Remove all panes up to this number from the outbox: they are delivered."""
    with db.write() as connection:
        connection.execute(
            "DELETE FROM _outbox WHERE queue = ? AND CAST(key AS INTEGER) <= ?",
            (sink_queue(sink), number),
        )


def renew_incarnation(db: Transaction, sink: str | None = None) -> None:
    """Distinguish later panes of a sink, or of all, from earlier ones with the same numbers."""
    known = [name for (name,) in db.execute("SELECT name FROM _sinks").fetchall()]
    for name in known if sink is None else [sink]:
        db.execute("UPDATE _sinks SET begun = ? WHERE name = ?", (token_hex(4), name))


def drop_undefined(db: Database, sinks: set[str]) -> None:
    """Drop the state and panes of sinks that are no longer defined."""
    with db.write() as connection:
        known = [name for (name,) in connection.execute("SELECT name FROM _sinks").fetchall()]
        for name in set(known) - sinks:
            for table, column in (("_sinks", "name"), ("_sink_rows", "sink"), ("_outbox", "sink")):
                connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (name,))


def sequences(db: Transaction) -> dict[str, int]:
    """How many panes each sink has emitted."""
    return dict(db.execute("SELECT name, sequence FROM _sinks").fetchall())
