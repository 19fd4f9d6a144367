"""The store's database in PostgreSQL: fencing across processes, snapshots, and what is lost with a
connection or a server.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from postgres_server import PostgresServer

from headrace.core.errors import BadRequest, Fenced, Unavailable, UnsupportedFormat
from headrace.serving import export
from headrace.serving.postgres import PostgresDatabase

from .databases import postgres_address

pytestmark = pytest.mark.process


@pytest.fixture
def db(postgres: PostgresServer, tmp_path: Path) -> Iterator[PostgresDatabase]:
    made = PostgresDatabase(postgres_address(postgres.url, tmp_path))
    made.take_over()
    with made.write() as connection:
        connection.execute("CREATE TABLE t (x INTEGER)")
    yield made
    made.close()


@pytest.fixture
def other(db: PostgresDatabase) -> Iterator[PostgresDatabase]:
    """Another process that has opened the same store."""
    made = PostgresDatabase(db.address)
    yield made
    made.close()


def _numbers(db: PostgresDatabase) -> list[int]:
    with db.read() as connection:
        return [x for (x,) in connection.execute("SELECT x FROM t ORDER BY x")]


def _add(db: PostgresDatabase, *numbers: int) -> None:
    with db.write() as connection:
        connection.executemany("INSERT INTO t VALUES (?)", [(number,) for number in numbers])


def test_an_old_writer_is_refused_after_another_took_over(
    db: PostgresDatabase, other: PostgresDatabase
) -> None:
    _add(db, 1)
    with pytest.raises(Fenced):
        _add(other, 2)
    other.take_over()
    with pytest.raises(Fenced) as caught:
        _add(db, 3)
    assert caught.value.message == "another process has taken over this project"
    _add(other, 4)
    assert _numbers(db) == _numbers(other) == [1, 4]


def test_a_writer_that_takes_over_waits_for_a_transaction_that_has_begun(
    db: PostgresDatabase, other: PostgresDatabase
) -> None:
    successor = threading.Thread(target=other.take_over)
    with db.write() as connection:
        successor.start()
        successor.join(0.3)
        assert successor.is_alive()
        connection.execute("INSERT INTO t VALUES (1)")
    successor.join()
    with pytest.raises(Fenced):
        _add(db, 2)
    _add(other, 3)
    assert _numbers(other) == [1, 3]


def test_a_paused_writer_loses_its_transaction(
    db: PostgresDatabase, other: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pause() -> None:
        with db.write() as connection:
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = '100 ms'")
            connection.execute("INSERT INTO t VALUES (1)")
            other.take_over()  # waits until the server has ended the transaction
            connection.execute("INSERT INTO t VALUES (2)")

    with pytest.raises(Unavailable):
        pause()
    with pytest.raises(Fenced):
        _add(db, 3)
    _add(other, 4)
    assert _numbers(db) == [4]


def test_a_reader_keeps_its_snapshot_while_the_writer_goes_on(db: PostgresDatabase) -> None:
    _add(db, 1)
    with db.read() as connection:
        before = connection.execute("SELECT count(*) FROM t").fetchone()
        _add(db, 2, 3)
        assert connection.execute("SELECT count(*) FROM t").fetchone() == before == (1,)
    assert _numbers(db) == [1, 2, 3]


def test_a_reader_may_compute_for_as_long_as_an_export(db: PostgresDatabase) -> None:
    limit = "SELECT setting FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'"
    with db.read() as connection:
        assert int(connection.execute(limit).fetchone()[0]) > export.SECONDS_MAX * 1_000


def test_a_reader_cannot_write(db: PostgresDatabase) -> None:
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction), db.read() as connection:
        connection.execute("INSERT INTO t VALUES (1)")
    assert _numbers(db) == []


def test_a_write_that_fails_leaves_nothing_and_the_next_one_works(db: PostgresDatabase) -> None:
    def fail() -> None:
        with db.write() as connection:
            connection.execute("INSERT INTO t VALUES (1)")
            connection.execute("INSERT INTO missing VALUES (1)")

    with pytest.raises(psycopg.errors.UndefinedTable):
        fail()
    _add(db, 2)
    assert _numbers(db) == [2]


def test_a_text_that_postgresql_cannot_hold_is_refused(db: PostgresDatabase) -> None:
    with pytest.raises(BadRequest, match="the character U\\+0000"), db.write() as connection:
        connection.execute("UPDATE _meta SET value = ? WHERE key = 'writer'", ("a\0b",))
    _add(db, 1)
    assert _numbers(db) == [1]


def test_a_server_that_was_killed_keeps_what_was_committed_and_is_used_again(
    tmp_path: Path,
) -> None:
    server = PostgresServer()
    db = PostgresDatabase(postgres_address(server.url, tmp_path))
    try:
        db.take_over()
        with db.write() as connection:
            connection.execute("CREATE TABLE t (x INTEGER)")
        _add(db, 1)
        server.kill()
        for use in (lambda: _add(db, 2), lambda: _numbers(db)):
            with pytest.raises(Unavailable, match="PostgreSQL cannot be used now: "):
                use()
        server.start()
        _add(db, 3)
        assert _numbers(db) == [1, 3]
    finally:
        db.close()
        server.close()


def test_a_schema_with_tables_of_a_newer_headrace_is_refused(db: PostgresDatabase) -> None:
    with db.write() as connection:
        connection.execute("UPDATE _meta SET value = '99' WHERE key = 'schema_version'")
    with pytest.raises(UnsupportedFormat, match=f"the store at {db.address} "):
        PostgresDatabase(db.address)


def test_two_processes_may_open_an_empty_schema_at_once(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    opened: list[PostgresDatabase] = []
    address = postgres_address(postgres.url, tmp_path / "empty")
    threads = [
        threading.Thread(target=lambda: opened.append(PostgresDatabase(address))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 4
    for db in opened:
        db.close()
