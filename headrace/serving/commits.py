"""The writer's token, the numbers of commits, the keys that each changes, and the table `_meta`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from headrace.core.errors import Fenced
from headrace.serving.changes import KEYS_MAX, Changes
from headrace.serving.database import Transaction
from headrace.serving.store_tables import WRITER

AnyTransaction = TypeVar("AnyTransaction", bound=Transaction)


@contextmanager
def publishing(
    changes: Changes, transaction: AbstractContextManager[AnyTransaction]
) -> Iterator[AnyTransaction]:
    """A write transaction whose commit is numbered, and known to the readers of this process."""
    number = None
    try:
        with transaction as db:
            db.changed = {}
            yield db
            # Readers may see the commit at once, so its changes are added before it.
            number = next_commit_number(db)
            changes.add(number, db.changed)
            publish = changes.commit_hook(db) if changes.commit_hook else None
    except BaseException:
        if number is not None:
            changes.remove(number)
        raise
    if publish:
        publish()
    changes.committed(number)


def take_token(db: Transaction) -> int:
    """Increment and return the token that each write checks: that of the new writer."""
    token = int(read_meta(db, WRITER) or 0) + 1
    write_meta(db, WRITER, str(token))
    return token


def check_token(db: Transaction, token: int) -> None:
    """Fenced unless the process with this token is the writer."""
    if read_meta(db, WRITER) != str(token):
        raise Fenced("another process has taken over this project", hint="stop this process.")


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
