"""Ids that cannot be written stay in memory, and are written when it works again."""

from __future__ import annotations

import threading

import pytest

from headrace.core.position import Position
from headrace.ingest.hashing import Hashes
from headrace.ingest.id_index import IdIndex

from .conftest import Bench, ids_in_memory, wait_for

SMALL = {"ids_max": 10}


def events(lower: int, upper: int) -> list[bytes]:
    return [f'{{"event_id":{n}}}'.encode() for n in range(lower, upper)]


def test_a_disk_that_is_full_for_a_while_costs_memory_and_no_id(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries, add = list[int](), IdIndex.add

    def failing(index: IdIndex, ids: Hashes, bodies: Hashes, position: Position) -> None:
        tries.append(len(ids))
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(IdIndex, "add", failing)
    intake = bench.intake(id="event_id", partitions=1, changes=SMALL)
    for start in range(0, 100, 10):
        intake.accept(events(start, start + 10))
    wait_for(lambda: tries)
    assert ids_in_memory(intake) == 100
    monkeypatch.setattr(IdIndex, "add", add)

    def shrunk() -> bool:
        numbers.append(len(numbers) + 100)
        intake.accept(events(numbers[-1], numbers[-1] + 1))
        return ids_in_memory(intake) < 50

    numbers = list[int]()
    wait_for(shrunk)
    assert intake.accept(events(0, 100)).duplicates == 100


def test_a_stream_without_an_id_keeps_nothing(bench: Bench) -> None:
    intake = bench.intake(partitions=1)
    intake.accept(events(0, 10))
    assert ids_in_memory(intake) == 0
    assert not (bench.folder / "topic" / "ids").exists()


def no_thread(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_a_system_without_threads_to_give_keeps_nobody_waiting(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    intake = bench.intake(id="event_id", partitions=1, changes=SMALL)
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    for start in range(0, 30, 10):
        receipt = intake.submit(events(start, start + 10)).result(timeout=10)
        assert receipt.accepted == 10
    monkeypatch.undo()
    intake.accept(events(30, 40))
    wait_for(lambda: len(intake._ids.memory.index) >= 30)
