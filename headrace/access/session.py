"""Sessions of browsers. A session stands for the token that opened it and ends with it at the
latest, so a browser can never do more than the token, nor for longer.

A code opens one session and is then gone; it is in the link that a run prints.
"""

from __future__ import annotations

import sqlite3

from headrace.access.secret import digest, new_secret
from headrace.core.time import MINUTE

CODE_LIFE_US = 10 * MINUTE


def open_session(db: sqlite3.Connection, token: str, now_us: int, ends_at: int) -> str:
    """The session's id, which is its secret."""
    db.execute("DELETE FROM sessions WHERE expires_at <= ?", (now_us,))
    secret = new_secret()
    db.execute("INSERT INTO sessions VALUES (?, ?, ?)", (digest(secret), token, ends_at))
    return secret


def end_session(db: sqlite3.Connection, secret: str) -> None:
    db.execute("DELETE FROM sessions WHERE digest = ?", (digest(secret),))


class Codes:
    """The codes that are not used yet, in memory only: a code does not outlive the run."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[str, int]] = {}

    def new(self, token: str, now_us: int) -> str:
        secret = new_secret()
        self._known[digest(secret)] = token, now_us + CODE_LIFE_US
        return secret

    def take(self, secret: str, now_us: int) -> str | None:
        """The id of the code's token, once."""
        token, ends_at = self._known.pop(digest(secret), (None, 0))
        return token if ends_at > now_us else None
