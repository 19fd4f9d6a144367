"""The data quality of the newest events of each stream.

tests/run/test_observatory.py counts them by hand.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from headrace.api.resources.quality import (
    LatenessBucket,
    NullShare,
    Quality,
    QualityRequest,
    ReasonCount,
    StreamQuality,
    UndeclaredField,
)
from headrace.api.resources.status import StreamStatus
from headrace.audit.records import Records
from headrace.compile.plan import StreamPlan
from headrace.core.event import EventStatus
from headrace.core.json_path import JsonPath
from headrace.core.position import Position, PositionRange
from headrace.core.time import iso
from headrace.master.balance import read_dead_letters
from headrace.master.decoding import decoder_of
from headrace.run.observatory.observed_project import ObservedProject
from headrace.run.observatory.records import log_end, records_of, shown_value

SAMPLE_MAX = 5_000
LETTERS_MAX = 2_000
FIELDS_MAX, EXAMPLE_MAX = 100, 80
BUCKETS_MS = (0, 1_000, 10_000, 60_000, 600_000, 3_600_000, 86_400_000)
# The parts of a reason that differ between dead letters with the same mistake.
_VALUES = re.compile(r", not .*$| \(?(at )?byte \d+\)?|: '?[-+.\deE]+'?…?$", re.DOTALL)
# A JSON value by its first character; what is not here is a number.
_JSON_TYPES = {
    '"': "string", "t": "boolean", "f": "boolean", "[": "array", "{": "object", "n": "null",
}  # fmt: skip
# Values stay raw JSON, because a number may not fit into any type.
_fields_of = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def quality_of(service: ObservedProject, request: QualityRequest) -> Quality:
    """The quality of all streams."""
    plan, status = service.deployed(), {stream.name: stream for stream in service.status().streams}
    found = [_quality(service, stream, status[stream.name]) for stream in plan.streams]
    return Quality(iso(service.store.clock()), found)


def _quality(service: ObservedProject, stream: StreamPlan, status: StreamStatus) -> StreamQuality:
    range = _newest(log_end(service, stream), SAMPLE_MAX // stream.partitions)
    with records_of(service, stream, range) as records:
        sampled, lateness = len(range), _lateness(records)
        (undeclared, undeclared_total), nulls = _undeclared(records), list(_nulls(records))
    known = read_dead_letters(
        service.master(stream), decoder_of(stream), service.log_reader(stream), LETTERS_MAX
    )
    return StreamQuality(
        stream.name,
        sampled,
        lateness,
        status.late,
        sum(status.position),
        sum(known.records.values()),
        known.records[EventStatus.DUPLICATE.word],
        known.total,
        _reasons(known.newest),
        undeclared,
        undeclared_total,
        nulls,
        status.balance,
    )


def _newest(end: Position, share: int) -> PositionRange:
    lower = tuple(max(0, offset - max(1, share)) for offset in end.offsets)
    return PositionRange(Position(lower), end)


def _lateness(records: Records) -> list[LatenessBucket]:
    """A histogram of lateness; empty if lateness is not known."""
    if not records.lateness_known or records.stream.watermark is None:
        return []
    late_us = records.lateness_us()
    found = Counter(next((b for b in BUCKETS_MS if us <= b * 1000), None) for us in late_us)
    return [LatenessBucket(bucket, found[bucket]) for bucket in (*BUCKETS_MS, None)]


def _nulls(records: Records) -> Iterator[NullShare]:
    events, known = records.counts()
    for column, there in zip(records.columns, known, strict=True):
        nulls = events - there
        share = round(nulls / events, 4) if events else 0.0
        yield NullShare(column.name, nulls, share, column.nullable)


def _undeclared(records: Records) -> tuple[list[UndeclaredField], int]:
    """The most common fields of JSON events that are neither declared nor the stream's id, and how
    many such fields there are.
    """
    if records.stream.format != "json":
        return [], 0
    objects = [_fields_of(raw) for raw in records.raw_events()]
    columns = records.stream.schema.stored.columns
    declared = {(JsonPath.parse(c.path).field if c.path else c.name).lower() for c in columns}
    declared.add(records.stream.id or "")
    found = Counter(name for one in objects for name in one if name.lower() not in declared)
    listed = [_field(objects, *one) for one in found.most_common(FIELDS_MAX)]
    return listed, len(found)


def _field(objects: list[dict[str, msgspec.Raw]], name: str, events: int) -> UndeclaredField:
    text = bytes(next(one[name] for one in objects if name in one)).decode()
    kind, share = _JSON_TYPES.get(text[0], "number"), round(events / len(objects), 4)
    return UndeclaredField(name, events, share, kind, text[:EXAMPLE_MAX])


def _reasons(letters: Sequence[Any]) -> list[ReasonCount]:
    by_reason: dict[str, list[Any]] = {}
    for letter in letters:
        by_reason.setdefault(_VALUES.sub("", str(letter["_reason"])), []).append(letter)
    counted = [_reason(reason, found) for reason, found in by_reason.items()]
    return sorted(counted, key=lambda reason: -reason.events)


def _reason(reason: str, letters: Sequence[Any]) -> ReasonCount:
    newest = letters[0]
    at = str(shown_value(newest["_arrived_at"]))
    return ReasonCount(reason, len(letters), at, newest["_partition"], newest["_offset"])
