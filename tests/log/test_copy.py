"""A topic is copied as it was at one moment, while it goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.core.errors import NotFound, Unavailable
from headrace.core.position import Interval, Position
from headrace.log.embedded.copy import copy_segments, snapshot_of
from headrace.log.embedded.reader import EmbeddedReader
from headrace.log.embedded.writer import EmbeddedWriter


def records(path: Path, partition: int = 0) -> list[bytes]:
    reader = EmbeddedReader(path)
    whole = Interval(reader.start().offsets[partition], reader.end().offsets[partition])
    return [record for block in reader.blocks(partition, whole) for record in block.records()]


def append(topic: EmbeddedWriter, *numbers: int) -> None:
    for number in numbers:
        topic.append(0, [b"%d" % number], bytes(1)).result()


@pytest.mark.parametrize("segment_bytes_max", [1, 100, 1 << 20])
def test_what_came_after_the_snapshot_is_not_in_the_copy(
    tmp_path: Path, segment_bytes_max: int
) -> None:
    topic = EmbeddedWriter.open(tmp_path / "log", 2, segment_bytes_max=segment_bytes_max)
    append(topic, 1, 2, 3)
    taken = snapshot_of(tmp_path / "log")
    append(topic, 4, 5)
    copy_segments(taken, tmp_path / "copy")
    topic.close()
    assert records(tmp_path / "copy") == [b"1", b"2", b"3"]
    assert records(tmp_path / "copy", partition=1) == []
    again = EmbeddedWriter.open(tmp_path / "copy", 2, segment_bytes_max=segment_bytes_max)
    append(again, 6)
    again.close()
    assert records(tmp_path / "copy") == [b"1", b"2", b"3", b"6"]


def test_what_retention_removes_meanwhile_is_left_out(tmp_path: Path) -> None:
    now = [0]
    topic = EmbeddedWriter.open(tmp_path / "log", 1, segment_bytes_max=1, clock=lambda: now[0])
    append(topic, 1, 2, 3, 4)
    taken = snapshot_of(tmp_path / "log")
    now[0] = 10
    topic.retain(Position((2,)), 0)
    copy_segments(taken, tmp_path / "copy")
    topic.close()
    assert records(tmp_path / "copy") == [b"3", b"4"]


def test_a_snapshot_of_which_nothing_is_left_says_so(tmp_path: Path) -> None:
    now = [0]
    topic = EmbeddedWriter.open(tmp_path / "log", 1, segment_bytes_max=1, clock=lambda: now[0])
    append(topic, 1, 2)
    taken = snapshot_of(tmp_path / "log")
    append(topic, 3, 4)
    now[0] = 10
    topic.retain(Position((3,)), 0)
    with pytest.raises(Unavailable) as caught:
        copy_segments(taken, tmp_path / "copy")
    topic.close()
    assert caught.value.message == (
        f"retention removed the last segment of the log at {tmp_path / 'log'} while it was being "
        "copied"
    )


def test_a_log_that_is_not_there_has_no_snapshot(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        snapshot_of(tmp_path)
