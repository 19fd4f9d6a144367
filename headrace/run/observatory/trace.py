"""Traces one event: its epoch, its generation, the rows that it is part of, its alerts.

tests/run/test_observatory.py follows events through a project.
"""

from __future__ import annotations

from collections.abc import Iterator

from headrace.api.resources.events import (
    AffectedRow,
    CommitRecord,
    EventRecord,
    EventRequest,
    EventTrace,
)
from headrace.audit.counted import OneEvent, counted_rows
from headrace.compile.plan import Plan, StreamPlan
from headrace.core.errors import HeadraceError, NotFound
from headrace.core.position import Position, PositionRange
from headrace.core.time import iso
from headrace.run.observatory.observed_project import ObservedProject
from headrace.run.observatory.records import log_end, records_of, shown_records
from headrace.serving import alerts
from headrace.serving.alerts import Alert
from headrace.serving.database import Transaction
from headrace.serving.history import read_epochs, read_generations
from headrace.serving.watches import names_by_shape

ALERTS_MAX = 100


def trace(service: ObservedProject, request: EventRequest) -> EventTrace:
    """The trace of the event at a partition and offset."""
    partition, offset = request.partition, request.offset
    stream, plan = service.stream_plan(request.stream), service.deployed()
    record, event = _event(service, plan, stream, partition, offset)
    with service.store.read() as db:
        epoch = _epoch(db, stream.name, partition, offset)
        generation = _generation(db, stream.name, partition, offset)
        alerts = list(_alerts(db, plan, stream.name, partition, offset))
    archived = _archived(service, stream).offsets[partition] > offset
    views = list(_views(service, event)) if record.status == "event" else []
    return EventTrace(record, epoch, archived, generation, views, alerts)


def _event(
    service: ObservedProject, plan: Plan, stream: StreamPlan, partition: int, offset: int
) -> tuple[EventRecord, OneEvent]:
    end = log_end(service, stream).offsets
    if partition >= len(end) or offset >= end[partition]:
        raise NotFound(
            f"stream '{stream.name}' has no event at offset {offset} of partition {partition}",
            hint=f"its log ends at {list(end)}.",
        )
    lower, upper = [0] * len(end), [0] * len(end)
    lower[partition], upper[partition] = offset, offset + 1
    range = PositionRange(Position(tuple(lower)), Position(tuple(upper)))
    with records_of(service, stream, range) as records:
        found = shown_records(service, records, records.newest(1), whole=True)
        if not found:
            raise NotFound(
                f"the event at offset {offset} of partition {partition} is missing from stream "
                f"'{stream.name}'"
            )
        table = records.table()
        functions, seconds = (
            service.functions(),
            service.project.settings.query.seconds_max,
        )
        one = OneEvent(plan, stream, table, service.project.folder, functions, seconds)
    return found[0], one


def _epoch(db: Transaction, flow: str, partition: int, offset: int) -> CommitRecord | None:
    for epoch in read_epochs(db, flow):
        first, after = epoch.range.lower.offsets[partition], epoch.range.upper.offsets[partition]
        if first <= offset < after:
            return CommitRecord(epoch.number, iso(epoch.committed_at))
    return None


def _generation(db: Transaction, flow: str, partition: int, offset: int) -> CommitRecord | None:
    """The first generation that includes the event."""
    found = [g for g in read_generations(db, flow) if g.boundary.offsets[partition] > offset]
    return CommitRecord(found[-1].number, iso(found[-1].promoted_at)) if found else None


def _alerts(
    db: Transaction, plan: Plan, stream: str, partition: int, offset: int
) -> Iterator[Alert]:
    """Alerts for this event, of rules and watches that read only this stream."""
    rules = [rule.name for rule in plan.rules if rule.keys is None and rule.streams == (stream,)]
    shapes = [shape.name for shape in plan.shapes if shape.streams == (stream,)]
    for name in (*rules, *names_by_shape(db, shapes)):
        for id in alerts.alert_ids_at(db, name, partition, offset, ALERTS_MAX):
            yield alerts.read_alert(db, id)


def _archived(service: ObservedProject, stream: StreamPlan) -> Position:
    version = service.master(stream).newest_or_none()
    return version.position if version else Position.start(stream.partitions)


def _views(service: ObservedProject, event: OneEvent) -> Iterator[AffectedRow]:
    for view in event.plan.shown_views:
        if event.stream.name not in view.streams:
            continue
        try:
            rows, total = counted_rows(event, service.store, view.name)
        except HeadraceError as error:
            yield AffectedRow(view.name, None, None, error.message)
            continue
        yield from (AffectedRow(view.name, row.shown_key, row.shown) for row in rows)
        if total > len(rows):
            yield AffectedRow(view.name, None, None, f"{len(rows)} of {total:,} rows are listed")
