"""Topics that are closed when the test ends, whatever became of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.core.position import Interval
from headrace.log.embedded.reader import EmbeddedReader
from headrace.log.embedded.writer import EmbeddedWriter

OpenTopic = Callable[..., EmbeddedWriter]


@pytest.fixture
def open_topic(tmp_path: Path) -> Iterator[OpenTopic]:
    """Open a topic in the test's own folder; a second call closes the first."""
    opened: list[EmbeddedWriter] = []

    def open_(
        partitions: int = 1, *, path: Path = tmp_path / "clicks", **options: Any
    ) -> EmbeddedWriter:
        for topic in opened:
            topic.close()
        options.setdefault("segment_bytes_max", 1 << 20)
        opened.append(EmbeddedWriter.open(path, partitions, **options))
        return opened[-1]

    yield open_
    for topic in opened:
        topic.close()


def put(topic: EmbeddedWriter, *records: bytes, partition: int = 0) -> Interval:
    """Append events and wait until they are acknowledged."""
    return topic.append(partition, records, bytes(len(records))).result(timeout=20)


def read_all(path: Path, partition: int = 0) -> list[bytes]:
    """All published records of a partition."""
    reader = EmbeddedReader(path)
    start, end = reader.start().offsets[partition], reader.end().offsets[partition]
    blocks = reader.blocks(partition, Interval(start, end))
    return [record for block in blocks for record in block.records()]
