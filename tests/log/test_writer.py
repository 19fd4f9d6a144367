"""The law of headrace/log/embedded/writer.py: offsets without gaps, acknowledged when durable."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from headrace.core.errors import (
    AlreadyRunning,
    BadDefinition,
    NotFound,
    Unavailable,
    UnsupportedFormat,
)
from headrace.core.event import EventStatus
from headrace.core.position import Interval, Position
from headrace.core.version import __version__
from headrace.log.block import PackedRecords
from headrace.log.embedded.files import Files
from headrace.log.embedded.reader import EmbeddedReader
from headrace.log.embedded.segment import list_segments
from headrace.log.embedded.writer import EmbeddedWriter

from .conftest import OpenTopic, put, read_all
from .faulty_files import HalvingFiles


def test_events_come_back_in_order_with_their_statuses(open_topic: OpenTopic) -> None:
    topic = open_topic(2)
    statuses = [EventStatus.EVENT, EventStatus.DUPLICATE, EventStatus.DEAD_LETTER]
    assert topic.append(1, [b"a", b"b\n", b""], statuses).result() == Interval(0, 3)
    assert topic.append(1, [b"d"], [EventStatus.EVENT]).result() == Interval(3, 4)
    blocks = list(EmbeddedReader(topic.path).blocks(1, Interval(0, 4)))
    assert [r for b in blocks for r in b.records()] == [b"a", b"b\n", b"", b"d"]
    assert [s for b in blocks for s in b.statuses.tolist()] == [0, 1, 2, 0]
    assert topic.end() == EmbeddedReader(topic.path).end() == Position((0, 4))


def test_packed_records_are_a_block_of_their_own_between_others(open_topic: OpenTopic) -> None:
    topic = open_topic(1)
    packed = PackedRecords.of([b"c", b"d\n"], imported=True)
    futures = [topic.append(0, [record], bytes(1)) for record in (b"a", b"b")]
    futures += [topic.append_packed(0, packed, b"\0\1"), topic.append(0, [b"e"], bytes(1))]
    assert [future.result().upper for future in futures] == [1, 2, 4, 5]
    blocks = list(EmbeddedReader(topic.path).blocks(0, Interval(0, 5)))
    assert [r for b in blocks for r in b.records()] == [b"a", b"b", b"c", b"d\n", b"e"]
    [own] = [block for block in blocks if block.imported]
    assert (own.first_offset, own.statuses.tolist()) == (2, [0, 1])


def test_an_append_of_nothing_gets_an_empty_interval(open_topic: OpenTopic) -> None:
    topic = open_topic()
    put(topic, b"a")
    assert put(topic) == Interval(1, 1)
    assert read_all(topic.path) == [b"a"]


def test_a_topic_goes_on_where_it_was_closed(open_topic: OpenTopic) -> None:
    put(open_topic(), b"a", b"b")
    topic = open_topic()
    assert put(topic, b"c") == Interval(2, 3)
    assert read_all(topic.path) == [b"a", b"b", b"c"]


class GatedFiles(Files):
    """Lets a test hold the disk while more appends arrive."""

    def __init__(self) -> None:
        self.gate, self.entered, self.syncs = threading.Event(), threading.Event(), 0
        self.gate.set()

    def fdatasync(self, fd: int) -> None:
        self.syncs += 1
        self.entered.set()
        self.gate.wait(20)
        super().fdatasync(fd)


def test_all_that_waits_is_committed_with_one_sync_and_one_block(open_topic: OpenTopic) -> None:
    files = GatedFiles()
    topic = open_topic(files=files)
    files.gate.clear()
    first = topic.append(0, [b"first"], bytes(1))
    assert files.entered.wait(20)
    futures = [topic.append(0, [b"x%d" % i], bytes(1)) for i in range(100)]
    assert not first.done()
    assert EmbeddedReader(topic.path).end() == Position((0,))
    files.gate.set()
    assert [f.result(20) for f in futures] == [Interval(i, i + 1) for i in range(1, 101)]
    assert files.syncs == 2
    counts = [block.count for block in EmbeddedReader(topic.path).blocks(0, Interval(0, 101))]
    assert counts == [1, 100]


def test_appends_from_many_threads_get_offsets_of_their_own(open_topic: OpenTopic) -> None:
    topic = open_topic(segment_bytes_max=4096)
    seen: dict[int, bytes] = {}

    def produce(name: int) -> None:
        for i in range(50):
            record = b"%d-%d" % (name, i)
            seen[put(topic, record).lower] = record

    threads = [threading.Thread(target=produce, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [seen[offset] for offset in range(300)] == read_all(topic.path)


def test_a_large_group_is_cut_into_blocks(open_topic: OpenTopic) -> None:
    topic = open_topic(segment_bytes_max=64 << 20)
    small, large = [b"%d" % i for i in range(70_000)], [bytes(3 << 20)] * 3
    put(topic, *small)
    put(topic, *large)
    blocks = list(EmbeddedReader(topic.path).blocks(0, Interval(0, 70_003)))
    assert [block.count for block in blocks] == [65_536, 4_464, 1, 1, 1]
    assert read_all(topic.path) == small + large


def test_a_disk_that_takes_a_part_of_each_write_gets_the_rest(open_topic: OpenTopic) -> None:
    topic = open_topic(files=HalvingFiles())
    put(topic, b"a" * 1000, b"b")
    assert read_all(topic.path) == [b"a" * 1000, b"b"]


def test_full_segments_are_sealed_and_all_are_read(open_topic: OpenTopic) -> None:
    topic = open_topic(segment_bytes_max=4096)
    records = [b"%04d" % i + bytes(500) for i in range(50)]
    for record in records:
        put(topic, record)
    assert len(list_segments(topic.path / "0")) > 5
    assert read_all(topic.path) == records
    topic = open_topic(segment_bytes_max=4096)
    assert topic.end() == Position((50,))


def test_another_number_of_partitions_is_refused(open_topic: OpenTopic) -> None:
    path = open_topic(2).path
    with pytest.raises(BadDefinition) as caught:
        open_topic(3)
    assert caught.value.message == (
        f"the log at {path} has 2 partitions and cannot be opened with 3"
    )


def test_a_second_writer_is_refused(open_topic: OpenTopic) -> None:
    topic = open_topic()
    with pytest.raises(AlreadyRunning, match="another process has the log"):
        EmbeddedWriter.open(topic.path, 1, segment_bytes_max=4096)
    put(topic, b"still here")


def test_a_closed_topic_takes_nothing(open_topic: OpenTopic) -> None:
    topic = open_topic()
    topic.close()
    topic.close()
    with pytest.raises(Unavailable, match="is closed"):
        put(topic, b"a")


def test_statuses_must_match_the_records(open_topic: OpenTopic) -> None:
    with pytest.raises(ValueError, match="2 records cannot have 1 statuses"):
        open_topic().append(0, [b"a", b"b"], bytes(1))


@pytest.mark.parametrize(
    ("version", "who", "hint"),
    [
        (2, "a newer", "use the Headrace that wrote it, or a newer one."),
        (0, "an older", "open it first with a Headrace that was released between the two."),
    ],
)
def test_another_format_is_refused_by_readers_and_writers(
    open_topic: OpenTopic, version: int, who: str, hint: str
) -> None:
    topic = open_topic()
    put(topic, b"a")
    topic.close()
    (topic.path / "topic.json").write_text(json.dumps({"partitions": 1, "version": version}))
    before = {path: path.read_bytes() for path in topic.path.rglob("*") if path.is_file()}
    for open_again in (lambda: EmbeddedReader(topic.path), open_topic):
        with pytest.raises(UnsupportedFormat) as refused:
            open_again()
        assert refused.value.message == (
            f"the log at {topic.path} has format version {version}, but Headrace "
            f"{__version__} supports version 1"
        )
        assert refused.value.detail == f"it was written by {who} Headrace; nothing was changed."
        assert refused.value.hint == hint
    assert {path: path.read_bytes() for path in topic.path.rglob("*") if path.is_file()} == before


class TestRetention:
    """Sealed, archived and old: only what is all three goes."""

    @staticmethod
    def filled(open_topic: OpenTopic) -> tuple[EmbeddedWriter, list[int]]:
        now = iter(range(0, 10_000_000, 1000))
        topic = open_topic(segment_bytes_max=4096, clock=lambda: next(now))
        for i in range(20):
            put(topic, b"%02d" % i + bytes(1500))
        return topic, [s.first_offset for s in list_segments(topic.path / "0")]

    def test_archived_old_segments_are_deleted(self, open_topic: OpenTopic) -> None:
        topic, firsts = self.filled(open_topic)
        path = topic.path
        size = list_segments(path / "0")[0].size
        freed = topic.retain(Position((firsts[2],)), 0)
        assert freed == 2 * size
        assert topic.start() == EmbeddedReader(path).start() == Position((firsts[2],))
        assert read_all(path)[0].startswith(b"%02d" % firsts[2])

    def test_what_is_not_archived_stays(self, open_topic: OpenTopic) -> None:
        topic, firsts = self.filled(open_topic)
        assert topic.retain(Position((firsts[1] - 1,)), 0) == 0

    def test_what_is_young_stays(self, open_topic: OpenTopic) -> None:
        topic, _ = self.filled(open_topic)
        assert topic.retain(Position((20,)), 10_000_000) == 0

    def test_the_active_segment_stays(self, open_topic: OpenTopic) -> None:
        topic, firsts = self.filled(open_topic)
        topic.retain(Position((20,)), 0)
        assert topic.start() == Position((firsts[-1],))
        assert put(topic, b"more") == Interval(20, 21)

    def test_reading_what_was_removed_says_so(self, open_topic: OpenTopic) -> None:
        topic, firsts = self.filled(open_topic)
        topic.retain(Position((firsts[2],)), 0)
        with pytest.raises(NotFound) as caught:
            list(EmbeddedReader(topic.path).blocks(0, Interval(1, 20)))
        assert "offsets [1, 20) are no longer in partition 0" in caught.value.message
        assert caught.value.detail == f"retention has removed all events before offset {firsts[2]}."

    def test_a_topic_opens_again_after_retention(self, open_topic: OpenTopic) -> None:
        topic, firsts = self.filled(open_topic)
        topic.retain(Position((20,)), 0)
        again = open_topic(segment_bytes_max=4096)
        assert again.start() == Position((firsts[-1],))
        assert again.end() == Position((20,))


def test_closing_twice_does_not_cut_off_what_another_writer_appended(tmp_path: Path) -> None:
    old = EmbeddedWriter.open(tmp_path, 1, segment_bytes_max=4096)
    put(old, b"a")
    old.close()
    new = EmbeddedWriter.open(tmp_path, 1, segment_bytes_max=4096)
    put(new, b"b")
    old.close()
    assert read_all(tmp_path) == [b"a", b"b"]
    new.close()
