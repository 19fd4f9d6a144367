"""The numbers of commits, the keys that each changes, and the table `_meta`."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.serving.changes import KEYS_MAX
from headrace.serving.database import Transaction


def record_changed(db: Transaction, version: str, keys: Iterable[str] | None) -> None:
    """Record that the transaction changes these rows of a version; all rows without keys."""
    recorded = db.changed.setdefault(version, set())
    if keys is None or recorded is None:
        db.changed[version] = None
        return
    recorded.update(keys)
    if len(recorded) > KEYS_MAX:
        db.changed[version] = None


def next_commit_number(db: Transaction) -> int:
    """Increment and return the number of commits: that of this transaction."""
    number = commit_number(db) + 1
    write_meta(db, "commits", str(number))
    return number


def commit_number(db: Transaction) -> int:
    """The number of the newest commit in the transaction."""
    return int(read_meta(db, "commits") or 0)


def read_meta(db: Transaction, key: str) -> str | None:
    """A value of `_meta`."""
    row = db.execute("SELECT value FROM _meta WHERE key = ?", (key,)).fetchone()
    return str(row[0]) if row else None


def write_meta(db: Transaction, key: str, value: str) -> None:
    db.execute(
        "INSERT INTO _meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )
