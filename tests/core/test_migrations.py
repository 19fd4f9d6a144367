"""The law of headrace/core/migrations.py: a database of any version gets the tables of a new one,
in one transaction, or stays what it was.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.core.errors import UnsupportedFormat
from headrace.core.migrations import DatabaseFormat, SqlConnection, bring_to_newest
from headrace.core.version import __version__

FIRST = DatabaseFormat(
    "shop",
    """
CREATE TABLE IF NOT EXISTS carts (
  id TEXT PRIMARY KEY, items TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS carts_items ON carts (items);
CREATE TRIGGER IF NOT EXISTS carts_stay BEFORE DELETE ON carts
  BEGIN SELECT raise(ABORT, 'carts stay'); END;
""",
    remedy="move it away.",
)


def add_owner(db: SqlConnection) -> None:
    db.execute("ALTER TABLE carts ADD COLUMN owner TEXT")
    db.execute("UPDATE carts SET owner = upper(id)")


def shorten(db: SqlConnection) -> None:
    db.execute("UPDATE carts SET items = substr(items, 1, 1) || owner")


def fail(db: SqlConnection) -> None:
    db.execute("DROP TABLE carts")
    raise RuntimeError("a migration has a defect")


SECOND = replace(
    FIRST,
    tables=FIRST.tables.replace("NOT NULL)", "NOT NULL, owner TEXT)")
    + "CREATE TABLE IF NOT EXISTS owners (name TEXT);\n",
    migrations=(add_owner,),
)
THIRD = replace(SECOND, migrations=(add_owner, shorten))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@pytest.fixture
def first(path: Path) -> Iterator[sqlite3.Connection]:
    """A database of version 1 with a row."""
    with closing(connect(path)) as db:
        bring_to_newest(FIRST, db, path)
        db.execute("INSERT INTO carts VALUES ('a', 'hat')")
        yield db


def connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, timeout=0)


def version_of(db: sqlite3.Connection) -> str:
    return str(db.execute("SELECT value FROM _meta WHERE key = 'schema_version'").fetchone()[0])


def without_version(db: sqlite3.Connection) -> None:
    """As it was written before databases had a version."""
    db.execute("DROP TABLE _meta")


def test_a_new_database_has_the_newest_version_and_nothing_is_logged(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(connect(path)) as db:
        bring_to_newest(THIRD, db, path)
        assert version_of(db) == "3"
        assert db.execute("SELECT count(*) FROM owners").fetchone() == (0,)
    assert caplog.messages == []


@pytest.mark.parametrize("unversioned", [False, True])
def test_each_migration_from_the_version_on_is_run_in_order(
    first: sqlite3.Connection, path: Path, unversioned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    if unversioned:
        without_version(first)
        bring_to_newest(FIRST, first, path)
    bring_to_newest(SECOND, first, path)
    assert first.execute("SELECT * FROM carts").fetchall() == [("a", "hat", "A")]
    bring_to_newest(THIRD, first, path)
    bring_to_newest(THIRD, first, path)
    assert first.execute("SELECT * FROM carts").fetchall() == [("a", "hA", "A")]
    assert first.execute("SELECT count(*) FROM owners").fetchone() == (0,)
    assert version_of(first) == "3"
    steps = [(0, 1), (1, 2), (2, 3)] if unversioned else [(1, 2), (2, 3)]
    assert caplog.messages == [
        f"migrated the shop at {path} from version {found} of its format to version {newest}"
        for found, newest in steps
    ]


def test_a_migration_that_fails_changes_nothing(first: sqlite3.Connection, path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(RuntimeError, match="a migration has a defect"):
        bring_to_newest(replace(SECOND, migrations=(add_owner, fail)), connect(path), path)
    assert path.read_bytes() == before
    assert first.execute("SELECT * FROM carts").fetchall() == [("a", "hat")]
    assert version_of(first) == "1"


def test_a_database_that_cannot_be_used_is_closed(first: sqlite3.Connection, path: Path) -> None:
    db = connect(path)
    with pytest.raises(RuntimeError):
        bring_to_newest(replace(SECOND, migrations=(fail,)), db, path)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        db.execute("SELECT 1")


def test_what_a_newer_headrace_wrote_is_refused_and_not_changed(path: Path) -> None:
    with closing(connect(path)) as db:
        bring_to_newest(THIRD, db, path)
    before = path.read_bytes()
    with pytest.raises(UnsupportedFormat) as refused:
        bring_to_newest(SECOND, connect(path), path)
    assert refused.value.message == (
        f"the shop at {path} has format version 3, but Headrace {__version__} supports "
        "versions 1 to 2"
    )
    assert refused.value.detail == "it was written by a newer Headrace; nothing was changed."
    assert refused.value.hint == "use the Headrace that wrote it, or a newer one."
    assert path.read_bytes() == before


def test_unversioned_tables_that_are_not_those_of_version_1_are_refused(path: Path) -> None:
    with closing(connect(path)) as db:
        db.execute("CREATE TABLE carts (id TEXT PRIMARY KEY)")
    before = path.read_bytes()
    with pytest.raises(UnsupportedFormat) as refused:
        bring_to_newest(FIRST, connect(path), path)
    assert refused.value.message == (
        f"the shop at {path} was written before its format had versions, and differs from version "
        "1 in: carts"
    )
    assert refused.value.detail == "nothing was changed."
    assert refused.value.hint == "move it away."
    assert path.read_bytes() == before


def test_unversioned_tables_are_read_until_there_is_a_version_2(
    first: sqlite3.Connection, path: Path
) -> None:
    without_version(first)
    with pytest.raises(UnsupportedFormat) as refused:
        bring_to_newest(SECOND, connect(path), path)
    assert refused.value.message == (
        f"the shop at {path} has format version 0, but Headrace {__version__} supports "
        "versions 1 to 2"
    )
    assert refused.value.detail == "it was written by an older Headrace; nothing was changed."
    assert refused.value.hint == "open it first with a Headrace that was released between the two."


def test_a_database_of_the_newest_version_opens_beside_a_writer(
    first: sqlite3.Connection, path: Path
) -> None:
    first.execute("BEGIN IMMEDIATE")
    with closing(connect(path)) as db:
        bring_to_newest(FIRST, db, path)
    first.execute("COMMIT")
