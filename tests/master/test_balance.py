"""The balance is exact at every probe, also while events arrive and are archived and compacted."""

from __future__ import annotations

import threading

import pytest

from headrace.core.event import EventStatus
from headrace.core.position import Position
from headrace.log.embedded.reader import EmbeddedReader
from headrace.master.balance import balance, read_dead_letters
from headrace.master.decoding import decoder_of

from .bench import CLICKS, Bench, click


def _probe(bench: Bench, end: Position | None = None) -> dict[str, int]:
    found = balance(bench.table.newest(), end or EmbeddedReader(bench.topic.path).end())
    parts = ("events", "duplicates", "dead_letters", "in_log")
    assert found["accepted"] == sum(found[name] for name in parts)
    return found


def test_each_event_is_in_one_place(bench: Bench) -> None:
    bench.send(0, click("ann"), b"?", click("bob"))
    bench.send(1, click("ann"), status=EventStatus.DUPLICATE)
    expected = {"accepted": 4, "events": 0, "duplicates": 0, "dead_letters": 0, "in_log": 4}
    assert _probe(bench) == expected
    bench.archive.step(2)
    assert _probe(bench) == expected | {"events": 1, "duplicates": 1, "in_log": 2}
    bench.archive.step(100)
    assert _probe(bench) == {
        "accepted": 4,
        "events": 2,
        "duplicates": 1,
        "dead_letters": 1,
        "in_log": 0,
    }


def test_an_end_from_before_an_archive_step_still_balances(bench: Bench) -> None:
    bench.send(0, click("ann"), click("bob"))
    old = bench.topic.end()
    bench.send(0, click("cid"))
    bench.archive.step(100)
    assert _probe(bench, old) == {
        "accepted": 3,
        "events": 3,
        "duplicates": 0,
        "dead_letters": 0,
        "in_log": 0,
    }


def test_a_row_that_is_lost_shows_as_off(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.send(0, click("ann"), click("bob"), b"?")
    bench.archive.step(100)
    version = bench.table.newest()
    kept = [file for file in version.files if file.status != "dead_letter"]
    monkeypatch.setattr(version, "files", kept)
    found = balance(version, bench.topic.end())
    assert found["accepted"] - sum(n for name, n in found.items() if name != "accepted") == 1


def test_the_balance_is_exact_while_events_arrive_and_are_archived(bench: Bench) -> None:
    done, probes, raised = threading.Event(), list[dict[str, int]](), list[BaseException]()

    def probe() -> None:
        try:
            while not done.is_set():
                probes.append(_probe(bench))
        except BaseException as error:
            raised.append(error)

    prober = threading.Thread(target=probe)
    prober.start()
    try:
        for number in range(25):
            bench.send(number % 2, click("ann", number), b"?")
            bench.archive.step(3)
            if number % 8 == 7:
                bench.compact(files_max=2)
        bench.archive.step_to_end(100)
    finally:
        done.set()
        prober.join()
    if raised:
        raise raised[0]
    assert len({probe["events"] for probe in probes}) > 3, "nothing changed while it was probed"
    accepted = [probe["accepted"] for probe in probes]
    assert accepted == sorted(accepted)
    assert _probe(bench) == {
        "accepted": 50,
        "events": 25,
        "duplicates": 0,
        "dead_letters": 25,
        "in_log": 0,
    }


@pytest.mark.parametrize("archived", [0, 1, 3])
def test_the_newest_dead_letters_come_first_wherever_they_lie(bench: Bench, archived: int) -> None:
    for number in range(3):
        bench.clock.now_us += 86_400_000_000
        bench.send(0, b"bad %d" % number, click("ann"))
        if number < archived:
            bench.archive.step(100)
    reader = EmbeddedReader(bench.topic.path)
    found = read_dead_letters(bench.table, decoder_of(CLICKS), reader, 10).newest
    assert [row["_raw"] for row in found] == [b"bad 2", b"bad 1", b"bad 0"]
    assert all(row["_reason"] for row in found)
    limited = read_dead_letters(bench.table, decoder_of(CLICKS), reader, 2).newest
    assert [row["_raw"] for row in limited] == [b"bad 2", b"bad 1"]
