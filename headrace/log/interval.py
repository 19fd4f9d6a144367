"""Some offsets of one partition of the log, decoded: records of every status, in the log's order.

One reader takes them all, because lateness is decided in that order, from the highest event time
before them. They are decoded in parts, so that memory does not depend on how many there are; the
archive writes each part as one. tests/master/test_archive.py cuts them in every way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headrace.core.position import Interval, PositionRange
from headrace.log.decode import DecodedEvents, Decoder, grouped
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
        for blocks in grouped(self.reader.blocks(self.partition, self.offsets), PART_EVENTS):
            decoded = self.decoder.decode(blocks, self.partition, high, raw=raw)
            high = decoded.high_us
            yield decoded


def log_intervals(
    reader: LogReader, decoder: Decoder, range: PositionRange, highs: Sequence[int | None]
) -> list[LogInterval]:
    """The partitions of a range; `highs` are the highest event times before it."""
    return [LogInterval(reader, decoder, n, each, highs[n]) for n, each in range.intervals()]
