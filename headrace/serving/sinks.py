"""What a sink has told, in the store: its account, and what tells its panes from earlier ones.

The account after a look and the look's panes are saved in one transaction, before anything is
delivered. So a pane is decided once: after a kill it is found in the outbox with its number, and is
never computed again from an answer that has moved on. Numbers have no gap, so what waits are the
newest. After a restore the numbers continue where the copy was, so later panes are told from those
by another `begun`. tests/run/test_sinks.py checks it, tests/run/test_sinks_killed.py with kills.
"""

from __future__ import annotations

from secrets import token_hex

import msgspec

from headrace.core.failpoint import failpoint
from headrace.serving.account import Account, Look, Told
from headrace.serving.database import Database, Transaction
from headrace.serving.outbox import put_panes, sink_queue


def open_account(db: Database, sink: str, fingerprint: str) -> Account:
    """The account as it was saved; a sink that means something else now begins anew, with numbers
    that continue.
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
            return Account(sequence, None, dropped)
        rows = connection.execute("SELECT key, told FROM _sink_rows WHERE sink = ?", (sink,))
        told = {key: msgspec.json.decode(text, type=Told) for key, text in rows}
    return Account(sequence, watermark, dropped, told)


def save_look(db: Database, sink: str, look: Look, now_us: int) -> None:
    """Decide on a look's panes."""
    panes = [(pane.sequence, msgspec.json.encode(pane)) for pane in look.panes]
    gone = [(sink, key) for key, told in look.changed.items() if told is None]
    kept = [(sink, key, msgspec.json.encode(told)) for key, told in look.changed.items() if told]
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
            (look.sequence, look.watermark_us, look.dropped, sink),
        )
        failpoint("sink.saving")
    failpoint("sink.saved")


def numbers(db: Transaction, sink: str) -> tuple[int, int, int, int]:
    """The newest pane, the newest that was delivered, how many wait, and changes dropped."""
    found = "SELECT sequence, dropped FROM _sinks WHERE name = ?"
    sequence, dropped = db.execute(found, (sink,)).fetchone() or (0, 0)
    counted = "SELECT count(*) FROM _outbox WHERE queue = ? AND state = 'waiting'"
    (waiting,) = db.execute(counted, (sink_queue(sink),)).fetchone()
    return sequence, sequence - waiting, waiting, dropped


def mark_up_to(db: Database, sink: str, number: int) -> None:
    """All panes up to this one are delivered."""
    with db.write() as connection:
        connection.execute(
            "DELETE FROM _outbox WHERE queue = ? AND CAST(key AS INTEGER) <= ?",
            (sink_queue(sink), number),
        )


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
