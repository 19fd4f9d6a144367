"""The records of a range of a stream as JSON; headrace/audit/records.py reads them.

tests/run/test_search.py pages through them.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from headrace.api.resources.events import EventRecord
from headrace.audit.records import RECORD_COLUMNS, Records, open_records
from headrace.compile.plan import StreamPlan
from headrace.core.event import EventStatus
from headrace.core.position import Position, PositionRange
from headrace.ingest.fields import Value, field_reader
from headrace.run.observatory.observed_project import ObservedProject

SHOWN_MAX = 16_384  # bytes of a record in a list


def shown_records(
    service: ObservedProject,
    records: Records,
    rows: Sequence[Sequence[Any]],
    *,
    whole: bool = False,
) -> list[EventRecord]:
    """The rows of `records.newest` as JSON; with `whole`, long records are not truncated."""
    raws = [bytes(row[len(RECORD_COLUMNS) - 1]) for row in rows]
    keys, ids = field_reader(service.project.streams[records.stream.name])(raws)
    return [
        _shown(records, row, raw, _at(keys, n), _at(ids, n), whole)
        for n, (row, raw) in enumerate(zip(rows, raws, strict=True))
    ]


def _shown(
    records: Records, row: Sequence[Any], raw: bytes, key: str | None, id: str | None, whole: bool
) -> EventRecord:
    hidden = len(RECORD_COLUMNS)
    partition, offset, arrived, status, reason, late, lateness, _ = row[:hidden]
    names = (column.name for column in records.columns)
    body = {name: shown_value(value) for name, value in zip(names, row[hidden:], strict=True)}
    cut, event = not whole and len(raw) > SHOWN_MAX, status == EventStatus.EVENT
    mark, known = records.stream.watermark, event and records.lateness_known
    return EventRecord(
        partition,
        offset,
        str(shown_value(arrived)),
        EventStatus(status).word,  # type: ignore[arg-type]
        reason,
        body[mark[0]] if mark and event else None,
        bool(late) if known else None,
        lateness / 1000 if known else None,
        id,
        key,
        body if event and not cut else None,
        (raw[:SHOWN_MAX] if cut else raw).decode("utf-8", "backslashreplace"),
        cut,
    )


def _at(values: Sequence[Value], number: int) -> str | None:
    value = values[number] if values else None
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else _text(value)


def _text(value: str | int | None) -> str | None:
    return None if value is None else str(value)


def shown_value(value: Any) -> Any:
    """A value of DuckDB as JSON; timestamps without a zone are UTC."""
    if isinstance(value, datetime):
        time = value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
        return time.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, dict):
        return {name: shown_value(item) for name, item in value.items()}
    return [shown_value(item) for item in value] if isinstance(value, list) else value


def log_end(service: ObservedProject, stream: StreamPlan) -> Position:
    """The position after the newest record."""
    return service.log_reader(stream).end()


def records_of(
    service: ObservedProject, stream: StreamPlan, range: PositionRange
) -> AbstractContextManager[Records]:
    """The records of a range, until the end of the block."""
    return open_records(stream, range, service.layout, service.project.settings.query)
