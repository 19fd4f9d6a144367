"""Some offsets of one partition of the log, decoded: records of every status, in the log's order.

One reader takes them all, because lateness is decided in that order, from the highest event time
before them. They are decoded in parts, so that memory does not depend on how many there are; the
archive writes each part as one. tests/master/test_archive.py cuts them in every way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from headrace.core.position import Interval, PositionRange
from headrace.log.block import Block
from headrace.log.decode import DecodedEvents, Decoder
from headrace.log.protocol import LogReader

PART_EVENTS = 65_536


@dataclass(frozen=True, slots=True)
class LogInterval:
    """Offsets of a partition; small, because it travels to an executor."""

    reader: LogReader
    decoder: Decoder
    partition: int
    offsets: Interval
    high_us: int | None  # the highest event time before them

    def decoded(self, *, raw: bool) -> Iterator[DecodedEvents]:
        """The records in parts; with `raw`, their bytes too."""
        high = self.high_us
        for blocks in _parts(self.reader.blocks(self.partition, self.offsets)):
            decoded = self.decoder.decode(blocks, self.partition, high, raw=raw)
            high = decoded.high_us
            yield decoded


def log_intervals(
    reader: LogReader, decoder: Decoder, range: PositionRange, highs: Sequence[int | None]
) -> list[LogInterval]:
    """The partitions of a range; `highs` are the highest event times before it."""
    return [LogInterval(reader, decoder, n, each, highs[n]) for n, each in range.intervals()]


def _parts(blocks: Iterable[Block]) -> Iterator[list[Block]]:
    part: list[Block] = []
    events = 0
    for block in blocks:
        part.append(block)
        events += block.count
        if events >= PART_EVENTS:
            yield part
            part, events = [], 0
    if part:
        yield part
