"""Events of a stream, the newest first, a bounded number of records at a time.

A search looks at the newest records before a position: as many of each partition as are wanted, or,
where there are conditions, `query.scan_max` in all. `next` is the position before which the next
one goes on, so that every record is looked at once, however the pages are cut.
tests/run/test_search.py pages through a log and its master.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.api.resources.events import EventPage, EventRecord, EventsRequest
from headrace.compile.plan import StreamPlan
from headrace.core.errors import BadRequest, NotFound
from headrace.core.event import ARRIVED_AT, OFFSET, PARTITION
from headrace.core.position import Position, PositionRange
from headrace.run.observatory.conditions import conditions_of
from headrace.run.observatory.records import Records, log_end, records_of
from headrace.run.observatory.subject import Subject

_NEWEST = f"ORDER BY {ARRIVED_AT} DESC, {OFFSET} DESC, {PARTITION} LIMIT ?"


@dataclass(frozen=True, slots=True)
class _Page:
    """Which records are looked at."""

    range: PositionRange
    partitions: tuple[int, ...]  # those that are asked for

    def after(self, found: list[EventRecord], limit: int) -> Position | None:
        """Where to go on: before what was found, or before all that was looked at."""
        lower = list(self.range.lower.offsets)
        if len(found) >= limit:
            lower = list(self.range.upper.offsets)
            for record in found:
                lower[record.partition] = min(lower[record.partition], record.offset)
        if all(lower[partition] == 0 for partition in self.partitions):
            return None
        return Position(tuple(lower))


def search(subject: Subject, asked: EventsRequest) -> EventPage:
    """The newest records for which all conditions hold."""
    stream = subject.stream_plan(asked.stream)
    conditions = conditions_of(stream, asked)
    page = _page(subject, stream, asked, bool(conditions))
    if not len(page.range):
        return EventPage([], None, 0)
    where = " AND ".join(f"({condition.sql})" for condition in conditions) or "true"
    values = [value for condition in conditions for value in condition.values]
    with records_of(subject, stream, page.range) as records:
        _check_computed(records, asked)
        found = records.shown(f"WHERE {where} {_NEWEST}", [*values, asked.limit])
    position = page.after(found, asked.limit) if asked.offset is None else None
    return EventPage(found, str(position) if position else None, len(page.range))


def _check_computed(records: Records, wanted: EventsRequest) -> None:
    known = {column.name.lower() for column in records.columns}
    for column in records.stream.schema.computed:
        if column.name.lower() not in known and any(
            name.lower() == column.name.lower() for name, _ in wanted.values
        ):
            raise BadRequest(
                f"events cannot be searched by '{column.name}', which only Spark can compute",
                hint="ask for them with a query over the stream.",
            )


def _page(subject: Subject, stream: StreamPlan, wanted: EventsRequest, narrowed: bool) -> _Page:
    end = log_end(subject, stream)
    upper = list(end.earliest(_before(stream, wanted.before, end)).offsets)
    asked = _partitions(stream, wanted.partition)
    share = subject.project.settings.query.scan_max // len(asked) if narrowed else wanted.limit
    lower = [
        max(0, offset - max(1, share)) if n in asked else offset for n, offset in enumerate(upper)
    ]
    if wanted.offset is not None and wanted.partition is not None:
        n = wanted.partition
        within = wanted.offset < upper[n]
        lower[n], upper[n] = (wanted.offset, wanted.offset + 1) if within else (upper[n], upper[n])
    return _Page(PositionRange(Position(tuple(lower)), Position(tuple(upper))), asked)


def _before(stream: StreamPlan, text: str | None, end: Position) -> Position:
    if text is None:
        return end
    try:
        offsets = Position.parse(text).offsets
    except ValueError:
        offsets = ()
    if len(offsets) != stream.partitions or min(offsets) < 0:
        raise BadRequest(
            f"'{text[:80]}' is not a position of '{stream.name}'",
            hint=f"write one offset for each of its {stream.partitions} partitions, such as {end}.",
        )
    return Position(offsets)


def _partitions(stream: StreamPlan, partition: int | None) -> tuple[int, ...]:
    if partition is None:
        return tuple(range(stream.partitions))
    if partition >= stream.partitions:
        raise NotFound(
            f"stream '{stream.name}' has no partition {partition}",
            hint=f"it has {stream.partitions}, from 0 on.",
        )
    return (partition,)
