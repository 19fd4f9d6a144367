"""The law of headrace/log/embedded/reader.py:
exactly the offsets asked for, and never beyond the mark."""

from __future__ import annotations

import multiprocessing
import pickle
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest
from chance import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.errors import NotFound
from headrace.core.position import Interval, Position
from headrace.log.block import PackedRecords, encode_block
from headrace.log.embedded.mark import DurableMark, mark_path
from headrace.log.embedded.reader import EmbeddedReader
from headrace.log.embedded.segment import list_segments
from headrace.log.embedded.writer import EmbeddedWriter

from .conftest import OpenTopic, put, read_all


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records 000 to 119 in groups of 1 to 7, over many segments."""
    path = tmp_path_factory.mktemp("reader") / "clicks"
    topic, first = EmbeddedWriter.open(path, 1, segment_bytes_max=4096), 0
    while first < 120:
        count = min(1 + first % 7, 120 - first)
        put(topic, *(b"%03d" % i + bytes(200) for i in range(first, first + count)))
        first += count
    topic.close()
    assert len(list_segments(path / "0")) > 4
    return path


@settings(max_examples=examples(60))
@given(one=st.integers(0, 120), other=st.integers(0, 120))
def test_exactly_the_offsets_asked_for_are_read(path: Path, one: int, other: int) -> None:
    interval = Interval(min(one, other), max(one, other))
    blocks = list(EmbeddedReader(path).blocks(0, interval))
    numbers = [int(record[:3]) for block in blocks for record in block.records()]
    offsets = [o for block in blocks for o in range(block.first_offset, block.next_offset)]
    assert numbers == offsets == list(range(interval.lower, interval.upper))


def test_reading_beyond_the_end_says_so(path: Path) -> None:
    with pytest.raises(NotFound) as caught:
        list(EmbeddedReader(path).blocks(0, Interval(100, 121)))
    assert caught.value.message == (
        f"offsets [100, 121) are not yet in partition 0 of the log at {path}"
    )
    assert caught.value.detail == "it ends at offset 120."


def test_a_reader_is_pickled_as_its_path(path: Path) -> None:
    reader = pickle.loads(pickle.dumps(EmbeddedReader(path)))
    assert (reader.path, reader.partitions, reader.end()) == (path, 1, Position((120,)))


def test_a_reader_of_a_log_that_nobody_writes_takes_its_end_from_the_blocks_also_in_a_task(
    open_topic: OpenTopic,
) -> None:
    topic = open_topic()
    put(topic, b"a", b"b")
    topic.close()
    mark_path(topic.path / "0").write_bytes(DurableMark(0, 0, 0).encoded())  # as of a power cut
    reader = EmbeddedReader(topic.path, written=False)
    again: EmbeddedReader = pickle.loads(pickle.dumps(reader))
    assert reader.end() == again.end() == Position((2,))


def test_a_log_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no log at"):
        EmbeddedReader(tmp_path)


def test_whole_blocks_above_the_mark_are_not_seen(open_topic: OpenTopic) -> None:
    topic = open_topic()
    put(topic, b"a")
    with list_segments(topic.path / "0")[0].path.open("ab") as file:
        file.write(encode_block(1, 0, PackedRecords.of([b"unpublished"]), bytes(1)))
    assert EmbeddedReader(topic.path).end() == Position((1,))
    assert read_all(topic.path) == [b"a"]


def watch(path: Path, stop: Event, found: multiprocessing.Queue[int | str]) -> None:
    """Read to the published end again and again; every record must be there and be right."""
    reader, seen = EmbeddedReader(path), 0
    try:
        while True:
            last = stop.is_set()
            end = reader.end().offsets[0]
            for block in reader.blocks(0, Interval(seen, end)):
                numbers = [int(record[:6]) for record in block.records()]
                assert numbers == list(range(block.first_offset, block.next_offset))
                seen = block.next_offset
            assert seen == end
            if last:
                return found.put(seen)
    except BaseException as error:
        found.put(repr(error))


def test_a_reader_in_another_process_sees_only_what_is_published(open_topic: OpenTopic) -> None:
    topic = open_topic(segment_bytes_max=20_000)
    context = multiprocessing.get_context("spawn")
    stop, found = context.Event(), context.Queue()
    process = context.Process(target=watch, args=(topic.path, stop, found))
    process.start()
    for i in range(2_000):
        put(topic, b"%06d" % i)
    stop.set()
    assert found.get(timeout=60) == 2_000
    process.join(timeout=60)
    found.close()


def test_position_at_is_the_first_event_that_arrived_then_or_later(open_topic: OpenTopic) -> None:
    now = [0]
    topic = open_topic(2, segment_bytes_max=4096, clock=lambda: now[0])
    for i in range(30):
        now[0] = 1_000 * (i // 3)  # three blocks share each arrival
        put(topic, b"x" * 900, partition=0)
    now[0] = 5_000
    put(topic, b"a", b"b", partition=1)
    reader = EmbeddedReader(topic.path)
    for time_us in (-5, 0, 1, 999, 1_000, 1_001, 4_500, 5_000, 5_001, 9_000, 9_001):
        first = next((i for i in range(30) if 1_000 * (i // 3) >= time_us), 30)
        assert reader.position_at(time_us) == Position((first, 0 if time_us <= 5_000 else 2))


def test_position_at_of_an_empty_log_is_its_end(open_topic: OpenTopic) -> None:
    assert EmbeddedReader(open_topic(2).path).position_at(0) == Position((0, 0))
