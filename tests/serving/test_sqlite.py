"""One writer, fenced by its token; readers who see one transaction; failures by their names."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from headrace.core.errors import DiskFull, Fenced, Unavailable
from headrace.serving.sqlite import SqliteDatabase

from .databases import as_version_1


@pytest.fixture
def db(tmp_path: Path) -> SqliteDatabase:
    made = SqliteDatabase(tmp_path / "store" / "serving.db")
    made.take_over()
    with made.write() as connection:
        connection.execute("CREATE TABLE t (x INTEGER)")
    return made


def _numbers(db: SqliteDatabase) -> list[int]:
    with db.read() as connection:
        return [x for (x,) in connection.execute("SELECT x FROM t ORDER BY x")]


def _add(db: SqliteDatabase, *numbers: int) -> None:
    with db.write() as connection:
        connection.executemany("INSERT INTO t VALUES (?)", [(number,) for number in numbers])


def _add_and_fail(db: SqliteDatabase) -> None:
    with db.write() as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute("INSERT INTO missing VALUES (1)")


def test_an_old_writer_is_refused_after_another_took_over(db: SqliteDatabase) -> None:
    _add(db, 1)
    other = SqliteDatabase(db.path)
    other.take_over()
    with pytest.raises(Fenced) as caught:
        _add(db, 2)
    assert caught.value.message == "another process has taken over this project"
    _add(other, 3)
    assert _numbers(db) == [1, 3]
    db.close()
    other.close()


def test_who_never_took_over_cannot_write(db: SqliteDatabase) -> None:
    reader = SqliteDatabase(db.path)
    with pytest.raises(Fenced):
        _add(reader, 1)
    assert _numbers(reader) == []
    reader.close()
    db.close()


def test_taking_over_again_makes_the_old_writer_the_writer(db: SqliteDatabase) -> None:
    other = SqliteDatabase(db.path)
    other.take_over()
    db.take_over()
    _add(db, 1)
    with pytest.raises(Fenced):
        _add(other, 2)
    assert _numbers(db) == [1]
    other.close()
    db.close()


def test_a_process_of_an_earlier_headrace_is_fenced_when_its_store_is_migrated(
    db: SqliteDatabase,
) -> None:
    with db.write() as connection:
        as_version_1(connection)
    migrated = SqliteDatabase(db.path)
    with pytest.raises(Fenced):
        _add(db, 1)
    migrated.take_over()
    _add(migrated, 2)
    assert _numbers(db) == [2]
    migrated.close()
    db.close()


def test_a_reader_keeps_its_snapshot_while_the_writer_goes_on(db: SqliteDatabase) -> None:
    _add(db, 1)
    with db.read() as connection:
        before = connection.execute("SELECT count(*) FROM t").fetchone()
        # Another thread writes, as a schedule does while HTTP reads.
        writer = threading.Thread(target=_add, args=(db, 2, 3))
        writer.start()
        writer.join()
        assert connection.execute("SELECT count(*) FROM t").fetchone() == before == (1,)
    assert _numbers(db) == [1, 2, 3]
    db.close()


def test_a_reader_cannot_write(db: SqliteDatabase) -> None:
    with db.read() as connection, pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("INSERT INTO t VALUES (1)")
    assert _numbers(db) == []
    db.close()


def test_a_write_that_fails_leaves_nothing_and_the_next_one_works(db: SqliteDatabase) -> None:
    with pytest.raises(sqlite3.OperationalError, match="no such table: missing"):
        _add_and_fail(db)
    _add(db, 2)
    assert _numbers(db) == [2]
    db.close()


def test_what_was_committed_is_there_after_the_process_is_gone(
    db: SqliteDatabase, tmp_path: Path
) -> None:
    _add(db, 1)
    connection = db._writer
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO t VALUES (2)")
    # The files as they are in the middle of a transaction are what a killed process leaves.
    for path in db.path.parent.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    again = SqliteDatabase(tmp_path / "serving.db")
    assert _numbers(again) == [1]
    again.close()
    db.close()


@pytest.mark.parametrize(
    ("said", "condition", "sentence"),
    [
        ("database or disk is full", DiskFull, "the store's disk is full"),
        ("database is locked", Unavailable, "the store cannot be written now: database is locked"),
        ("disk I/O error", Unavailable, "the store cannot be written now: disk I/O error"),
    ],
)
def test_a_failure_of_the_disk_is_named(
    db: SqliteDatabase, said: str, condition: type[Exception], sentence: str
) -> None:
    with pytest.raises(condition) as caught, db.write():
        raise sqlite3.OperationalError(said)
    assert type(caught.value) is condition
    assert caught.value.args == (sentence,)
    assert _numbers(db) == []
    db.close()


def test_a_full_disk_takes_nothing_and_the_work_goes_on_when_there_is_room(
    db: SqliteDatabase,
) -> None:
    pages = db._writer.execute("PRAGMA page_count").fetchone()[0]
    db._writer.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(DiskFull):
        _add(db, *range(10_000))
    assert _numbers(db) == []
    db._writer.execute("PRAGMA max_page_count = 4294967294")
    _add(db, *range(10_000))
    assert len(_numbers(db)) == 10_000
    db.close()
