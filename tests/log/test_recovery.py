"""The law of headrace/log/embedded/recover.py:
a torn tail is cut off, damage below the mark is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.core.errors import CorruptLog, Unavailable
from headrace.core.position import Interval
from headrace.log.block import PackedRecords, encode_block
from headrace.log.embedded.mark import DurableMark, load_mark
from headrace.log.embedded.reader import EmbeddedReader
from headrace.log.embedded.recover import recover
from headrace.log.embedded.segment import list_segments
from headrace.log.embedded.writer import EmbeddedWriter

from .conftest import OpenTopic, put, read_all


def made(open_topic: OpenTopic, *groups: list[bytes]) -> Path:
    """A closed topic with one block for each group; returns its partition's folder."""
    topic = open_topic()
    for group in groups:
        put(topic, *group)
    topic.close()
    return topic.path / "0"


def segment_of(folder: Path) -> Path:
    return list_segments(folder)[-1].path


def back_to(folder: Path, mark: DurableMark) -> None:
    (folder / "durable").write_bytes(mark.encoded())


@pytest.mark.parametrize("marked", [True, False], ids=["with its mark", "without a mark"])
def test_a_tail_torn_at_any_byte_is_cut_off(open_topic: OpenTopic, marked: bool) -> None:
    folder = made(open_topic, [b"a", b"b"], [b"c"])
    before = load_mark(folder)
    assert before is not None
    whole = segment_of(folder).read_bytes()
    tail = encode_block(3, 0, PackedRecords.of([b"torn", b"tail"]), bytes(2))
    for cut in range(len(tail)):
        segment_of(folder).write_bytes(whole + tail[:cut])
        if not marked:
            (folder / "durable").unlink()
        assert recover(folder).mark == before
        back_to(folder, before)
    segment_of(folder).write_bytes(whole + tail[:-1])
    assert put(open_topic(), b"next") == Interval(3, 4)
    assert read_all(folder.parent) == [b"a", b"b", b"c", b"next"]


def test_whole_blocks_above_the_mark_are_kept(open_topic: OpenTopic) -> None:
    folder = made(open_topic, [b"a"], [b"b"])
    tail = (
        encode_block(2, 0, PackedRecords.of([b"synced"]), bytes(1))
        + encode_block(3, 0, PackedRecords.of([b"torn"]), bytes(1))[:-3]
    )
    with segment_of(folder).open("ab") as file:
        file.write(tail)
    assert put(open_topic(), b"next") == Interval(3, 4)
    assert read_all(folder.parent) == [b"a", b"b", b"synced", b"next"]


def test_a_flipped_bit_below_the_mark_is_corruption_for_writer_and_reader(
    open_topic: OpenTopic,
) -> None:
    folder = made(open_topic, [b"a", b"bb"], [b"c"], [b"d"])
    path, path_bytes = segment_of(folder), segment_of(folder).read_bytes()
    firsts = {
        block.first_offset for block in EmbeddedReader(folder.parent).blocks(0, Interval(0, 4))
    }
    for at in range(len(path_bytes)):
        damaged = bytearray(path_bytes)
        damaged[at] ^= 1 << (at % 8)
        path.write_bytes(damaged)
        with pytest.raises(CorruptLog) as caught:
            recover(folder)
        assert str(path) in caught.value.message
        with pytest.raises(CorruptLog):
            read_all(folder.parent)
        assert path.read_bytes() == bytes(damaged)
    assert firsts == {0, 2, 3}


def test_corruption_names_the_file_and_the_offset(open_topic: OpenTopic) -> None:
    folder = made(open_topic, [b"first"], [b"second", b"third"])
    path = segment_of(folder)
    path.write_bytes(path.read_bytes().replace(b"third", b"thirt"))
    with pytest.raises(CorruptLog) as caught:
        open_topic()
    assert caught.value.message == (f"the record at offset 2 of the log is damaged in {path}")
    assert caught.value.detail == "at byte 51: the checksum does not match."
    assert caught.value.origin == str(path)


def test_events_before_the_damage_can_still_be_read(open_topic: OpenTopic) -> None:
    folder = made(open_topic, [b"first"], [b"second"], [b"third"])
    path = segment_of(folder)
    path.write_bytes(path.read_bytes().replace(b"second", b"sEcond"))
    blocks = EmbeddedReader(folder.parent).blocks(0, Interval(0, 3))
    assert next(blocks).records() == [b"first"]
    with pytest.raises(CorruptLog, match="offset 1 of the log"):
        next(blocks)


@pytest.mark.parametrize("mark", [b"", b"short", bytes(32), None])
def test_a_lost_mark_is_rebuilt(open_topic: OpenTopic, mark: bytes | None) -> None:
    folder = made(open_topic, [b"a"], [b"b"])
    if mark is None:
        (folder / "durable").unlink()
    else:
        (folder / "durable").write_bytes(mark)
    with pytest.raises(Unavailable, match="the file with its durable end is missing or damaged"):
        EmbeddedReader(folder.parent).end()
    assert put(open_topic(), b"c") == Interval(2, 3)
    assert read_all(folder.parent) == [b"a", b"b", b"c"]


def test_without_a_mark_damage_before_a_whole_block_is_corruption(open_topic: OpenTopic) -> None:
    folder = made(open_topic, [b"first"], [b"HRbk, a record like a block"], [b"third"])
    (folder / "durable").unlink()
    path, whole = segment_of(folder), segment_of(folder).read_bytes()
    path.write_bytes(whole.replace(b"a record", b"a rexord"))
    with pytest.raises(CorruptLog, match="offset 1 of the log"):
        open_topic()
    path.write_bytes(whole.replace(b"third", b"thirt"))
    assert put(open_topic(), b"again") == Interval(2, 3)


def test_acknowledged_bytes_that_are_gone_are_corruption(open_topic: OpenTopic) -> None:
    folder = made(open_topic, [b"a"], [b"b"])
    path, whole = segment_of(folder), segment_of(folder).read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(CorruptLog):
            recover(folder)
    path.unlink()
    with pytest.raises(CorruptLog, match="is missing"):
        open_topic()


def test_a_mark_older_than_the_last_seal_is_brought_up_to_date(open_topic: OpenTopic) -> None:
    topic = open_topic(segment_bytes_max=4096)
    put(topic, b"0")
    old = load_mark(topic.path / "0")
    assert old is not None
    for i in range(1, 12):
        put(topic, b"%d" % i + bytes(1000))
    topic.close()
    assert len(list_segments(topic.path / "0")) > 2
    back_to(topic.path / "0", old)
    assert open_topic(segment_bytes_max=4096).end().offsets == (12,)
    assert len(read_all(topic.path)) == 12


def test_a_sealed_segment_that_lost_its_end_is_corruption(open_topic: OpenTopic) -> None:
    topic = open_topic(segment_bytes_max=4096)
    for i in range(12):
        put(topic, b"%d" % i + bytes(1000))
    sealed = list_segments(topic.path / "0")[0]
    blocks = list(EmbeddedReader(topic.path).blocks(0, Interval(0, 1)))
    sealed.path.write_bytes(sealed.path.read_bytes()[: blocks[0].stored_bytes])
    with pytest.raises(CorruptLog, match="the block that starts at offset 1"):
        read_all(topic.path)


def test_arrival_never_goes_back_across_a_restart(open_topic: OpenTopic) -> None:
    for now in (5_000, 3_000, 9_000):
        put(open_topic(clock=lambda now=now: now), b"x")
    path = open_topic().path
    arrived = [b.arrived_at_us for b in EmbeddedReader(path).blocks(0, Interval(0, 3))]
    assert arrived == [5_000, 5_000, 9_000]


def test_a_topic_half_made_is_made_again(open_topic: OpenTopic, tmp_path: Path) -> None:
    (tmp_path / "clicks" / "0").mkdir(parents=True)
    (tmp_path / "clicks" / "0" / f"{0:020d}.seg").touch()
    topic: EmbeddedWriter = open_topic(2)
    assert put(topic, b"a") == Interval(0, 1)
