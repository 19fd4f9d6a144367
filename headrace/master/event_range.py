"""The events of a stream between two positions: from the master up to a boundary, then the log.

For every range, whatever archive, compaction and retention do meanwhile, the events are those at
the offsets [lower, upper) of each partition, partition by partition, in the log's order. Duplicates
and dead letters, damaged records among them, have offsets too, and are no events.

The boundary is where one version of the master ends. It cannot move under a reader: a version never
changes, and files that a newer one has replaced are kept for hours. Whether an event is late
depends on those before it. The master knows it of its events; the log is decoded from the boundary
on, with the highest event times there. Whoever knows them at another position (speed where it
stands, a reader where its last range ended) reads from there on, and the log alone.

Retention removes from the log only what is archived. So what a version does not have and the log
has no longer is in a newer version, at which the range is parted again. What neither has is an
error (NotFound, CorruptLog, CorruptMaster) and never a gap. headrace/spark/feed.py reads a range in
Spark. tests/master/test_event_range.py cuts ranges everywhere, and lets retention come between.
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
from headrace.master.parquet import read_rows, sound
from headrace.master.table import MasterTable, event_files
from headrace.master.version import MasterFile, MasterVersion

_REMEMBERED = 16  # ends of ranges; a stream is read at few places at a time
_SOUND_MAX = 10_000
Highs = tuple[int | None, ...]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EventRange:
    """A range, parted at a boundary."""

    range: PositionRange
    boundary: Position
    highs: Highs  # the highest event times there
    version: MasterVersion | None = None  # which has what lies before the boundary

    @staticmethod
    def of(table: MasterTable, range: PositionRange) -> EventRange:
        """A range, parted where the master ends now."""
        version, partitions = table.found(), table.partitions
        if version is None:
            return EventRange(range, Position.start(partitions), (None,) * partitions)
        return EventRange(range, version.position, version.highs, version)

    @staticmethod
    def whole(table: MasterTable, log: LogReader | None) -> EventRange:
        """All events up to the log's end. It is asked for after the version, which thus has no
        event beyond it.
        """
        parted = EventRange.of(table, PositionRange.before(Position.start(table.partitions)))
        end = log.end().latest(parted.boundary) if log else parted.boundary
        return replace(parted, range=PositionRange.before(end))

    @property
    def archived(self) -> PositionRange:
        lower = self.range.lower
        return PositionRange(lower, self.range.upper.earliest(self.boundary).latest(lower))

    @property
    def logged(self) -> PositionRange:
        """What the log is read for: from the boundary, also where the range begins after it."""
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
        """The events that the log has, in these columns, in parts, each with its partition."""
        for part in self.log_intervals(log, decoder):
            first = self.range.lower.offsets[part.partition]
            for decoded in part.decoded(raw=RAW in schema.names):
                statuses, offsets = decoded.table[STATUS], decoded.table[OFFSET]
                wanted = pc.equal(statuses, int(EventStatus.EVENT))
                wanted = pc.and_(wanted, pc.greater_equal(offsets, first))
                events = decoded.table.filter(wanted).select(schema.names)
                yield part.partition, replace(decoded, table=events)


def parted_again(read: Callable[[], T], forget: Callable[[], None] = lambda: None) -> T:
    """Read; once more if retention has removed from the log what was to be read there, because the
    newest version of the master has it.
    """
    try:
        return read()
    except NotFound:
        forget()
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
        return parted_again(lambda: self._read(range), self._highs.clear)

    def _read(self, range: PositionRange) -> pa.Table:
        parted, log = self._parted(range), open_reader(self.log)
        tables, after = [self._archived(parted)], list(parted.highs)
        for partition, decoded in parted.logged_events(log, self.decoder, self.schema):
            tables.append(decoded.table)
            after[partition] = decoded.high_us
        if parted.boundary <= range.upper:
            self._remember(range.upper, tuple(after))
        return pa.concat_tables(tables).sort_by([(PARTITION, "ascending"), (OFFSET, "ascending")])

    def _parted(self, range: PositionRange) -> EventRange:
        if highs := self._highs.get(range.lower):
            return EventRange(range, range.lower, highs)
        return EventRange.of(self.table, range)

    def _archived(self, parted: EventRange) -> pa.Table:
        if not (files := parted.files()):
            return self.schema.empty_table()
        self._check(files)
        wanted = pc.scalar(False)
        for partition, interval in parted.archived.intervals():
            wanted |= _within(partition, interval)
        return read_rows(files, self.table.schema, self.schema.names, wanted).cast(self.schema)

    def _check(self, files: list[MasterFile]) -> None:
        """Hash each file once: a range is a small part of it. After that its pages are verified."""
        sound(file for file in files if file.path not in self._sound)
        if len(self._sound) > _SOUND_MAX:
            self._sound.clear()
        self._sound.update(file.path for file in files)

    def _remember(self, position: Position, highs: Highs) -> None:
        self._highs[position] = highs
        if len(self._highs) > _REMEMBERED:
            self._highs.popitem(last=False)


def _within(partition: int, interval: Interval) -> pc.Expression:
    offset = pc.field(OFFSET)
    inside = (offset >= interval.lower) & (offset < interval.upper)
    return (pc.field(PARTITION) == partition) & inside
