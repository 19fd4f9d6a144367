"""Every entry vouches for those before it, and what comes is told in order."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.access.access import Access
from headrace.access.audit_log import AuditLogFilter
from tests.access.users import TEST

FIELDS = ("number", "at", "user", "token", "what", "object", "decision", "request", "detail")


@pytest.fixture
def access(tmp_path: Path) -> Iterator[Access]:
    made = Access(tmp_path / "access.db", "shop")
    for name in ("ada", "bob", "eve"):
        made.add_user(name, None, TEST)
    yield made
    made.close()


def tamper(folder: Path, sql: str) -> None:
    """As one who can write the file, and knows of its triggers."""
    with sqlite3.connect(folder / "access.db") as db:
        db.execute("DROP TRIGGER audit_log_stays")
        db.execute("DROP TRIGGER audit_log_is_kept")
        db.execute(sql)
    db.close()


def test_whoever_has_the_entries_can_compute_their_chain(access: Access) -> None:
    before = ""
    for entry in access.audit_log(AuditLogFilter(after=0)).entries:
        said = [before, *(getattr(entry, name) for name in FIELDS)]
        text = json.dumps(said, separators=(",", ":"), ensure_ascii=False)
        before = hashlib.sha256(text.encode()).hexdigest()
        assert entry.chain == before
    found = access.verify_audit_log()
    assert (found.entries, found.head, found.broken_at) == (3, before, None)


def test_a_log_without_entries_is_whole(tmp_path: Path) -> None:
    empty = Access(tmp_path / "other.db", "shop")
    assert empty.verify_audit_log().broken_at is None
    empty.close()


@pytest.mark.parametrize(
    ("sql", "broken_at"),
    [
        ("UPDATE audit_log SET user = 'mallory' WHERE number = 2", 2),
        ("UPDATE audit_log SET at = at + 1 WHERE number = 1", 1),
        ("UPDATE audit_log SET decision = 'refused' WHERE number = 3", 3),
        ("UPDATE audit_log SET chain = '' WHERE number = 2", 2),
        ("DELETE FROM audit_log WHERE number = 1", 1),
        ("DELETE FROM audit_log WHERE number = 2", 2),
        ("DELETE FROM audit_log WHERE number = 3", 3),
        ("DELETE FROM audit_log", 1),
    ],
)
def test_a_change_of_the_file_shows(
    access: Access, tmp_path: Path, sql: str, broken_at: int
) -> None:
    tamper(tmp_path, sql)
    assert access.verify_audit_log().broken_at == broken_at


def test_what_came_after_a_number_is_told_in_order(access: Access) -> None:
    def numbers(after: int, limit: int = 100) -> list[int]:
        return [
            entry.number
            for entry in access.audit_log(AuditLogFilter(after=after, limit=limit)).entries
        ]

    assert numbers(0) == [1, 2, 3]
    assert numbers(1, limit=1) == [2]
    assert numbers(3) == []
    access.add_user("joe", None, TEST)
    assert numbers(3) == [4]
