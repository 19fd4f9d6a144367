"""The audit log: who did or tried what to which object, when, and whether it was allowed.

It is only appended to: triggers in the file forbid to change and to delete, whoever writes. Changes
and refusals are logged; reads and sends that were allowed are counted.
tests/access/test_access.py tries to change it.
"""

from __future__ import annotations

import sqlite3

import msgspec

from headrace.access.object import NAME_MAX
from headrace.core.time import iso

ALLOWED, REFUSED = "allowed", "refused"
NOBODY = "nobody"
LISTED = 100


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
    decision: str  # allowed, refused
    request: str
    detail: str = ""


def append(
    db: sqlite3.Connection,
    by: By,
    what: str,
    object: str,
    now_us: int,
    decision: str = ALLOWED,
    detail: str = "",
) -> None:
    """Add an entry, inside the caller's transaction."""
    db.execute(
        "INSERT INTO audit_log (at, user, token, what, object, decision, request, detail) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (now_us, by.user, by.token, what, object[:NAME_MAX], decision, by.request, detail),
    )


def entries(db: sqlite3.Connection, limit: int = LISTED, user: str | None = None) -> list[Entry]:
    """The newest first; all, or those of one user."""
    rows = db.execute(
        "SELECT number, at, user, token, what, object, decision, request, detail FROM audit_log "
        "WHERE ?1 IS NULL OR user = ?1 ORDER BY number DESC LIMIT ?2",
        (user, limit),
    )
    return [Entry(number, iso(at), *rest) for number, at, *rest in rows]
