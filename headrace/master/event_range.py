"""The events of a stream between two positions: from the master up to a boundary, then the log.

For every range, whatever archive, compaction and retention do meanwhile, the events are those at
the offsets [lower, upper) of each partition, partition by partition, in the log's order. Duplicates
and dead letters, including damaged records, have offsets too, but are not events.

The boundary is the end of one version of the master. It is stable for a reader: a version never
changes, and files that a newer version has replaced are kept for an hour. Whether an event is late
depends on the events before it: the master has stored it; the log is decoded from the boundary on,
with the highest event times there. A reader that knows these times at another position (speed at
its own, a range reader at the end of its last range) reads the log from there, and no master.

Retention removes only archived events from the log. So events that are neither in this version nor
in the log any more are in a newer version, and the range is read again with that one. Events that
are in neither are an error (NotFound, CorruptLog, CorruptMaster) and never a gap.
headrace/spark/feed.py reads a range in Spark. tests/master/test_event_range.py splits ranges at
every position, and runs retention in between.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from headrace.compile.plan import StreamPlan
from headrace.core.address import LogAddress
from headrace.core.errors import NotFound
from headrace.core.event import HIDDEN, OFFSET, PARTITION, RAW, STATUS, EventStatus
from headrace.core.position import Interval, Position, PositionRange
from headrace.log.decode import DecodedEvents, Decoder
from headrace.log.interval import LogInterval, log_intervals
from headrace.log.opening import open_reader
from headrace.log.protocol import LogReader
from headrace.master.decoding import declared_schema, decoder_of
from headrace.master.parquet import read_rows, verify_files
from headrace.master.table import MasterTable, event_files
from headrace.master.version import MasterFile, MasterVersion

_CACHED_POSITIONS = 16  # ends of ranges; a stream has few readers at a time
_SOUND_MAX = 10_000
Highs = tuple[int | None, ...]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EventRange:
    """A range, split at a boundary into its archived and its logged part."""

    range: PositionRange
    boundary: Position
    highs: Highs  # the highest event times there
    version: MasterVersion | None = None  # has the events before the boundary

    @staticmethod
    def of(table: MasterTable, range: PositionRange) -> EventRange:
        """A range, split at the present end of the master."""
        version, partitions = table.newest_or_none(), table.partitions
        if version is None:
            return EventRange(range, Position.start(partitions), (None,) * partitions)
        return EventRange(range, version.position, version.highs, version)

    @staticmethod
    def whole(table: MasterTable, log: LogReader | None) -> EventRange:
        """All events up to the log's end, which is read after the version, so that no event of the
        version is beyond it.
        """
        split = EventRange.of(table, PositionRange.before(Position.start(table.partitions)))
        end = log.end().latest(split.boundary) if log else split.boundary
        return replace(split, range=PositionRange.before(end))

    @property
    def archived(self) -> PositionRange:
        lower = self.range.lower
        return PositionRange(lower, self.range.upper.earliest(self.boundary).latest(lower))

    @property
    def logged(self) -> PositionRange:
        """The range to read from the log: from the boundary, even if the range begins later."""
        return PositionRange(self.boundary, self.range.upper.latest(self.boundary))

    def files(self, status: EventStatus = EventStatus.EVENT) -> list[MasterFile]:
        """The files that may have events of the range, or records of another status."""
        if self.version is None or not len(self.archived):
            return []
        return event_files(self.version.files, self.archived, status)

    def log_intervals(self, log: LogReader, decoder: Decoder) -> list[LogInterval]:
        return log_intervals(log, decoder, self.logged, self.highs)

    def logged_events(
        self, log: LogReader, decoder: Decoder, schema: pa.Schema
    ) -> Iterator[tuple[int, DecodedEvents]]:
        """The events in the log, with these columns, in batches, each with its partition."""
        for part in self.log_intervals(log, decoder):
            first = self.range.lower.offsets[part.partition]
            for decoded in part.decoded(raw=RAW in schema.names):
                statuses, offsets = decoded.table[STATUS], decoded.table[OFFSET]
                wanted = pc.equal(statuses, int(EventStatus.EVENT))
                wanted = pc.and_(wanted, pc.greater_equal(offsets, first))
                events = decoded.table.filter(wanted).select(schema.names)
                yield part.partition, replace(decoded, table=events)


def read_with_retry(read: Callable[[], T], reset: Callable[[], None] = lambda: None) -> T:
    """Read, and once more if retention has removed the events from the log meanwhile: the newest
    version of the master has them.
    """
    try:
        return read()
    except NotFound:
        reset()
        return read()


def events_schema(decoder: Decoder, *, raw: bool) -> pa.Schema:
    """The stored columns that a definition may read."""
    schema = decoder.arrow_schema(raw=raw)
    names = (*decoder.schema.names, *HIDDEN, *([RAW] if raw else []))
    return pa.schema([schema.field(name) for name in names])


class RangeReader:
    """The events of one stream, by ranges of positions; with `raw`, their bytes too."""

    def __init__(
        self, stream: StreamPlan, log: LogAddress, master: Path, *, raw: bool = False
    ) -> None:
        self.log, self.decoder = log, decoder_of(stream)
        self.table = MasterTable(master, declared_schema(stream), stream.partitions)
        self.schema = events_schema(self.decoder, raw=raw)
        self._highs: OrderedDict[Position, Highs] = OrderedDict()
        self._sound: set[str] = set()

    def end(self) -> Position:
        """The position after the last event that is durable."""
        return open_reader(self.log).end()

    def read(self, range: PositionRange) -> pa.Table:
        return read_with_retry(lambda: self._read(range), self._highs.clear)

    def _read(self, range: PositionRange) -> pa.Table:
        split, log = self._split(range), open_reader(self.log)
        tables, after = [self._archived(split)], list(split.highs)
        for partition, decoded in split.logged_events(log, self.decoder, self.schema):
            tables.append(decoded.table)
            after[partition] = decoded.high_us
        if split.boundary <= range.upper:
            self._cache(range.upper, tuple(after))
        return pa.concat_tables(tables).sort_by([(PARTITION, "ascending"), (OFFSET, "ascending")])

    def _split(self, range: PositionRange) -> EventRange:
        if highs := self._highs.get(range.lower):
            return EventRange(range, range.lower, highs)
        return EventRange.of(self.table, range)

    def _archived(self, split: EventRange) -> pa.Table:
        if not (files := split.files()):
            return self.schema.empty_table()
        self._check(files)
        wanted = pc.scalar(False)
        for partition, interval in split.archived.intervals():
            wanted |= _within(partition, interval)
        return read_rows(files, self.table.schema, self.schema.names, wanted).cast(self.schema)

    def _check(self, files: list[MasterFile]) -> None:
        """Hash each file once only, because a range is a small part of it; Parquet's page checksums
        are verified at every read.
        """
        verify_files(file for file in files if file.path not in self._sound)
        if len(self._sound) > _SOUND_MAX:
            self._sound.clear()
        self._sound.update(file.path for file in files)

    def _cache(self, position: Position, highs: Highs) -> None:
        self._highs[position] = highs
        if len(self._highs) > _CACHED_POSITIONS:
            self._highs.popitem(last=False)


def _within(partition: int, interval: Interval) -> pc.Expression:
    offset = pc.field(OFFSET)
    inside = (offset >= interval.lower) & (offset < interval.upper)
    return (pc.field(PARTITION) == partition) & inside
