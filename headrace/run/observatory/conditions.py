"""The conditions of a search for events, as DuckDB SQL over a stream's records.

A declared column is compared by its type. A field that is not declared, and every field of a record
that is not an event, is read from the raw JSON, which has no computed columns.
tests/run/test_search.py tries each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headrace.api.resources.events import EventsRequest
from headrace.compile.plan import StreamPlan
from headrace.core.errors import BadRequest
from headrace.core.event import RAW, STATUS, EventStatus
from headrace.core.json_path import JsonPath
from headrace.core.schema import Column
from headrace.core.time import from_iso
from headrace.serving.conditions import parse_integer

_JSON = f"TRY(json_extract_string(TRY(decode({RAW})), ?))"
_EVENT = f"{STATUS} = {int(EventStatus.EVENT)}"


@dataclass(frozen=True, slots=True)
class RecordCondition:
    """SQL, and its values."""

    sql: str
    values: tuple[Any, ...] = ()


def conditions_of(stream: StreamPlan, request: EventsRequest) -> list[RecordCondition]:
    """All conditions on a record, except its partition and offset."""
    return [*_status(request), *_times(stream, request), *_fields(stream, request)]


def _status(request: EventsRequest) -> Iterator[RecordCondition]:
    if request.status is None:
        return
    known = {status.word: status for status in EventStatus}
    if request.status not in known:
        raise BadRequest(
            f"there is no status '{request.status[:40]}'",
            hint=f"available statuses: {', '.join(known)}.",
        )
    yield RecordCondition(f"{STATUS} = {int(known[request.status])}")


def _times(stream: StreamPlan, request: EventsRequest) -> Iterator[RecordCondition]:
    for sign, text in ((">=", request.since), ("<", request.until)):
        if text is None:
            continue
        if stream.watermark is None:
            raise BadRequest(
                f"'from' and 'to' require an event time; stream '{stream.name}' has none",
                hint="add WATERMARK column DELAY OF INTERVAL … to the stream.",
            )
        yield RecordCondition(f'epoch_us("{stream.watermark[0]}") {sign} ?', (_timestamp_us(text),))


def _fields(stream: StreamPlan, request: EventsRequest) -> Iterator[RecordCondition]:
    for role, name, value in (("id", stream.id, request.id), ("key", stream.key, request.key)):
        if value is not None:
            if name is None:
                raise BadRequest(
                    f"stream '{stream.name}' has no {role}, so it cannot be searched by {role}"
                )
            yield _field(stream, name, value)
    for name, value in request.values:
        yield _field(stream, name, value)


def _field(stream: StreamPlan, name: str, value: str) -> RecordCondition:
    column = stream.schema.find(name)
    if stream.format != "json":
        if column is None:
            known = ", ".join(stream.schema.names)
            raise BadRequest(
                f"stream '{stream.name}' has no column '{name[:40]}'",
                hint=f"available columns: {known}.",
            )
        return _compared(column, value)
    in_raw = RecordCondition(f"{_JSON} = ?", (_pointer(column, name), value))
    if column is None:
        return in_raw
    typed = _compared(column, value)
    if column.generated:
        return RecordCondition(f"{_EVENT} AND {typed.sql}", typed.values)
    return RecordCondition(
        f"CASE WHEN {_EVENT} THEN {typed.sql} ELSE {in_raw.sql} END",
        (*typed.values, *in_raw.values),
    )


def _pointer(column: Column | None, name: str) -> str:
    """The JSON pointer of the field."""
    path = JsonPath.parse(column.path) if column and column.path else None
    steps = path.steps if path else (column.name if column else name,)
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def _compared(column: Column, value: str) -> RecordCondition:
    """The column has this value, by its type."""
    name = f'"{column.name}"'
    if column.type.nested:
        return RecordCondition(f"to_json({name}) = ?", (value,))
    match column.type.name:
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT" | "FLOAT" | "DOUBLE":
            # Without a cast to DOUBLE, which is not exact beyond 2⁵³.
            return RecordCondition(f"{name} = ?", (_number(column, value),))
        case "TIMESTAMP":
            return RecordCondition(f"epoch_us({name}) = ?", (_timestamp_us(value),))
    return RecordCondition(f"CAST({name} AS VARCHAR) = ?", (value,))


def _number(column: Column, text: str) -> float | int:
    try:
        return float(text) if column.type.name in {"FLOAT", "DOUBLE"} else parse_integer(text)
    except ValueError as error:
        type = column.type.spark
        raise BadRequest(
            f"'{text[:40]}' is not a valid {type}, the type of '{column.name}'"
        ) from error


def _timestamp_us(text: str) -> int:
    try:
        return from_iso(text)
    except ValueError as error:
        raise BadRequest(
            f"'{text[:40]}' is not a timestamp such as 2026-11-15T19:00:00Z"
        ) from error
