"""Any range of a stream's events without Spark: from the master as far as it goes, then the log.

Both give the same rows for the same range, whatever the archive or retention do meanwhile. Whether
an event is late depends on those before it. The master knows it of its events, and what the log
has beyond is decoded from there on. Who reads on where a range before ended need not go back,
because the highest event times there are remembered; then the log alone is read.
tests/master/test_range_reader.py reads ranges across the place where they meet.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from headrace.compile.plan import StreamPlan
from headrace.core.address import LogAddress
from headrace.core.errors import NotFound
from headrace.core.event import HIDDEN, OFFSET, PARTITION, RAW, STATUS, Status
from headrace.core.position import Interval, Position, PositionRange
from headrace.log.decode import Decoder
from headrace.log.opening import open_reader
from headrace.log.protocol import LogReader
from headrace.master.decoding import declared_schema, decoder_of
from headrace.master.parquet import read_rows, sound
from headrace.master.table import MasterTable, event_files
from headrace.master.version import MasterFile, MasterVersion

_REMEMBERED = 16  # ends of ranges; a stream is read at few places at a time
_SOUND_MAX = 10_000
Highs = tuple[int | None, ...]


class RangeReader:
    """The events of one stream, by ranges of positions; with `raw`, their bytes too."""

    def __init__(
        self, stream: StreamPlan, log: LogAddress, master: Path, *, raw: bool = False
    ) -> None:
        self.stream, self.log, self.decoder = stream, log, decoder_of(stream)
        self.table = MasterTable(master, declared_schema(stream), stream.partitions)
        self.schema = events_schema(self.decoder, raw=raw)
        self._highs: OrderedDict[Position, Highs] = OrderedDict()
        self._sound: set[str] = set()

    def end(self) -> Position:
        """The position after the last event that is durable."""
        return open_reader(self.log).end()

    def read(self, range: PositionRange) -> pa.Table:
        """The events of a range, partition by partition, in the order of the log."""
        try:
            return self._read(range)
        except NotFound:
            # Retention has removed what was to be read from the log, so it is in the master now.
            self._highs.clear()
            return self._read(range)

    def _read(self, range: PositionRange) -> pa.Table:
        version, archived, highs = self._place(range.lower)
        cold = PositionRange(range.lower, range.upper.earliest(archived).latest(range.lower))
        hot = PositionRange(archived, range.upper.latest(archived))
        logged, after = self._logged(hot, highs, range.lower)
        if archived <= range.upper:
            self._remember(range.upper, after)
        parts = [self._archived(version, cold)] if version and len(cold) else []
        whole = pa.concat_tables([*parts, *logged, self.schema.empty_table()])
        return whole.sort_by([(PARTITION, "ascending"), (OFFSET, "ascending")])

    def _place(self, lower: Position) -> tuple[MasterVersion | None, Position, Highs]:
        """From where the log must be read, and the highest event times there: from `lower` if they
        are known, else from where the master ends, which is given with it.
        """
        if lower in self._highs:
            return None, lower, self._highs[lower]
        version, partitions = self.table.found(), self.stream.partitions
        if version is None:
            return None, Position.start(partitions), (None,) * partitions
        return version, version.position, version.highs

    def _archived(self, version: MasterVersion, range: PositionRange) -> pa.Table:
        files = event_files(version.files, range)
        if not files:
            return self.schema.empty_table()
        self._check(files)
        wanted = pc.scalar(False)
        for partition, interval in range.intervals():
            wanted |= _within(partition, interval)
        return read_rows(files, self.table.schema, self.schema.names, wanted).cast(self.schema)

    def _check(self, files: list[MasterFile]) -> None:
        """Hash each file once: a range is a small part of it. After that its pages are verified."""
        sound(file for file in files if file.path not in self._sound)
        if len(self._sound) > _SOUND_MAX:
            self._sound.clear()
        self._sound.update(file.path for file in files)

    def _logged(
        self, range: PositionRange, highs: Highs, lower: Position
    ) -> tuple[list[pa.Table], Highs]:
        """What the log has of each partition from `lower` on, and the highest event times after
        the range; what lies before `lower` is decoded for its times alone.
        """
        reader, after, parts = open_reader(self.log), list(highs), []
        for partition, interval in range.intervals():
            high, first = highs[partition], lower.offsets[partition]
            part, after[partition] = logged_events(
                reader, self.decoder, partition, interval, high, self.schema
            )
            wanted = part.filter(pc.greater_equal(part[OFFSET], first))
            parts.append(wanted)
        return parts, tuple(after)

    def _remember(self, position: Position, highs: Highs) -> None:
        self._highs[position] = highs
        if len(self._highs) > _REMEMBERED:
            self._highs.popitem(last=False)


def events_schema(decoder: Decoder, *, raw: bool) -> pa.Schema:
    """The stored columns that a definition may read."""
    schema = decoder.arrow_schema(raw=raw)
    names = (*decoder.schema.names, *HIDDEN, *([RAW] if raw else []))
    return pa.schema([schema.field(name) for name in names])


def logged_events(
    reader: LogReader,
    decoder: Decoder,
    partition: int,
    interval: Interval,
    high: int | None,
    schema: pa.Schema,
) -> tuple[pa.Table, int | None]:
    """What the log has of a partition in these columns, without duplicates and dead letters, and
    the highest event time after it; `high` is the one before it.
    """
    blocks = reader.blocks(partition, interval)
    decoded = decoder.decode(blocks, partition, high, raw=RAW in schema.names)
    events = pc.equal(decoded.table[STATUS], int(Status.EVENT))
    return decoded.table.filter(events).select(schema.names), decoded.high_us


def _within(partition: int, interval: Interval) -> pc.Expression:
    offset = pc.field(OFFSET)
    inside = (offset >= interval.lower) & (offset < interval.upper)
    return (pc.field(PARTITION) == partition) & inside
