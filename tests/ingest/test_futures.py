"""A repetition is not acknowledged before its original is durable, and fails with it.

The topic here is a fake whose appends end when the test says so: what is tested is the time between
an append and its end, which a real topic does not let a test hold.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import cast

import pytest

from headrace.core.address import LogAddress
from headrace.core.errors import DiskFull, Unavailable
from headrace.core.position import Interval, Position
from headrace.ingest.futures import running_future, when_all_ended
from headrace.ingest.intake import Counters, Intake, Receipt
from headrace.log.embedded.writer import EmbeddedWriter

from .conftest import HeldClock, settings, stream

FULL = DiskFull("the disk is full")


class HeldTopic:
    """Appends wait in `appends` until the test ends them."""

    def __init__(self, path: Path, partitions: int) -> None:
        self.folder, self.partitions = path, partitions
        self.address = LogAddress.of_files(path)
        self.appends: list[tuple[int, list[bytes], Future[Interval]]] = []
        self.refuses: set[int] = set()

    def end(self) -> Position:
        return Position.start(self.partitions)

    def append(
        self, partition: int, records: Sequence[bytes], statuses: Sequence[int] | bytes
    ) -> Future[Interval]:
        if partition in self.refuses:
            raise Unavailable("the log is closed")
        future: Future[Interval] = running_future()
        self.appends.append((partition, list(records), future))
        return future

    def succeed(self, index: int) -> None:
        _, records, future = self.appends[index]
        future.set_result(Interval(0, len(records)))

    def fail(self, index: int) -> None:
        self.appends[index][2].set_exception(FULL)


@pytest.fixture
def topic(tmp_path: Path) -> HeldTopic:
    EmbeddedWriter.open(tmp_path, 2, segment_bytes_max=1 << 20).close()
    return HeldTopic(tmp_path, 2)


@pytest.fixture
def intake(topic: HeldTopic) -> Intake:
    said = stream(key="user", id="event_id")
    return Intake(said, cast(EmbeddedWriter, topic), settings=settings(), clock=HeldClock())


# The keys 'user-0' and 'user-4' are in different partitions of two.
def event(identity: str, user: int = 0, ms: int = 1) -> bytes:
    return f'{{"event_id":"{identity}","user":"user-{user}","ms":{ms}}}'.encode()


def test_a_duplicate_waits_for_its_original(intake: Intake, topic: HeldTopic) -> None:
    original, repeated = intake.submit([event("a")]), intake.submit([event("a")])
    topic.succeed(1)
    assert not repeated.done()
    topic.succeed(0)
    assert original.result(0).duplicates == 0
    assert repeated.result(0) == Receipt(1, duplicates=1, offsets=repeated.result(0).offsets)


@pytest.mark.parametrize("ms", [1, 2], ids=["duplicate", "conflict"])
def test_a_repetition_fails_with_its_original_and_both_may_come_again(
    intake: Intake, topic: HeldTopic, ms: int
) -> None:
    original, repeated = intake.submit([event("a")]), intake.submit([event("a", ms=ms)])
    topic.succeed(1)
    topic.fail(0)
    assert original.exception(0) is FULL
    assert repeated.exception(0) is FULL
    again = intake.submit([event("a", ms=ms)])
    topic.succeed(2)
    assert again.result(0).duplicates == again.result(0).conflicts == 0


def test_the_id_is_forgotten_before_the_producer_hears_of_the_failure(
    intake: Intake, topic: HeldTopic
) -> None:
    retries: list[Future[Receipt]] = []
    original = intake.submit([event("a")])
    original.add_done_callback(lambda _: retries.append(intake.submit([event("a")])))
    topic.fail(0)
    topic.succeed(1)
    assert retries[0].result(0).duplicates == 0


def test_a_chain_waits_for_each_original_and_for_nothing_else(
    intake: Intake, topic: HeldTopic
) -> None:
    intake.submit([event("a")])
    second = intake.submit([event("a"), event("b")])
    third = intake.submit([event("b")])
    topic.succeed(1)
    topic.succeed(2)
    assert third.result(0).duplicates == 1  # 'b' is durable, though 'a' is not
    assert not second.done()
    topic.fail(0)
    assert second.exception(0) is FULL
    after = intake.submit([event("b")])
    topic.succeed(3)
    assert after.result(0).duplicates == 1  # 'b' was written, so its producer's retry is told apart


def test_one_failed_partition_fails_the_request_and_forgets_only_its_own_ids(
    intake: Intake, topic: HeldTopic
) -> None:
    body = [event("a", user=0), event("b", user=4)]
    request = intake.submit(body)
    assert sorted(partition for partition, _, _ in topic.appends) == [0, 1]
    lost = next(i for i, (_, records, _) in enumerate(topic.appends) if records == [body[1]])
    topic.fail(lost)
    assert not request.done()
    topic.succeed(1 - lost)
    assert request.exception(0) is FULL
    assert intake.counters == Counters(accepted=1)
    again = intake.submit(body)
    topic.succeed(2)
    topic.succeed(3)
    assert again.result(0).duplicates == 1


def test_a_conflict_that_is_lost_does_not_take_its_original_with_it(
    intake: Intake, topic: HeldTopic
) -> None:
    body = [event("a", user=0), event("a", user=4)]
    intake.submit(body)
    lost = next(i for i, (_, records, _) in enumerate(topic.appends) if records == [body[1]])
    topic.fail(lost)
    topic.succeed(1 - lost)
    again = intake.submit(body)
    topic.succeed(2)
    topic.succeed(3)
    receipt = again.result(0)
    assert (receipt.duplicates, receipt.conflicts) == (1, 1)


def test_a_topic_that_refuses_at_once_fails_the_request_and_forgets(
    intake: Intake, topic: HeldTopic
) -> None:
    topic.refuses = {0, 1}
    assert isinstance(intake.submit([event("a")]).exception(0), Unavailable)
    topic.refuses = set()
    again = intake.submit([event("a")])
    topic.succeed(0)
    assert again.result(0).duplicates == 0


def test_requests_of_one_append_fail_by_their_own_partitions(
    intake: Intake, topic: HeldTopic
) -> None:
    requests = [[event("a", user=0)], [event("b", user=4)], [event("c", user=0)]]
    together = intake.submit_all(requests)
    assert len(topic.appends) == 2, "one append in each partition, for all requests"
    lost = next(i for i, (_, records, _) in enumerate(topic.appends) if records == requests[1])
    topic.fail(lost)
    assert not together.done()
    topic.succeed(1 - lost)
    assert [type(outcome) for outcome in together.result(0)] == [Receipt, DiskFull, Receipt]
    again = intake.submit(requests[1][0:1])
    topic.succeed(2)
    assert again.result(0).duplicates == 0


def test_of_requests_together_only_the_repetition_fails_with_its_original(
    intake: Intake, topic: HeldTopic
) -> None:
    intake.submit([event("a")])
    together = intake.submit_all([[event("b")], [event("a")], [event("b")], [event("c")]])
    for index in range(1, 5):
        topic.succeed(index)
    assert not together.done()
    topic.fail(0)
    outcomes = together.result(0)
    assert [type(outcome) for outcome in outcomes] == [Receipt, DiskFull, Receipt, Receipt]


def test_nothing_to_wait_for_has_ended() -> None:
    told: list[BaseException | None] = []
    when_all_ended([], told.append)
    assert told == [None]


def test_a_client_that_goes_away_cannot_cancel_the_append(intake: Intake, topic: HeldTopic) -> None:
    async def leave() -> Future[Receipt]:
        request = intake.submit([event("a")])
        waiting = asyncio.wrap_future(request)
        waiting.cancel()
        await asyncio.sleep(0)
        return request

    request = asyncio.run(leave())
    topic.succeed(0)
    assert request.result(0).accepted == 1


def test_the_first_failure_in_order_is_told_once_all_have_ended() -> None:
    first: Future[None] = running_future()
    second: Future[None] = running_future()
    told: list[BaseException | None] = []
    when_all_ended([first, second], told.append)
    second.set_exception(FULL)
    assert told == []
    first.set_result(None)
    assert told == [FULL]


class _Records(list[bytes]):
    """A list that can be watched."""


def test_what_waits_for_the_log_does_not_hold_the_records(topic: HeldTopic, intake: Intake) -> None:
    records = _Records([b'{"user": "ann"}'])
    alive, receipt = weakref.ref(records), intake.submit(records)
    del records
    assert alive() is None
    topic.succeed(0)
    assert receipt.result() == Receipt(1, offsets=receipt.result().offsets)
