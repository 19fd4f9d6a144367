"""The audit log: who did or tried what to which object, when, and whether it was allowed.

It is only appended to: triggers in the file forbid to change and to delete, whoever writes. Whoever
can write the file could remove them, so each entry has a hash of itself and the one before: a
change anywhere shows from there on, and the newest hash, kept elsewhere, speaks for all before it.

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
from msgspec.structs import astuple

from headrace.access.object import NAME_MAX
from headrace.core.time import iso

Decision = Literal["allowed", "refused"]
ALLOWED: Decision = "allowed"
REFUSED: Decision = "refused"
NOBODY = "nobody"
LISTED = 100
DETAIL_MAX = 500  # a refusal tells names as they were sent
_ENTRIES = (
    "SELECT number, at, user, token, what, object, decision, request, detail, chain FROM audit_log"
)
_SAID = "user || ' ' || token || ' ' || what || ' ' || object || ' ' || detail || ' ' || request"


class By(msgspec.Struct, frozen=True):
    """Who makes a change, with which token, in which request."""

    user: str
    token: str = ""
    request: str = ""


class Entry(msgspec.Struct, frozen=True):
    number: int
    at: str
    user: str
    token: str  # its id; empty if the change was made on the files
    what: str  # the name of the route
    object: str
    decision: Decision
    request: str
    detail: str = ""
    chain: str = ""  # of this entry and all before it

    def follows(self, chain: str) -> bool:
        """Whether it is what was appended behind the entry of that chain."""
        return self.chain == _chain(chain, *astuple(self)[:-1])


class Verified(msgspec.Struct, frozen=True):
    """What came of a look at all entries."""

    entries: int
    head: str  # the chain of the newest one
    broken_at: int | None = None  # the first number whose entry is not what was appended


class Wanted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which entries are asked for: those of which all that is given holds."""

    limit: int = LISTED
    before: int = 0  # the number of an entry: older ones; 0 for the newest
    after: int | None = None  # the number of an entry: newer ones, the oldest of them first
    user: str = ""
    decision: str = ""
    what: str = ""
    find: str = ""  # words, each of which stands somewhere in the entry


NEWEST = Wanted()


def append(
    db: sqlite3.Connection,
    by: By,
    what: str,
    object: str,
    now_us: int,
    decision: Decision = ALLOWED,
    detail: str = "",
) -> None:
    """Add an entry, inside the caller's transaction."""
    newest = db.execute("SELECT number, chain FROM audit_log ORDER BY number DESC LIMIT 1")
    number, before = newest.fetchone() or (0, "")
    said = (by.user, by.token, what, object[:NAME_MAX], decision, by.request, detail[:DETAIL_MAX])
    chain = _chain(before, number + 1, iso(now_us), *said)
    db.execute(
        "INSERT INTO audit_log VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (number + 1, now_us, *said, chain),
    )


def _chain(before: str, *said: str | int) -> str:
    return hashlib.sha256(msgspec.json.encode([before, *said])).hexdigest()


def verify(db: sqlite3.Connection) -> Verified:
    """Compute every chain again, and compare the newest number with the one that was given last."""
    many, head = 0, ""
    for many, row in enumerate(db.execute(f"{_ENTRIES} ORDER BY number"), start=1):
        entry = _entry(row)
        if entry.number != many or not entry.follows(head):
            return Verified(many - 1, head, many)
        head = entry.chain
    last = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'audit_log'").fetchone()
    cut = last is not None and last[0] != many
    return Verified(many, head, many + 1 if cut else None)


def entries(db: sqlite3.Connection, wanted: Wanted) -> list[Entry]:
    """The newest first; those after a number the oldest first."""
    where, given = _conditions(wanted)
    order = "DESC" if wanted.after is None else "ASC"
    rows = db.execute(
        f"{_ENTRIES} WHERE {' AND '.join(where)} ORDER BY number {order} LIMIT ?",
        (*given, wanted.limit),
    )
    return [_entry(row) for row in rows]


def _entry(row: tuple[Any, ...]) -> Entry:
    number, at, *rest = row
    return Entry(number, iso(at), *rest)


def _conditions(wanted: Wanted) -> tuple[list[str], list[str | int]]:
    where, given = ["TRUE"], list[str | int]()
    if wanted.before:
        where.append("number < ?")
        given.append(wanted.before)
    if wanted.after is not None:
        where.append("number > ?")
        given.append(wanted.after)
    for column in ("user", "decision", "what"):
        if value := getattr(wanted, column):
            where.append(f"{column} = ?")
            given.append(value)
    for word in wanted.find.split():
        where.append(f"instr(lower({_SAID}), lower(?))")
        given.append(word)
    return where, given
