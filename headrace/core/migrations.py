"""The tables of a database, and how a database with those of an earlier version gets them.

`_meta` says the version of the tables. Whatever version a database was written with,
    bring_to_newest(database) has exactly the tables of a new database, or is what it was:
all migrations and the new version are one transaction. `tables` describes the newest version alone,
and statements say IF NOT EXISTS, so a migration is needed only for what an earlier version has in
another form. No driver is imported here: a database is what its room has connected to.
tests/core/test_migrations.py checks it; tests/run/test_formats.py does so with files of old.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from headrace.core.errors import UnsupportedFormat
from headrace.core.format_version import FormatVersions, Place

_META = "CREATE TABLE IF NOT EXISTS _meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
_VERSION = "schema_version"  # of `_meta`
_CREATED = re.compile(r"CREATE \w+ IF NOT EXISTS (\w+)")


class SqlConnection(Protocol):
    """The methods of a driver's connection that are used."""

    @property
    def in_transaction(self) -> bool: ...
    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Any: ...
    def close(self) -> None: ...


Migration = Callable[[SqlConnection], object]


@dataclass(frozen=True, slots=True)
class Dialect:
    """The statements that databases do not have in common."""

    begin: str  # a transaction that no other process migrates beside
    tables: str  # the names of all tables, and the statements that created them where they are kept


SQLITE = Dialect(begin="BEGIN IMMEDIATE", tables="SELECT name, sql FROM sqlite_master")


@dataclass(frozen=True, slots=True)
class DatabaseFormat:
    """The tables of one kind of database, in their newest version."""

    what: str
    tables: str  # statements, each with a semicolon at the end of its last line
    remedy: str  # what to do with a database that cannot be migrated
    migrations: tuple[Migration, ...] = ()  # the first one makes version 2 of version 1
    fence: Migration = lambda db: None  # keeps processes of an earlier Headrace from writing

    @property
    def versions(self) -> FormatVersions:
        # Version 0 is known by the tables of version 1, which are `tables` until there is a second.
        oldest = 1 if self.migrations else 0
        return FormatVersions(self.what, newest=1 + len(self.migrations), oldest=oldest)

    def is_newest(self, db: SqlConnection, place: Place, dialect: Dialect = SQLITE) -> bool:
        """Whether there is nothing to migrate; UnsupportedFormat if the database is newer."""
        if (found := _found(db, dialect)) is not None:
            self.versions.check(found, place)
        return found == self.versions.newest

    def migrate(self, db: SqlConnection, place: Place, dialect: Dialect = SQLITE) -> int | None:
        """Bring a database to the newest version in the caller's transaction; the version that it
        had, None of an empty one.
        """
        if self.is_newest(db, place, dialect):
            return self.versions.newest
        if (found := _found(db, dialect)) == 0:
            self._check_unversioned(db, place, dialect)
        for migration in self.migrations[found - 1 :] if found else ():
            migration(db)
        for statement in (_META, *self._statements()):
            db.execute(statement)
        self.fence(db)
        db.execute("DELETE FROM _meta WHERE key = ?", (_VERSION,))
        db.execute("INSERT INTO _meta VALUES (?, ?)", (_VERSION, str(self.versions.newest)))
        return found

    def _statements(self) -> list[str]:
        return [text.strip() for text in self.tables.split(";\n") if text.strip()]

    def _check_unversioned(self, db: SqlConnection, place: Place, dialect: Dialect) -> None:
        """Tables without a version are those of version 1, or of a Headrace before it. They are
        compared by their text, which SQLite keeps.
        """
        rows = db.execute(dialect.tables)
        kept = {name: " ".join(sql.split()) for name, sql in rows if sql is not None}
        stated = {_name(text): _kept_form(text) for text in self._statements()}
        others = sorted(name for name, text in stated.items() if kept.get(name, text) != text)
        if others:
            raise UnsupportedFormat(
                f"the {self.what} at {place} was written before its format had versions, and "
                f"differs from version 1 in: {', '.join(others)}",
                detail="nothing was changed.",
                hint=self.remedy,
            )


def bring_to_newest(
    format: DatabaseFormat, db: SqlConnection, place: Place, dialect: Dialect = SQLITE
) -> None:
    """Migrate a database, or make its tables, in a transaction of its own; a connection to one that
    cannot be used is closed. A database of the newest version is only read, so that opening it does
    not wait for its writer.
    """
    try:
        if format.is_newest(db, place, dialect):
            return
        with transaction(db, dialect.begin):
            found = format.migrate(db, place, dialect)
    except BaseException:
        db.close()
        raise
    # Another process may have been faster.
    if found is not None and found < format.versions.newest:
        format.versions.log_migration(found, place)


@contextmanager
def transaction(db: SqlConnection, begin: str = SQLITE.begin) -> Iterator[None]:
    """One write transaction: all of it, or nothing."""
    db.execute(begin)
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        # SQLite has rolled back some failures itself, of a full disk for one.
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _found(db: SqlConnection, dialect: Dialect) -> int | None:
    """The version that a database says; 0 if it says none, None if it has no tables at all."""
    names = {name for name, _ in db.execute(dialect.tables)}
    if "_meta" not in names:
        return 0 if names else None
    row = db.execute("SELECT value FROM _meta WHERE key = ?", (_VERSION,)).fetchone()
    return int(row[0]) if row else 0


def _name(statement: str) -> str:
    found = _CREATED.match(statement)
    assert found, (
        f"a statement that can be repeated begins with CREATE … IF NOT EXISTS: {statement}"
    )
    return found[1]


def _kept_form(statement: str) -> str:
    """The text as SQLite keeps it, but for the white space."""
    return " ".join(statement.replace(" IF NOT EXISTS", "", 1).split())
