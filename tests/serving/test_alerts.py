"""Which alerts a page has, and how many there are beside them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from headrace.serving.alerts import AlertFilter, AlertGroup, read_alerts

from .databases import open_store
from .marks import on_every_database

pytestmark = on_every_database

NOISY, GRAVE = 560, 3


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory, database: str) -> Iterator[sqlite3.Connection]:
    """Three critical alerts, and after them 560 of a rule that says little; one is acknowledged."""
    store = open_store(tmp_path_factory.mktemp("ledger") / "serving.db")
    store.take_over()
    with store.write() as writing:
        for _ in range(GRAVE):
            _raise(writing, "break_in", "critical")
        for _ in range(NOISY):
            _raise(writing, "noisy", "low")
        _raise(writing, "hello", "info")
        _raise(writing, "noisy", "low", acknowledged_at=1)
    with store.read() as reading:
        yield reading
    store.close()


def _raise(
    db: sqlite3.Connection, rule: str, severity: str, acknowledged_at: int | None = None
) -> None:
    (count,) = db.execute("SELECT count(*) FROM _alerts").fetchone()
    said = {
        "id": f"{count:032x}", "rule": rule, "version": 1, "row_key": str(count),
        "severity": severity, "body": "{}", "event_time": count, "per": "",
        "raised_at": count * 1_000_000, "raised_by": "speed", "position": "", "missed": 0,
        "acknowledged_at": acknowledged_at,
    }  # fmt: skip
    places = ", ".join("?" * len(said))
    db.execute(f"INSERT INTO _alerts ({', '.join(said)}) VALUES ({places})", [*said.values()])


def test_the_gravest_rules_come_first_however_noisy_others_are(db: sqlite3.Connection) -> None:
    found = read_alerts(db, AlertFilter(state="open", each=2))
    assert [alert.rule for alert in found.alerts] == [
        "break_in",
        "break_in",
        "noisy",
        "noisy",
        "hello",
    ]
    assert found.groups == [
        AlertGroup("break_in", "critical", GRAVE, "1970-01-01T00:00:02Z"),
        AlertGroup("noisy", "low", NOISY, "1970-01-01T00:09:22Z"),
        AlertGroup("hello", "info", 1, "1970-01-01T00:09:23Z"),
    ]
    assert found.total == GRAVE + NOISY + 1


def test_what_is_bounded_away_is_the_least_grave(db: sqlite3.Connection) -> None:
    found = read_alerts(db, AlertFilter(state="open", each=50, limit=10))
    assert [alert.rule for alert in found.alerts] == ["break_in"] * 3 + ["noisy"] * 7
    assert len(found.groups) == 3


def test_pages_have_every_alert_once_and_the_same_total(db: sqlite3.Connection) -> None:
    seen, before = list[str](), None
    while True:
        found = read_alerts(db, AlertFilter(rule="noisy", state="open", limit=100, before=before))
        assert (found.total, [group.rule for group in found.groups]) == (NOISY, ["noisy"])
        seen += [alert.id for alert in found.alerts]
        if not found.alerts:
            break
        before = found.alerts[-1].number
    assert seen == sorted(seen, reverse=True)
    assert len(set(seen)) == len(seen) == NOISY


def test_of_rules_that_may_not_be_read_nothing_is_counted(db: sqlite3.Connection) -> None:
    found = read_alerts(db, AlertFilter(among=("hello",)))
    assert (found.total, [group.rule for group in found.groups]) == (1, ["hello"])
    assert read_alerts(db, AlertFilter(among=())).total == 0
