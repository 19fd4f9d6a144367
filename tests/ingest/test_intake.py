"""The intake on a real topic: what it takes, refuses and recognises."""

from __future__ import annotations

import errno
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headrace.core.errors import DiskFull, LimitReached
from headrace.core.time import DAY, SECOND
from headrace.ingest.guards import DiskGuard
from headrace.ingest.intake import Counters, Intake, Receipt
from headrace.ingest.records import split_lines
from headrace.log.embedded.files import Files
from headrace.log.embedded.writer import EmbeddedWriter

from .conftest import Bench, HeldClock, ids_in_memory, settings, stream


def event(identity: object, user: str = "ada", ms: int = 1) -> bytes:
    return f'{{"event_id":"{identity}","user":"{user}","ms":{ms}}}'.encode()


def test_accepted_records_are_in_the_log_as_they_came(bench: Bench) -> None:
    intake = bench.intake(partitions=1)
    receipt = intake.accept([b'{"user":"ada"}', b"no json at all", b"\xff"])
    assert receipt == Receipt(accepted=3, offsets=((0, 0, 3),))
    assert bench.logged() == [(0, b'{"user":"ada"}', 0), (0, b"no json at all", 0), (0, b"\xff", 0)]


def test_nothing_is_accepted_as_nothing(bench: Bench) -> None:
    assert bench.intake().accept([]) == Receipt(0)


def test_a_repeated_id_is_a_duplicate_and_another_body_a_conflict(bench: Bench) -> None:
    intake = bench.intake(partitions=1, id="event_id")
    first = intake.accept([event(1), event(2), event(1)])
    second = intake.accept([event(2), event(2, ms=99), event(3)])
    assert first == Receipt(3, duplicates=1, conflicts=0, offsets=((0, 0, 3),))
    assert second == Receipt(3, duplicates=1, conflicts=1, offsets=((0, 3, 6),))
    assert [status for _, _, status in bench.logged()] == [0, 0, 1, 1, 2, 0]
    assert intake.counters == Counters(accepted=6, duplicates=2, conflicts=1)


def test_without_a_declared_id_nothing_is_a_duplicate(bench: Bench) -> None:
    assert bench.intake().accept([event(1), event(1)]).duplicates == 0


def test_the_same_file_sent_again_is_all_duplicates_however_long_it_is_and_how_late(
    bench: Bench,
) -> None:
    file = [event(n, user=f"user-{n % 7}") for n in range(1_000)]
    intake = bench.intake(id="event_id", key="user", changes={"ids_max": 100})
    for start in range(0, 1_000, 50):
        assert intake.accept(file[start : start + 50]).duplicates == 0
    bench.clock.now_us += 365 * DAY
    assert [intake.accept(file[n : n + 50]).duplicates for n in range(0, 1_000, 50)] == [50] * 20
    assert intake.accept([event(3, user="user-3", ms=77)]).conflicts == 1
    again = bench.intake(id="event_id", key="user", changes={"ids_max": 100})
    assert again.accept(file).duplicates == 1_000
    assert again.accept([event(n, ms=77) for n in range(0, 1_000, 10)]).conflicts == 100
    assert again.accept([event(1_000)]).duplicates == 0


def test_a_restart_does_not_remember_a_duplicate_that_lost_its_original(bench: Bench) -> None:
    bench.intake(id="event_id", partitions=1)
    assert bench.topic is not None
    bench.topic.append(0, [event(1)], bytes([1])).result()
    again = bench.intake(id="event_id", partitions=1)
    assert again.accept([event(1)]).duplicates == 0


def test_one_key_stays_in_one_partition_and_in_order(bench: Bench) -> None:
    intake = bench.intake(partitions=4, key="user")
    for n in range(10):
        receipt = intake.accept([event(n, user=f"user-{u}", ms=n) for u in range(20)])
        assert sum(upper - lower for _, lower, upper in receipt.offsets) == 20
    places = {(p, r.split(b'"user":')[1].split(b",")[0]) for p, r, _ in bench.logged()}
    assert len(places) == 20
    assert {p for p, _ in places} == {0, 1, 2, 3}


def test_threads_that_send_the_same_ids_make_one_event_of_each(bench: Bench) -> None:
    intake = bench.intake(id="event_id", key="user")
    body = [event(n, user=f"user-{n % 9}") for n in range(500)]
    with ThreadPoolExecutor(8) as pool:
        receipts = list(pool.map(lambda _: intake.accept(body), range(16)))
    assert sum(r.accepted - r.duplicates for r in receipts) == 500
    assert sum(status == 0 for _, _, status in bench.logged()) == 500
    assert intake.counters == Counters(accepted=8000, duplicates=7500)


def test_a_record_above_the_limit_refuses_its_whole_request(bench: Bench) -> None:
    intake = bench.intake(changes={"event_bytes_max": 10})
    with pytest.raises(LimitReached) as refused:
        intake.accept([b"x" * 10, b"x" * 11])
    assert refused.value.message == "record 2 of 2 has 11 bytes, and the limit is 10"
    assert refused.value.http_status == 413
    assert bench.logged() == []
    assert intake.accept([b"x" * 10]).accepted == 1


def test_nothing_is_taken_while_the_disk_is_nearly_full(bench: Bench) -> None:
    intake = bench.intake(changes={"free_bytes_min": 1 << 60})
    with pytest.raises(DiskFull, match="ingest stops below 1152921504606846976"):
        intake.submit([b"x"])
    assert bench.logged() == []


class FullDisk(Files):
    """A disk that takes nothing more while `full`."""

    full = False

    def fdatasync(self, fd: int) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "no space left")
        super().fdatasync(fd)


def test_what_a_full_disk_refused_is_an_event_when_it_comes_again(tmp_path: Path) -> None:
    disk = FullDisk()
    topic = EmbeddedWriter.open(tmp_path / "topic", 2, segment_bytes_max=1 << 20, files=disk)
    intake = Intake(stream(key="user", id="event_id"), topic, settings=settings())
    body = [event(n, user=f"user-{n}") for n in range(10)]
    disk.full = True
    for _ in range(2):
        with pytest.raises(DiskFull):
            intake.accept(body)
    assert intake.counters == Counters()
    assert ids_in_memory(intake) == 0
    disk.full = False
    assert intake.accept(body).duplicates == 0
    assert intake.accept(body).duplicates == 10
    topic.close()


def test_the_disk_is_looked_at_once_a_second_and_ingest_goes_on_when_it_is_freed() -> None:
    clock, looks, free = HeldClock(), list[Path](), [5]

    def look(path: Path) -> int:
        looks.append(path)
        return free[0]

    guard = DiskGuard(Path("/log"), 10, clock, free=look)
    for _ in range(3):
        with pytest.raises(DiskFull):
            guard.check()
    assert looks == [Path("/log")]
    free[0] = 10
    clock.now_us += SECOND
    guard.check()
    assert len(looks) == 2


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (b"", []),
        (b"\n\r\n  \n", []),
        (b"a\r\nb\n\nc", [b"a", b"b", b"c"]),
        (b"a\r", [b"a"]),
        (b" a \n\tb", [b" a ", b"\tb"]),
    ],
)
def test_lines_are_split_and_blank_ones_are_none(body: bytes, lines: list[bytes]) -> None:
    assert split_lines(body) == lines


def test_requests_that_are_submitted_together_have_outcomes_of_their_own(bench: Bench) -> None:
    intake = bench.intake(partitions=1, changes={"event_bytes_max": 10})
    outcomes = intake.submit_all([[b"a", b"b"], [b"x" * 11], [], [b"c"]]).result()
    assert outcomes[0] == Receipt(2, offsets=((0, 0, 2),))
    assert isinstance(outcomes[1], LimitReached)
    assert outcomes[2:] == [Receipt(0), Receipt(1, offsets=((0, 2, 3),))]
    assert bench.records() == [b"a", b"b", b"c"]
    assert intake.counters == Counters(accepted=3)


def test_of_requests_that_are_submitted_together_a_later_one_repeats_an_earlier(
    bench: Bench,
) -> None:
    intake = bench.intake(partitions=2, id="event_id", key="user")
    first = [event(n, user=f"user-{n}") for n in range(9)]
    receipts = intake.submit_all([first, [event(9)], first[:3], [event(1, ms=7)]]).result()
    assert receipts[0] == Receipt(9, offsets=receipts[0].offsets)  # type: ignore[union-attr]
    found = [(r.duplicates, r.conflicts) for r in receipts if isinstance(r, Receipt)]
    assert found == [(0, 0), (0, 0), (3, 0), (0, 1)]
    assert intake.counters == Counters(accepted=14, duplicates=3, conflicts=1)


def test_a_request_across_partitions_knows_its_offsets_among_others(bench: Bench) -> None:
    intake = bench.intake(partitions=4, key="user", id="event_id")
    requests = [[event(10 * n + i, user=f"user-{i}") for i in range(n)] for n in range(1, 6)]
    receipts = intake.submit_all(requests).result()
    logged = {(p, o): r for p, o, r in _places(bench)}
    for records, receipt in zip(requests, receipts, strict=True):
        assert isinstance(receipt, Receipt)
        found = [logged[p, o] for p, first, after in receipt.offsets for o in range(first, after)]
        assert sorted(found) == sorted(records)


def _places(bench: Bench) -> list[tuple[int, int, bytes]]:
    """(partition, offset, record) of all that the log has."""
    counted: dict[int, int] = {}
    places = []
    for partition, record, _ in bench.logged():
        places.append((partition, counted.get(partition, 0), record))
        counted[partition] = counted.get(partition, 0) + 1
    return places
