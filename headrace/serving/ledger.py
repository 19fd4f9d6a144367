"""The ledger of alerts: read and acknowledged.

An alert is written once, when it is raised (serving/raising.py). After that only what people and
batch say of it changes: who has acknowledged it, and whether it was withdrawn. `alerts` is the same
ledger as a view. tests/run/test_rulebook.py checks it.
"""

from __future__ import annotations

import sqlite3
from typing import Any

import msgspec

from headrace.core.errors import NotFound
from headrace.core.time import iso
from headrace.serving.notices import Delivery, deliveries

_COLUMNS = (
    "id, rule, version, severity, state, body, event_time, raised_at, raised_by, missed, "
    "suppressed_by, withdrawn_at, acknowledged_by, acknowledged_at, note"
)
LISTED = 100


class Alert(msgspec.Struct, frozen=True):
    """One alert as it is told."""

    id: str
    rule: str
    version: int
    severity: str
    state: str  # open, acknowledged, suppressed, muted, backfilled, missed
    body: dict[str, Any]
    event_time: str
    raised_at: str
    raised_by: str  # speed, or the generation
    missed: bool = False  # speed had been there and had not found it
    suppressed_by: str | None = None
    withdrawn_at: str | None = None  # when batch did not find it
    acknowledged_by: str | None = None
    acknowledged_at: str | None = None
    note: str | None = None
    deliveries: list[Delivery] = []


class Wanted(msgspec.Struct, frozen=True):
    """Which alerts are asked for."""

    rule: str | None = None
    state: str | None = None
    missed: bool = False
    withdrawn: bool = False
    limit: int = LISTED


class Numbers(msgspec.Struct, frozen=True):
    """How many alerts of a rule there are of each kind, and how many notifications."""

    alerts: int = 0
    open: int = 0
    suppressed: int = 0
    muted: int = 0
    missed: int = 0
    withdrawn: int = 0
    waiting: int = 0
    failed: int = 0


def changed(db: sqlite3.Connection) -> None:
    """Let those who watch the ledger know, inside the caller's transaction."""
    db.execute(
        "INSERT INTO _meta VALUES ('ledger', '1') "
        "ON CONFLICT DO UPDATE SET value = CAST(value AS INTEGER) + 1"
    )


def changes(db: sqlite3.Connection) -> str:
    """Grows with each change of the ledger."""
    row = db.execute("SELECT value FROM _meta WHERE key = 'ledger'").fetchone()
    return str(row[0]) if row else "0"


def alerts(db: sqlite3.Connection, wanted: Wanted) -> list[Alert]:
    """The newest alerts of those that are asked for. `missed` and `withdrawn` together mean those
    that are one of both."""
    conditions, values = ["1"], list[Any]()
    for column in ("rule", "state"):
        if value := getattr(wanted, column):
            conditions.append(f"{column} = ?")
            values.append(value)
    kinds = ["missed"] if wanted.missed else []
    kinds += ["withdrawn_at IS NOT NULL"] if wanted.withdrawn else []
    if kinds:
        conditions.append(f"({' OR '.join(kinds)})")
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM _ledger WHERE {' AND '.join(conditions)} "
        "ORDER BY number DESC LIMIT ?",
        (*values, wanted.limit),
    )
    return [_alert(row) for row in rows]


def alert(db: sqlite3.Connection, id: str) -> Alert:
    """One alert, with what became of its notifications. The beginning of its id is enough."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM _ledger WHERE id >= ?1 AND id < ?1 || 'g' LIMIT 2", (id,)
    ).fetchall()
    exact = [row for row in rows if row[0] == id]
    if len(exact or rows) != 1:
        several = "several alerts begin with" if rows else "there is no alert"
        raise NotFound(f"{several} '{id[:64]}'")
    found = _alert((exact or rows)[0])
    return msgspec.structs.replace(found, deliveries=deliveries(db, found.rule, found.id))


def _alert(row: tuple[Any, ...]) -> Alert:
    values = dict(zip(_COLUMNS.split(", "), row, strict=True))
    values["body"] = msgspec.json.decode(values["body"])
    values["missed"] = bool(values["missed"])
    for name in ("event_time", "raised_at", "withdrawn_at", "acknowledged_at"):
        values[name] = iso(values[name]) if values[name] is not None else None
    return Alert(**values)


def alert_document(db: sqlite3.Connection, id: str) -> dict[str, Any]:
    """An alert as notifications say it, and whether it was notified."""
    row = db.execute(
        "SELECT rule, severity, event_time, raised_at, raised_by, body, withdrawn_at, "
        "quiet IS NULL FROM _alerts WHERE id = ?",
        (id,),
    ).fetchone()
    rule, severity, time, raised_at, raised_by, body, withdrawn_at, notified = row
    return {
        "id": id, "rule": rule, "severity": severity, "event_time": iso(time),
        "raised_at": iso(raised_at), "raised_by": raised_by, "body": msgspec.json.decode(body),
        "withdrawn_at": iso(withdrawn_at) if withdrawn_at else None, "notified": bool(notified),
    }  # fmt: skip


def acknowledge(db: sqlite3.Connection, id: str, who: str, note: str | None, now_us: int) -> Alert:
    """Somebody has seen it; a second time changes the note and says who was last."""
    found = alert(db, id)
    db.execute(
        "UPDATE _alerts SET acknowledged_by = ?, acknowledged_at = ?, note = ? WHERE id = ?",
        (who, now_us, note, found.id),
    )
    changed(db)
    return alert(db, found.id)


def numbers(db: sqlite3.Connection, rule: str) -> Numbers:
    states = dict(
        db.execute("SELECT state, count(*) FROM _ledger WHERE rule = ? GROUP BY state", (rule,))
    )
    missed, withdrawn = db.execute(
        "SELECT coalesce(sum(missed), 0), count(withdrawn_at) FROM _alerts WHERE rule = ?", (rule,)
    ).fetchone()
    sent = dict(
        db.execute("SELECT state, count(*) FROM _notices WHERE rule = ? GROUP BY state", (rule,))
    )
    return Numbers(
        sum(states.values()),
        states.get("open", 0),
        states.get("suppressed", 0),
        states.get("muted", 0),
        missed,
        withdrawn,
        sent.get("waiting", 0),
        sent.get("failed", 0),
    )
