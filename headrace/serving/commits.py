"""Commits are numbered, and say which rows of views they change."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.serving.changes import KEYS_MAX
from headrace.serving.database import Transaction


def note_changed(db: Transaction, version: str, keys: Iterable[str] | None) -> None:
    """These rows of a version are changed by the transaction; all of them without keys."""
    known = db.changed.setdefault(version, set())
    if keys is None or known is None:
        db.changed[version] = None
        return
    known.update(keys)
    if len(known) > KEYS_MAX:
        db.changed[version] = None


def next_number(db: Transaction) -> int:
    """The number of the commit that the transaction will be."""
    number = commit_number(db) + 1
    write_meta(db, "commits", str(number))
    return number


def commit_number(db: Transaction) -> int:
    """The number of the newest commit in the transaction."""
    return int(read_meta(db, "commits") or 0)


def read_meta(db: Transaction, key: str) -> str | None:
    """What the store knows by a name."""
    row = db.execute("SELECT value FROM _meta WHERE key = ?", (key,)).fetchone()
    return str(row[0]) if row else None


def write_meta(db: Transaction, key: str, value: str) -> None:
    db.execute(
        "INSERT INTO _meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )
