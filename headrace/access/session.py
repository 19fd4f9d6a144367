"""Browser sessions. A session has the permissions of the token that opened it and ends with that
token at the latest; an idle session ends earlier.

A login code opens one session; it is in the link that a run prints.
"""

from __future__ import annotations

import sqlite3

from headrace.access.secret import digest, new_secret
from headrace.core.errors import Unauthenticated
from headrace.core.time import MINUTE

CODE_LIFE_US = 10 * MINUTE


def open_session(db: sqlite3.Connection, token: str, now_us: int, ends_at: int) -> str:
    """Open a session; returns its id, which is its secret."""
    db.execute("DELETE FROM sessions WHERE expires_at <= ?", (now_us,))
    secret = new_secret()
    db.execute("INSERT INTO sessions VALUES (?, ?, ?, ?)", (digest(secret), token, ends_at, now_us))
    return secret


def touch_session(db: sqlite3.Connection, key: bytes, now_us: int) -> None:
    """Set the time of the last request of a session."""
    db.execute("UPDATE sessions SET used_at = ? WHERE digest = ?", (now_us, key))


def end_session(db: sqlite3.Connection, secret: str) -> None:
    db.execute("DELETE FROM sessions WHERE digest = ?", (digest(secret),))


class LoginCodes:
    """The login codes that are not used yet, in memory only: a code ends with the run."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[str, int]] = {}

    def new(self, token: str, now_us: int) -> str:
        secret = new_secret()
        self._known[digest(secret)] = token, now_us + CODE_LIFE_US
        return secret

    def take(self, secret: str, now_us: int) -> str:
        """Use a code; returns the id of its token."""
        token, ends_at = self._known.pop(digest(secret), ("", 0))
        if ends_at <= now_us:
            raise Unauthenticated(
                "this link was already used, or has expired", hint="log in with a token."
            )
        return token
