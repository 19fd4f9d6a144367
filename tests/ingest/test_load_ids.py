"""After a start all ids are known again, with the index or without it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence

import pytest

from headrace.core.position import Interval, Position
from headrace.ingest.id_index import IdIndex

from .conftest import Bench, ids_in_memory

SMALL = {"ids_max": 20}


def event(number: int, ms: int = 1) -> bytes:
    return f'{{"event_id":{number},"user":"u{number % 5}","ms":{ms}}}'.encode()


def fill(bench: Bench, many: int = 200) -> None:
    intake = bench.intake(id="event_id", key="user", changes=SMALL)
    for start in range(0, many, 10):
        bench.clock.now_us += 1
        intake.accept([event(n) for n in range(start, start + 10)])
        intake.close()  # which waits until the index has them


def all_are_known(bench: Bench, many: int = 200) -> bool:
    intake = bench.intake(id="event_id", key="user", changes=SMALL)
    assert intake.accept([event(n, ms=2) for n in range(many)]).conflicts == many
    return intake.accept([event(n) for n in range(many)]).duplicates == many


def test_with_its_index_only_the_tail_of_the_log_is_read(bench: Bench) -> None:
    fill(bench)
    intake = bench.intake(id="event_id", key="user", changes=SMALL)
    assert ids_in_memory(intake) <= 40
    assert all_are_known(bench)


def test_a_lost_index_is_made_again_of_the_log(bench: Bench) -> None:
    fill(bench)
    bench.close()
    shutil.rmtree(bench.folder / "topic" / "ids")
    assert all_are_known(bench)


@pytest.mark.parametrize("lost", [False, True])
def test_what_retention_has_removed_is_read_from_the_master(bench: Bench, lost: bool) -> None:
    bench.segment_bytes_max = 1
    fill(bench)
    kept = {(p, r) for p, r, status in bench.logged() if not status}
    assert bench.topic is not None
    archived = bench.topic.end()
    bench.clock.now_us += 10
    bench.topic.retain(archived, 0)
    first = bench.topic.start()
    assert sum(first.offsets) > 100
    bench.close()
    if lost:
        shutil.rmtree(bench.folder / "topic" / "ids")
    asked = list[tuple[int, Interval]]()

    def history(partition: int, interval: Interval) -> Iterator[tuple[Sequence[bytes], int]]:
        asked.append((partition, interval))
        yield [record for p, record in kept if p == partition], interval.upper

    bench.history = history
    assert all_are_known(bench)
    assert bool(asked) == lost
    assert first <= Position(archived.offsets)


def test_a_full_disk_does_not_keep_a_stream_from_its_start(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(bench)
    bench.close()
    shutil.rmtree(bench.folder / "topic" / "ids")

    def no_room(*_: object) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(IdIndex, "add", no_room)
    intake = bench.intake(id="event_id", key="user", changes=SMALL)
    assert ids_in_memory(intake) == 200
    assert intake.accept([event(n) for n in range(200)]).duplicates == 200
    monkeypatch.undo()
    assert all_are_known(bench)


def test_a_duplicate_is_not_taken_for_an_original(bench: Bench) -> None:
    bench.intake(id="event_id", partitions=1)
    assert bench.topic is not None
    bench.topic.append(0, [event(1)], bytes([1])).result()
    again = bench.intake(id="event_id", partitions=1)
    assert again.accept([event(1)]).duplicates == 0


def test_an_id_that_is_declared_later_is_known_of_all_history(bench: Bench) -> None:
    bench.intake(key="user").accept([event(n) for n in range(100)])
    intake = bench.intake(key="user", id="event_id", changes=SMALL)
    assert intake.accept([event(n) for n in range(100)]).duplicates == 100
