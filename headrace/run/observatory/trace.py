"""What became of one event: its epoch, its generation, the rows it counts in, its alerts.

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
from headrace.run.observatory.records import log_end, records_of
from headrace.run.observatory.subject import Subject
from headrace.serving import ledger
from headrace.serving.database import Transaction
from headrace.serving.history import read_epochs, read_generations
from headrace.serving.ledger import Alert
from headrace.serving.watches import names_of

ALERTS_MAX = 100


def trace(subject: Subject, asked: EventRequest) -> EventTrace:
    """Follow the event at a place of the log."""
    partition, offset = asked.partition, asked.offset
    stream, plan = subject.stream_plan(asked.stream), subject.deployed()
    record, event = _event(subject, plan, stream, partition, offset)
    with subject.store.read() as db:
        epoch = _epoch(db, stream.name, partition, offset)
        generation = _generation(db, stream.name, partition, offset)
        alerts = list(_alerts(db, plan, stream.name, partition, offset))
    archived = _archived(subject, stream).offsets[partition] > offset
    views = list(_views(subject, event)) if record.status == "event" else []
    return EventTrace(record, epoch, archived, generation, views, alerts)


def _event(
    subject: Subject, plan: Plan, stream: StreamPlan, partition: int, offset: int
) -> tuple[EventRecord, OneEvent]:
    end = log_end(subject, stream).offsets
    if partition >= len(end) or offset >= end[partition]:
        raise NotFound(
            f"stream '{stream.name}' has no event at offset {offset} of partition {partition}",
            hint=f"its log ends at {list(end)}.",
        )
    lower, upper = [0] * len(end), [0] * len(end)
    lower[partition], upper[partition] = offset, offset + 1
    range = PositionRange(Position(tuple(lower)), Position(tuple(upper)))
    with records_of(subject, stream, range) as records:
        found = records.shown("LIMIT 1", whole=True)
        if not found:
            raise NotFound(f"the event at offset {offset} of partition {partition} is not there")
        table = records.connection.sql(f"FROM {records.relation}").to_arrow_table()
        functions, seconds = (
            subject.functions(),
            subject.project.settings.query.seconds_max,
        )
        one = OneEvent(plan, stream, table, subject.project.folder, functions, seconds)
    return found[0], one


def _epoch(db: Transaction, flow: str, partition: int, offset: int) -> CommitRecord | None:
    for epoch in read_epochs(db, flow):
        first, after = epoch.range.lower.offsets[partition], epoch.range.upper.offsets[partition]
        if first <= offset < after:
            return CommitRecord(epoch.number, iso(epoch.committed_at))
    return None


def _generation(db: Transaction, flow: str, partition: int, offset: int) -> CommitRecord | None:
    """The first that has taken the event."""
    found = [g for g in read_generations(db, flow) if g.boundary.offsets[partition] > offset]
    return CommitRecord(found[-1].number, iso(found[-1].promoted_at)) if found else None


def _alerts(
    db: Transaction, plan: Plan, stream: str, partition: int, offset: int
) -> Iterator[Alert]:
    """Alerts whose row has this place, of rules and watches that read this stream alone."""
    rules = [rule.name for rule in plan.rules if rule.keys is None and rule.streams == (stream,)]
    shapes = [shape.name for shape in plan.shapes if shape.streams == (stream,)]
    for name in (*rules, *names_of(db, shapes)):
        for id in ledger.ids_at(db, name, partition, offset, ALERTS_MAX):
            yield ledger.alert(db, id)


def _archived(subject: Subject, stream: StreamPlan) -> Position:
    version = subject.master(stream).newest_or_none()
    return version.position if version else Position.start(stream.partitions)


def _views(subject: Subject, event: OneEvent) -> Iterator[AffectedRow]:
    for view in event.plan.shown_views:
        if event.stream.name not in view.streams:
            continue
        try:
            rows = counted_rows(event, subject.store, view.name)
        except HeadraceError as error:
            yield AffectedRow(view.name, None, None, error.message)
            continue
        yield from (AffectedRow(view.name, row.shown_key, row.shown) for row in rows)
