"""The law of headrace/log/embedded/index.py:
an index is a hint, and a wrong one changes no answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from headrace.core.position import Interval, Position
from headrace.log.embedded.index import ENTRY, load_index, seek
from headrace.log.embedded.reader import EmbeddedReader
from headrace.log.embedded.segment import Segment, list_segments

from .conftest import OpenTopic, put

EVENTS, STEP_US = 40, 1_000


@pytest.fixture
def path(open_topic: OpenTopic) -> Path:
    """Forty blocks of 50 kB, one a millisecond, in two segments."""
    now = iter(range(STEP_US, 10**9, STEP_US))
    topic = open_topic(segment_bytes_max=1 << 20, clock=lambda: next(now))
    for i in range(EVENTS):
        put(topic, b"%02d" % i + bytes(50_000))
    topic.close()
    return topic.path


def lying(change: Callable[[np.ndarray], None]) -> Callable[[Path], None]:
    def write(index: Path) -> None:
        entries = np.fromfile(index, ENTRY)
        change(entries)
        entries.tofile(index)

    return write


def shift(column: str, by: int) -> Callable[[Path], None]:
    def change(entries: np.ndarray) -> None:
        entries[column][1:] += by

    return lying(change)


DAMAGE = {
    "sound": lambda index: None,
    "missing": lambda index: index.unlink(),
    "empty": lambda index: index.write_bytes(b""),
    "torn": lambda index: index.write_bytes(index.read_bytes()[:-7]),
    "noise": lambda index: index.write_bytes(b"noise " * 40),
    "bytes shifted": shift("at", 1),
    "offsets shifted": shift("offset", 1),
    "arrivals too early": shift("arrived_at_us", -500),
    "arrivals too late": shift("arrived_at_us", 10_000),
    "all swapped": lying(lambda entries: entries[:].__setitem__(slice(None), entries[::-1].copy())),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_any_index_gives_the_same_answers(path: Path, damage: Callable[[Path], None]) -> None:
    for segment in list_segments(path / "0"):
        damage(segment.index_path)
    reader = EmbeddedReader(path)
    for offset in range(EVENTS):
        (block,) = reader.blocks(0, Interval(offset, offset + 1))
        assert block.records()[0][:2] == b"%02d" % offset
        assert reader.position_at((offset + 1) * STEP_US) == Position((offset,))


def test_a_sound_index_saves_reading(path: Path) -> None:
    first = list_segments(path / "0")[0]
    at, offset = seek(first, first.size, "offset", 19)
    assert at > 700_000
    assert 12 < offset <= 19
    assert len(load_index(first)) == 4


@pytest.mark.parametrize("which", [0, -1])
def test_a_lost_index_is_rebuilt_on_open(path: Path, open_topic: OpenTopic, which: int) -> None:
    segment: Segment = list_segments(path / "0")[which]
    before = segment.index_path.read_bytes()
    segment.index_path.unlink()
    open_topic(segment_bytes_max=1 << 20)
    assert segment.index_path.read_bytes() == before
