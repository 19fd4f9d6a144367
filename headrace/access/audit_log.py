"""The audit log: who did or tried what to which object, when, and whether it was allowed.

It is append-only: triggers in the file reject UPDATE and DELETE. A process that can write the file
could drop the triggers, so each entry has a hash of itself and of the entry before: a change breaks
the chain from there on, and a copy of the newest hash, kept elsewhere, covers all entries before
it.

    chain = sha256(JSON of [chain before, number, at, user, token, what, object, decision, request,
                            detail], without spaces), of the first entry with "" before

Changes and refusals are logged; reads and sends that were allowed are counted.
tests/access/test_audit_log.py tries to change it.
"""

from __future__ import annotations

import hashlib
import sqlite3
from typing import Any, Literal

import msgspec
from msgspec.structs import astuple, replace

from headrace.access.object import NAME_MAX
from headrace.core.time import iso

AuditDecision = Literal["allowed", "refused"]
ALLOWED: AuditDecision = "allowed"
REFUSED: AuditDecision = "refused"
ANONYMOUS = "anonymous"
LISTED = 100
DETAIL_MAX = 500  # a refusal quotes names as they were sent
_ENTRIES = (
    "SELECT number, at, user, token, what, object, decision, request, detail, chain FROM audit_log"
)
_SEARCHED = (
    "user || ' ' || token || ' ' || what || ' ' || object || ' ' || detail || ' ' || request"
)


class Actor(msgspec.Struct, frozen=True):
    """The user who makes a change, with the token and the request."""

    user: str
    token: str = ""
    request: str = ""


class AuditLogEntry(msgspec.Struct, frozen=True):
    number: int
    at: str
    user: str
    token: str  # its id; empty if the change was made on the files directly
    what: str  # the name of the route
    object: str
    decision: AuditDecision
    request: str
    detail: str = ""
    chain: str = ""  # of this entry and all before it

    def follows(self, chain: str) -> bool:
        """Whether this entry was appended after the entry with that chain."""
        return self.chain == _chain(chain, *astuple(self)[:-1])


class AuditLog(msgspec.Struct, frozen=True):
    """The newest entries first, or those after a number, the oldest first."""

    entries: list[AuditLogEntry]
    total: int  # how many match, on all pages


class AuditLogVerification(msgspec.Struct, frozen=True):
    """The result of checking all entries."""

    entries: int
    head: str  # the chain of the newest one
    broken_at: int | None = None  # number of the first missing or changed entry


class AuditLogFilter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Selects entries; all given conditions must hold."""

    limit: int = LISTED
    before: int = 0  # the number of an entry: older ones; 0 for the newest
    after: int | None = None  # the number of an entry: newer ones, the oldest of them first
    user: str = ""
    decision: str = ""
    what: str = ""
    find: str = ""  # words, each of which the entry contains


NEWEST = AuditLogFilter()


def append(
    db: sqlite3.Connection,
    actor: Actor,
    what: str,
    object: str,
    now_us: int,
    decision: AuditDecision = ALLOWED,
    detail: str = "",
) -> None:
    """Add an entry, inside the caller's transaction."""
    newest = db.execute("SELECT number, chain FROM audit_log ORDER BY number DESC LIMIT 1")
    number, before = newest.fetchone() or (0, "")
    fields = (
        actor.user,
        actor.token,
        what,
        object[:NAME_MAX],
        decision,
        actor.request,
        detail[:DETAIL_MAX],
    )
    chain = _chain(before, number + 1, iso(now_us), *fields)
    db.execute(
        "INSERT INTO audit_log VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (number + 1, now_us, *fields, chain),
    )


def _chain(before: str, *fields: str | int) -> str:
    return hashlib.sha256(msgspec.json.encode([before, *fields])).hexdigest()


def verify(db: sqlite3.Connection) -> AuditLogVerification:
    """Recompute every chain, and compare the newest number with the last one assigned."""
    many, head = 0, ""
    for many, row in enumerate(db.execute(f"{_ENTRIES} ORDER BY number"), start=1):
        entry = _entry(row)
        if entry.number != many or not entry.follows(head):
            return AuditLogVerification(many - 1, head, many)
        head = entry.chain
    last = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'audit_log'").fetchone()
    cut = last is not None and last[0] != many
    return AuditLogVerification(many, head, many + 1 if cut else None)


def read(db: sqlite3.Connection, filter: AuditLogFilter) -> AuditLog:
    """The selected entries, and how many there are."""
    where, given = _conditions(filter)
    all_pages, matching = _conditions(replace(filter, before=0))
    total = db.execute(f"SELECT count(*) FROM audit_log WHERE {all_pages}", matching).fetchone()
    order = "DESC" if filter.after is None else "ASC"
    rows = db.execute(
        f"{_ENTRIES} WHERE {where} ORDER BY number {order} LIMIT ?", (*given, filter.limit)
    )
    return AuditLog([_entry(row) for row in rows], int(total[0]))


def _entry(row: tuple[Any, ...]) -> AuditLogEntry:
    number, at, *rest = row
    return AuditLogEntry(number, iso(at), *rest)


def _conditions(filter: AuditLogFilter) -> tuple[str, list[str | int]]:
    where, given = ["TRUE"], list[str | int]()
    if filter.before:
        where.append("number < ?")
        given.append(filter.before)
    if filter.after is not None:
        where.append("number > ?")
        given.append(filter.after)
    for column in ("user", "decision", "what"):
        if value := getattr(filter, column):
            where.append(f"{column} = ?")
            given.append(value)
    for word in filter.find.split():
        where.append(f"instr(lower({_SEARCHED}), lower(?))")
        given.append(word)
    return " AND ".join(where), given
