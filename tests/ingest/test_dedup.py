"""The memory of ids, by itself."""

from __future__ import annotations

from concurrent.futures import Future

from headrace.ingest.dedup import IdMemory


def decide(
    memory: IdMemory, ids: list[str | None], now_us: int = 0, body: bytes = b"x"
) -> list[int]:
    return list(memory.decide(ids, [body] * len(ids), now_us, None).statuses)


def test_first_sight_is_an_event_and_the_same_bytes_again_a_duplicate() -> None:
    memory = IdMemory(100, 10)
    assert decide(memory, ["a", "b", "a"]) == [0, 0, 1]
    assert decide(memory, ["b"]) == [1]


def test_the_same_id_with_other_bytes_is_a_conflict_every_time() -> None:
    memory = IdMemory(100, 10)
    decide(memory, ["a"])
    assert decide(memory, ["a"], body=b"y") == [2]
    assert decide(memory, ["a"], body=b"y") == [2]
    assert decide(memory, ["a"]) == [1]


def test_a_record_without_an_id_is_never_a_duplicate() -> None:
    assert decide(IdMemory(100, 10), [None, None]) == [0, 0]


def test_an_id_is_forgotten_after_the_horizon_counted_from_its_first_arrival() -> None:
    memory = IdMemory(100, 10)
    decide(memory, ["a"], now_us=0)
    assert decide(memory, ["a"], now_us=100) == [1]
    assert decide(memory, ["a"], now_us=101) == [0]
    assert decide(memory, ["a"], now_us=201) == [1]


def test_above_the_limit_the_oldest_ids_are_forgotten_first() -> None:
    memory = IdMemory(100, 3)
    decide(memory, ["a", "b"])
    decide(memory, ["c", "d"])
    assert len(memory) == 3
    assert decide(memory, ["b", "c", "d", "a"]) == [1, 1, 1, 0]


def test_a_request_larger_than_the_limit_still_finds_its_own_duplicates() -> None:
    memory = IdMemory(100, 2)
    assert decide(memory, ["a", "b", "c", "a"]) == [0, 0, 0, 1]
    assert len(memory) == 2


def test_who_repeats_a_pending_id_waits_for_it_and_not_for_himself() -> None:
    memory = IdMemory(100, 10)
    first: Future[None] = Future()
    original = memory.decide(["a", "a"], [b"x", b"x"], 0, first)
    assert original.waits_for == ()
    assert memory.decide(["a"], [b"x"], 0, Future()).waits_for == (first,)
    memory.settle(original.arrival, [])
    assert memory.decide(["a"], [b"x"], 0, Future()).waits_for == ()


def test_what_failed_is_forgotten_unless_it_came_again_since() -> None:
    memory = IdMemory(100, 10)
    first = memory.decide(["a", "b"], [b"x", b"x"], 0, Future())
    memory.settle(first.arrival, ["a"])
    assert decide(memory, ["a", "b"]) == [0, 1]
    memory.settle(first.arrival, ["a"])
    assert decide(memory, ["a"]) == [1]


def test_a_forgotten_id_that_came_again_lives_its_full_time() -> None:
    memory = IdMemory(100, 10)
    first = memory.decide(["a"], [b"x"], 0, Future())
    memory.settle(first.arrival, ["a"])
    decide(memory, ["a"], now_us=60)
    assert decide(memory, ["a"], now_us=150) == [1]
