"""The audit log: who did or tried what to which object, when, and whether it was allowed.

It is only appended to: triggers in the file forbid to change and to delete, whoever writes. Changes
and refusals are logged; reads and sends that were allowed are counted.
tests/access/test_access.py tries to change it.
"""

from __future__ import annotations

import sqlite3
from typing import Literal

import msgspec

from headrace.access.object import NAME_MAX
from headrace.core.time import iso

Decision = Literal["allowed", "refused"]
ALLOWED: Decision = "allowed"
REFUSED: Decision = "refused"
NOBODY = "nobody"
LISTED = 100
DETAIL_MAX = 500  # a refusal tells names as they were sent
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


class Wanted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which entries are asked for: those of which all that is given holds."""

    limit: int = LISTED
    before: int = 0  # the number of an entry: older ones; 0 for the newest
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
    db.execute(
        "INSERT INTO audit_log (at, user, token, what, object, decision, request, detail) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            now_us,
            by.user,
            by.token,
            what,
            object[:NAME_MAX],
            decision,
            by.request,
            detail[:DETAIL_MAX],
        ),
    )


def entries(db: sqlite3.Connection, wanted: Wanted) -> list[Entry]:
    """The newest first."""
    where, given = _conditions(wanted)
    rows = db.execute(
        "SELECT number, at, user, token, what, object, decision, request, detail FROM audit_log "
        f"WHERE {' AND '.join(where)} ORDER BY number DESC LIMIT ?",
        (*given, wanted.limit),
    )
    return [Entry(number, iso(at), *rest) for number, at, *rest in rows]


def _conditions(wanted: Wanted) -> tuple[list[str], list[str | int]]:
    where, given = ["TRUE"], list[str | int]()
    if wanted.before:
        where.append("number < ?")
        given.append(wanted.before)
    for column in ("user", "decision", "what"):
        if value := getattr(wanted, column):
            where.append(f"{column} = ?")
            given.append(value)
    for word in wanted.find.split():
        where.append(f"instr(lower({_SAID}), lower(?))")
        given.append(word)
    return where, given
