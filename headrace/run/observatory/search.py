"""Events of a stream, the newest first, a bounded number of records at a time.

A search scans the newest records before a position: `limit` records of each partition, or, with
conditions, `query.scan_max` in total. `next` is the position before which the next page continues,
so that all pages together scan every record once.
tests/run/test_search.py pages through a log and its master.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.api.resources.events import EventPage, EventRecord, EventsRequest
from headrace.audit.records import Records
from headrace.compile.plan import StreamPlan
from headrace.core.errors import BadRequest, NotFound
from headrace.core.position import Position, PositionRange
from headrace.run.observatory.conditions import conditions_of
from headrace.run.observatory.observed_project import ObservedProject
from headrace.run.observatory.records import log_end, records_of, shown_records


@dataclass(frozen=True, slots=True)
class _ScanRange:
    """The records that are scanned."""

    range: PositionRange
    partitions: tuple[int, ...]  # the requested ones
    total: int  # all records of those

    def next_position(self, found: list[EventRecord], limit: int) -> Position | None:
        """Where the next page continues: before the found records, or before the scanned ones."""
        lower = list(self.range.lower.offsets)
        if len(found) >= limit:
            lower = list(self.range.upper.offsets)
            for record in found:
                lower[record.partition] = min(lower[record.partition], record.offset)
        if all(lower[partition] == 0 for partition in self.partitions):
            return None
        return Position(tuple(lower))


def search(service: ObservedProject, request: EventsRequest) -> EventPage:
    """The newest records that satisfy all conditions."""
    stream = service.stream_plan(request.stream)
    conditions = conditions_of(stream, request)
    scan = _scan_range(service, stream, request, bool(conditions))
    if not len(scan.range):
        return EventPage([], None, 0, scan.total)
    where = " AND ".join(f"({condition.sql})" for condition in conditions) or "true"
    values = [value for condition in conditions for value in condition.values]
    with records_of(service, stream, scan.range) as records:
        _check_computed(records, request)
        found = shown_records(service, records, records.newest(request.limit, where, values))
    position = scan.next_position(found, request.limit) if request.offset is None else None
    next = str(position) if position else None
    return EventPage(found, next, len(scan.range), scan.total)


def _check_computed(records: Records, request: EventsRequest) -> None:
    known = {column.name.lower() for column in records.columns}
    for column in records.stream.schema.computed:
        if column.name.lower() not in known and any(
            name.lower() == column.name.lower() for name, _ in request.values
        ):
            raise BadRequest(
                f"events cannot be searched by '{column.name}': only Spark can compute this column",
                hint="query the stream with SQL instead.",
            )


def _scan_range(
    service: ObservedProject, stream: StreamPlan, request: EventsRequest, narrowed: bool
) -> _ScanRange:
    end = log_end(service, stream)
    upper = list(end.earliest(_before(stream, request.before, end)).offsets)
    partitions = _partitions(stream, request.partition)
    share = (
        service.project.settings.query.scan_max // len(partitions) if narrowed else request.limit
    )
    lower = [
        max(0, offset - max(1, share)) if n in partitions else offset
        for n, offset in enumerate(upper)
    ]
    if request.offset is not None and request.partition is not None:
        n = request.partition
        within = request.offset < upper[n]
        lower[n], upper[n] = (
            (request.offset, request.offset + 1) if within else (upper[n], upper[n])
        )
    range = PositionRange(Position(tuple(lower)), Position(tuple(upper)))
    return _ScanRange(range, partitions, sum(end.offsets[n] for n in partitions))


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
            hint=f"the highest partition number is {stream.partitions - 1}.",
        )
    return (partition,)
