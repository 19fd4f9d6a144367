"""The reference as an engine: takes the bytes of a stream and answers by the reference interpreter.

A record goes to the partition that the CRC-32 of its key says; its offset is its number there,
whatever becomes of it. It is
  a duplicate    if its id was seen with the same bytes,
  a dead letter  if its id was seen with other bytes, or it cannot be decoded (see `decode.py`),
  late           if it is an event more than the delay behind the newest before it there,
tried in that order. A late event counts in every view. A record without id is never a duplicate.
All records arrive when they are sent, the first at ARRIVAL_US; one dated more than `ahead` after
its arrival is never the newest. A stream's watermark is the delay behind the newest of the
partition that is furthest behind, without those that have been idle for `idle` while another was
active; it moves after each send and each wait, and never back.
tests/testing/test_reference_engine.py checks it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from zlib import crc32

from headrace.core.errors import BadDefinition
from headrace.core.time import from_iso
from headrace.testing.declarations import (
    Declarations,
    StreamDeclaration,
    TableDeclaration,
    WatchDeclaration,
    columns_of,
)
from headrace.testing.decode import DecodeError, decoded, id_of, key_of, raw_of, typed
from headrace.testing.panes import ReferenceSubscriber, streams_behind, subscriber_of
from headrace.testing.reference import Reference, ReferenceProcessor, StreamWatermark, Timestamp
from headrace.testing.reference.interpreter import computed
from headrace.testing.reference_watch import ReferenceWatch

if TYPE_CHECKING:
    from headrace.testing.transcript import Transcript

# A day after a story's time zero.
ARRIVAL_US = from_iso("2026-01-02T00:00:00Z")


@dataclass
class _Partition:
    """The progress of one partition."""

    newest_us: int | None = None
    next_offset: int = 0
    active_us: int = 0


@dataclass
class _Stream:
    """The records of one stream so far, by their status."""

    stream: StreamDeclaration
    partitions: list[_Partition]
    events: list[dict[str, Any]] = field(default_factory=list)
    bytes_by_id: dict[Any, bytes] = field(default_factory=dict)
    watermark_us: int | None = None

    def take(self, record: bytes, now_us: int) -> str:
        """Append one record and return its status."""
        number = crc32(key_of(record, self.stream.key_field, self.stream.columns)) % len(
            self.partitions
        )
        partition = self.partitions[number]
        offset, partition.active_us = partition.next_offset, now_us
        partition.next_offset += 1
        known = id_of(record, self.stream.id_field, self.stream.columns)
        if known in self.bytes_by_id:
            return "duplicates" if self.bytes_by_id[known] == record else "dead_letters"
        if known is not None:
            self.bytes_by_id[known] = record
        try:
            event = decoded(record, self.stream.columns)
        except DecodeError:
            return "dead_letters"
        late_us = self._lateness(event, partition)
        event |= {"_partition": number, "_offset": offset, "_raw": raw_of(record)}
        event |= computed(self.stream.computed, event)
        self.events.append(event | {"_late": late_us > 0, "_lateness": late_us})
        return "late" if late_us else "events"

    def _lateness(self, event: Mapping[str, Any], partition: _Partition) -> int:
        time, delay = event.get(self.stream.time_column or ""), self.stream.delay_us
        if delay is None or not isinstance(time, Timestamp):
            return 0
        newest = partition.newest_us
        late_us = 0 if newest is None else max(0, newest - delay - time.us)
        if time.us <= partition.active_us + self.stream.ahead_us:
            partition.newest_us = max(time.us, newest if newest is not None else time.us)
        return late_us

    def advance_watermark(self, now_us: int) -> None:
        """Advance the watermark as far as the partitions allow that are not idle."""
        timed = [part for part in self.partitions if part.newest_us is not None]
        last_us = max((part.active_us for part in timed), default=now_us)
        long_ago = now_us - self.stream.idle_us
        active = [part for part in timed if part.active_us == last_us or part.active_us >= long_ago]
        newest = [part.newest_us for part in active if part.newest_us is not None]
        if newest and self.stream.delay_us is not None:
            mark_us = min(newest) - self.stream.delay_us
            before = self.watermark_us
            self.watermark_us = mark_us if before is None else max(before, mark_us)


class ReferenceEngine:
    """The reference interpreter as an `Engine`.

    >>> from headrace.testing import loads
    >>> engine = ReferenceEngine()
    >>> engine.start(loads("{name: n, view: SELECT count(*) AS n FROM clicks, steps: []}"))
    >>> engine.send("clicks", [b'{"user": "a"}', b"not json"])
    >>> engine.answer("answer"), engine.counts()["dead_letters"]
    ([{'n': 1}], 1)
    """

    def start(self, transcript: Transcript) -> None:
        self._reference = reference_of(
            transcript.declared,
            transcript.tables,
            transcript.processors,
            transcript.files,
            transcript.steps_max,
        )
        self._streams = {s.name: _stream_of(s) for s in transcript.declared.streams}
        self._counts: Counter[str] = Counter()
        self._declared, self._now_us = transcript.declared, ARRIVAL_US
        self._watchers = [self._watcher(watch) for watch in transcript.declared.watches]
        if transcript.subscribe:
            view = ReferenceSubscriber(transcript.subscribe, (), None, None).view
            columns = self._reference.columns(view)
            self._subscriber = subscriber_of(self._declared, columns, transcript.subscribe)

    def _watcher(self, watch: WatchDeclaration) -> ReferenceWatch:
        [name] = streams_behind(self._declared, watch.name)
        stream = self._declared.stream(name)
        return ReferenceWatch(watch, name, stream.time_column, self._reference)

    def wait(self, us: int) -> None:
        self._now_us += us
        for stream in self._streams.values():
            stream.advance_watermark(self._now_us)

    def panes(self) -> list[dict[str, Any]]:
        view = self._subscriber.view
        streams = [self._streams[name] for name in streams_behind(self._declared, view)]
        marks = [s.watermark_us for s in streams if s.watermark_us is not None]
        mark = min(marks) if marks and len(marks) == len(streams) else None
        return self._subscriber.observe(self.answer(view), mark, self._now_us)

    def send(self, stream: str, records: list[bytes]) -> None:
        taking = self._streams[stream]
        before = len(taking.events)
        self._counts.update([taking.take(record, self._now_us) for record in records])
        taking.advance_watermark(self._now_us)
        for watch in self._watchers:
            if watch.stream == stream:
                watch.take(taking.events[before:], self._now_us)

    def answer(self, view: str) -> list[dict[str, Any]]:
        watermarks_us = {name: stream.watermark_us for name, stream in self._streams.items()}
        return self._reference.answer(view, self._events(), watermarks_us)

    def watches(self) -> dict[str, tuple[list[dict[str, Any]], str | None]]:
        for watch in self._watchers:
            watch.advance(self._now_us)
        return {w.watch.name: (w.matches, w.why) for w in self._watchers}

    def late(self, view: str) -> list[dict[str, Any]]:
        return self._reference.lateness(view, self._events())

    def _events(self) -> dict[str, list[dict[str, Any]]]:
        return {name: stream.events for name, stream in self._streams.items()}

    def counts(self) -> dict[str, int]:
        return {name: self._counts[name] for name in ("late", "dead_letters", "duplicates")}

    def stop(self) -> None:
        """Nothing to stop."""


def _stream_of(stream: StreamDeclaration) -> _Stream:
    if stream.partitions > 1 and stream.key_field is None:
        raise BadDefinition(
            f"stream '{stream.name}' of the transcript has several partitions, but no key"
        )
    return _Stream(stream, [_Partition() for _ in range(stream.partitions)])


def reference_of(
    declared: Declarations,
    tables: Mapping[str, list[dict[str, Any]]],
    processors: str = "",
    files: Mapping[str, str] | None = None,
    steps_max: int | None = None,
) -> Reference:
    """The interpreter for what a transcript declares."""
    return Reference(
        streams={s.name: [c.name for c in s.columns] for s in declared.streams},
        tables={t.name: _rows(t, tables.get(t.name, [])) for t in declared.tables},
        queries={query.name: query.text for query in declared.queries}
        | {name: text for watch in declared.watches for name, text in watch.queries().items()},
        table_columns={t.name: [c.name for c in t.columns] for t in declared.tables},
        watermarks={
            s.name: StreamWatermark(s.time_column, s.delay_us)
            for s in declared.streams
            if s.time_column is not None and s.delay_us is not None
        },
        processors=processors_of(processors),
        files=files,
        steps_max=steps_max,
    )


def _rows(table: TableDeclaration, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    try:
        return [{c.name: typed(row.get(c.name), c.type) for c in table.columns} for row in rows]
    except DecodeError as problem:
        raise BadDefinition(f"a row of table '{table.name}' is not valid: {problem}") from problem


def processors_of(text: str) -> dict[str, ReferenceProcessor]:
    """The processors of a text by the names of their classes.

    >>> found = processors_of('@processor("user STRING, n BIGINT")\\nclass Visits: ...')
    >>> found["Visits"].columns
    ('user', 'n')
    """
    found: dict[str, ReferenceProcessor] = {}

    def processor(columns: str) -> Callable[[type[Any]], type[Any]]:
        def remember(made: type[Any]) -> type[Any]:
            found[made.__name__] = ReferenceProcessor(
                tuple(c.name for c in columns_of(columns)), made
            )
            return made

        return remember

    exec(compile(text, "processors", "exec"), {"processor": processor, "__name__": "processors"})
    return found
