"""Each match has one alert id, delivered at least once, when the process is killed anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.serving.sqlite import SqliteDatabase

from .alert_worker import MATCHES, in_file, in_stream, run
from .receiver import Receiver

pytestmark = pytest.mark.process

POINTS = [
    "alerts.saving:1", "alerts.saved:1", "outbox.delivered:1", "alerts.saving:3", "alerts.saved:3",
    "outbox.delivered:2", "outbox.delivered:3", "generation.promoted:1", "epoch.committed:2",
    "alerts.saved:4", "outbox.delivered:7",
]  # fmt: skip


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.stop()


def ledger(folder: Path) -> list[str]:
    with SqliteDatabase(folder / "serving.db").read() as db:
        rows = db.execute("SELECT id, missed, withdrawn_at FROM _alerts ORDER BY number").fetchall()
    assert all(row[1:] == (0, None) for row in rows)
    return [row[0] for row in rows]


def test_each_match_has_one_id_and_reaches_every_action(tmp_path: Path, receiver: Receiver) -> None:
    whole = tmp_path / "whole"
    run(whole, receiver.port)
    expected = ledger(whole)
    assert len(set(expected)) == len(expected) == MATCHES
    assert in_file(whole) == expected == receiver.alerts()
    receiver.requests.clear()
    killed = tmp_path / "killed"
    for number, point in enumerate(POINTS):
        # The receiver fails now and then, beside the kills.
        receiver.mood = "500" if number in (3, 6, 8) else "200"
        run(killed, receiver.port, point)
    receiver.mood = "200"
    run(killed, receiver.port)
    assert sorted(ledger(killed)) == sorted(expected)
    assert sorted(set(in_file(killed))) == sorted(expected)
    assert sorted(in_stream(killed)) == sorted(expected), "one that is sent again is a duplicate"
    assert sorted(set(receiver.alerts())) == sorted(expected)
    assert len(receiver.alerts()) > len(expected), "what was delivered and not marked comes again"
