"""The memory of ids, by itself."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest

from headrace.core.position import Position
from headrace.ingest.dedup import RecentIds
from headrace.ingest.hashing import RecordHashes, hash_records
from headrace.ingest.id_index import IdIndex
from headrace.ingest.load_ids import flush_ids


@pytest.fixture
def memory(tmp_path: Path) -> RecentIds:
    return memory_of(tmp_path, 10)


def memory_of(folder: Path, ids_max: int) -> RecentIds:
    return RecentIds(IdIndex(folder / "ids", "event_id", Position((99, 99))), ids_max)


def hashed(memory: RecentIds, ids: list[str | None], body: bytes = b"x") -> RecordHashes:
    return hash_records(ids, [body] * len(ids), memory.index.key)


def decide(memory: RecentIds, ids: list[str | None], body: bytes = b"x", end: int = 0) -> list[int]:
    """Decide records that are durable at once, up to an offset of partition 0."""
    decision = memory.decide(hashed(memory, ids, body), None)
    settle(memory, decision.arrival, end=end)
    return list(decision.statuses)


def settle(memory: RecentIds, arrival: int, failed: str = "", end: int = 0) -> None:
    lost = hashed(memory, list(failed)).ids
    memory.settle(arrival, lost, [(0, end)])


def test_first_sight_is_an_event_and_the_same_bytes_again_a_duplicate(memory: RecentIds) -> None:
    assert decide(memory, ["a", "b", "a"]) == [0, 0, 1]
    assert decide(memory, ["b"]) == [1]


def test_the_same_id_with_other_bytes_is_a_conflict_every_time(memory: RecentIds) -> None:
    decide(memory, ["a"])
    assert decide(memory, ["a"], body=b"y") == [2]
    assert decide(memory, ["a"], body=b"y") == [2]
    assert decide(memory, ["a"]) == [1]


def test_a_record_without_an_id_is_never_a_duplicate(memory: RecentIds) -> None:
    assert decide(memory, [None, None]) == [0, 0]
    assert decide(memory, [None, "a", None, "a"]) == [0, 0, 0, 1]


def test_what_is_not_in_the_index_is_not_forgotten(tmp_path: Path) -> None:
    memory = memory_of(tmp_path, 2)
    for each in "abcd":
        decide(memory, [each])
    assert len(memory) == 4
    flush_ids(memory)
    assert decide(memory, ["e"]) == [0]
    assert len(memory) == 2
    assert decide(memory, [*"abcde"]) == [1, 1, 1, 1, 1]
    assert decide(memory, [*"abcde"], body=b"y") == [2, 2, 2, 2, 2]


def test_in_one_request_an_old_id_is_compared_with_its_original_alone(tmp_path: Path) -> None:
    memory = memory_of(tmp_path, 1)
    decide(memory, ["a", "b"])
    flush_ids(memory)
    decide(memory, ["c"])
    both = hash_records(["a", "a"], [b"y", b"x"], memory.index.key)
    assert list(memory.decide(both, None).statuses) == [2, 1]


def test_who_repeats_a_pending_id_waits_for_it_and_not_for_himself(memory: RecentIds) -> None:
    first: Future[None] = Future()
    original = memory.decide(hashed(memory, ["a", "a"]), first)
    assert original.waits_for == ()
    assert memory.decide(hashed(memory, ["a"]), Future()).waits_for == (first,)
    settle(memory, original.arrival)
    assert memory.decide(hashed(memory, ["a"]), Future()).waits_for == ()


def test_what_failed_is_forgotten_unless_it_came_again_since(memory: RecentIds) -> None:
    first = memory.decide(hashed(memory, ["a", "b"]), Future())
    settle(memory, first.arrival, failed="a")
    assert decide(memory, ["a", "b"]) == [0, 1]


def test_what_failed_is_not_put_into_the_index(tmp_path: Path) -> None:
    memory = memory_of(tmp_path, 1)
    first = memory.decide(hashed(memory, ["a", "b"]), Future())
    settle(memory, first.arrival, failed="a")
    flush_ids(memory)
    decide(memory, ["c", "d"])
    assert decide(memory, ["b"]) == [1]
    assert decide(memory, ["a"]) == [0]


def test_the_index_goes_no_further_than_the_first_arrival_that_is_pending(
    memory: RecentIds,
) -> None:
    numbers = [memory.decide(hashed(memory, [each]), Future()).arrival for each in "abc"]
    settle(memory, numbers[0], end=1)
    settle(memory, numbers[2], end=3)
    ready = memory.next_batch()
    assert (len(ready.ids), ready.position) == (1, Position((1, 0)))
    settle(memory, numbers[1], end=2)
    ready = memory.next_batch()
    assert (len(ready.ids), ready.position) == (3, Position((3, 0)))
    assert np.array_equal(ready.ids, hashed(memory, [*"abc"]).ids)


def test_arrays_are_trimmed_without_losing_an_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.ingest.dedup._TRIM_SLOTS", 3)
    memory = memory_of(tmp_path, 4)
    ids = [f"{n}" for n in range(100)]
    for start in range(0, 100, 5):
        assert decide(memory, list(ids[start : start + 5])) == [0] * 5
        flush_ids(memory)
    assert len(memory) <= 10
    assert decide(memory, list(ids)) == [1] * 100
