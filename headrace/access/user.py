"""Users and their grants. A user has no permissions until a grant gives some.

The last user who may manage users cannot be removed, nor can their grant be. The user `local` of a
run does not count, because it exists only while the run lasts.
tests/access/test_access.py tries.
"""

from __future__ import annotations

import re
import sqlite3

import msgspec

from headrace.access.caller import Permission
from headrace.access.object import EVERYTHING, read_object
from headrace.access.operation import Operation, operations_of
from headrace.core.errors import BadRequest, Conflict, NotFound
from headrace.core.time import iso

LOCAL = "local"  # the user of a run
_NAME = re.compile(r"[a-z0-9][a-z0-9._@-]{0,63}")


class User(msgspec.Struct, frozen=True):
    name: str
    made_at: str
    made_by: str


class Grant(msgspec.Struct, frozen=True):
    """A role or one operation, granted to a user on an object."""

    user: str
    may: str
    on: str
    made_at: str
    made_by: str


def users(db: sqlite3.Connection) -> list[User]:
    rows = db.execute("SELECT name, made_at, made_by FROM users ORDER BY name")
    return [User(name, iso(made_at), made_by) for name, made_at, made_by in rows]


def known_user(db: sqlite3.Connection, name: str) -> str:
    if db.execute("SELECT 1 FROM users WHERE name = ?", (name,)).fetchone() is None:
        raise NotFound(f"there is no user '{name[:64]}'", hint="`headrace user list` shows all.")
    return name


def add_user(db: sqlite3.Connection, name: str, by: str, now_us: int) -> User:
    if not _NAME.fullmatch(name):
        raise BadRequest(
            f"'{name[:64]}' is not a valid user name",
            hint="use up to 64 of a-z, 0-9 and . _ @ - and begin with a letter or digit.",
        )
    try:
        db.execute("INSERT INTO users VALUES (?, ?, ?)", (name, now_us, by))
    except sqlite3.IntegrityError as error:
        raise BadRequest(f"user '{name}' already exists") from error
    return User(name, iso(now_us), by)


def remove_user(db: sqlite3.Connection, name: str) -> None:
    """Remove a user, with their tokens, sessions and grants."""
    managed = _manages(db, known_user(db, name))
    db.execute("DELETE FROM users WHERE name = ?", (name,))
    _check_managed(db, name, managed)


def remove_users(db: sqlite3.Connection) -> list[User]:
    """Remove all users; returns them."""
    found = users(db)
    db.execute("DELETE FROM users")
    return found


def grants(db: sqlite3.Connection, user: str | None = None) -> list[Grant]:
    """All grants, or those of one user."""
    rows = db.execute(
        "SELECT user, may, object, made_at, made_by FROM grants WHERE ?1 IS NULL OR user = ?1 "
        "ORDER BY user, object, may",
        (user,),
    )
    return [Grant(who, may, on, iso(made_at), by) for who, may, on, made_at, by in rows]


def permissions(db: sqlite3.Connection, user: str) -> tuple[Permission, ...]:
    return tuple(Permission.of(grant.may, grant.on) for grant in grants(db, user))


def add_grant(db: sqlite3.Connection, user: str, may: str, on: str, by: str, now_us: int) -> Grant:
    """Add a grant; adding it again changes nothing."""
    operations_of(may)
    object = str(read_object(on))
    db.execute(
        "INSERT OR IGNORE INTO grants VALUES (?, ?, ?, ?, ?)",
        (known_user(db, user), may, object, now_us, by),
    )
    return next(grant for grant in grants(db, user) if (grant.may, grant.on) == (may, object))


def remove_grant(db: sqlite3.Connection, user: str, may: str, on: str) -> None:
    managed = _manages(db, user)
    gone = db.execute(
        "DELETE FROM grants WHERE user = ? AND may = ? AND object = ?",
        (user, may, str(read_object(on))),
    )
    if not gone.rowcount:
        raise NotFound(
            f"'{user[:64]}' has no grant of {may[:64]} on {on[:64]}",
            hint="`headrace grant list` shows all.",
        )
    _check_managed(db, user, managed)


def _manages(db: sqlite3.Connection, user: str) -> bool:
    manage, everything = Operation.MANAGE, EVERYTHING
    return user != LOCAL and any(
        grant.covers(manage, everything, "") for grant in permissions(db, user)
    )


def _check_managed(db: sqlite3.Connection, user: str, managed: bool) -> None:
    """Conflict if nobody is left who manages users, so that the transaction is rolled back."""
    if managed and not any(_manages(db, other.name) for other in users(db)):
        raise Conflict(
            f"{user} is the last user who may manage users",
            hint="grant it to another user first: `headrace grant add NAME admin`.",
        )
