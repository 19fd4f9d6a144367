"""From a record's bytes to typed values, or the reason why not: the strictness of declared types.

A record is one JSON object in UTF-8. STRING takes text, BOOLEAN true and false, INT and BIGINT
whole numbers in range, DOUBLE any finite number, TIMESTAMP ISO 8601 text, ARRAY a list of such or
null. Nothing is converted: "3" is not a number. A field that is missing is NULL, and one that is
not declared is ignored; a NULL where NOT NULL was declared is refused.
tests/testing/test_reference_engine.py has a table of accepted and refused values.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from headrace.core.errors import Unsupported
from headrace.core.schema import Column, Type
from headrace.core.time import from_iso
from headrace.testing.reference import Timestamp


class NotDecoded(ValueError):
    """The record is a dead letter; the message says why."""


def decoded(record: bytes, columns: Sequence[Column]) -> dict[str, Any]:
    """The declared fields of a record."""
    found = _object(record)
    return {column.name: _field(column, found.get(column.name)) for column in columns}


def id_of(record: bytes, id_field: str | None) -> Any:
    """The value of the id field, with its type, so that 1 and "1" differ; None if there is none."""
    try:
        value = _object(record).get(id_field) if id_field else None
    except NotDecoded:
        return None
    return None if value is None else (type(value).__name__, json.dumps(value))


def key_of(record: bytes, key_field: str | None) -> bytes:
    """The bytes that decide on a record's partition: its key's, or its own if that cannot be
    read.
    """
    try:
        value = _object(record).get(key_field) if key_field else None
    except NotDecoded:
        return record
    return record if value is None else str(value).encode()


def typed(value: Any, type_: Type) -> Any:
    """A JSON value as the declared type has it.

    >>> typed("1970-01-01T00:00:01Z", Type("TIMESTAMP")), typed(3, Type("DOUBLE"))
    (Timestamp(us=1000000), 3.0)
    """
    if value is None:
        return None
    if not type_.array:
        return _SCALARS[type_.name](value)
    if not isinstance(value, list):
        raise NotDecoded(f"{value!r} is not an array")
    return [typed(item, Type(type_.name)) for item in value]


def _object(record: bytes) -> dict[str, Any]:
    try:
        found = json.loads(record.decode(), parse_constant=_refused)
    except (ValueError, RecursionError) as problem:
        raise NotDecoded(f"not JSON: {problem}") from problem
    if not isinstance(found, dict):
        raise NotDecoded("not a JSON object")
    return found


def _refused(constant: str) -> Any:
    raise NotDecoded(f"{constant} is not JSON")


def _field(column: Column, value: Any) -> Any:
    if value is None and not column.nullable:
        raise NotDecoded(f"{column.name} is missing and is declared NOT NULL")
    return typed(value, column.type)


def _exactly(kind: type) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if type(value) is not kind:
            raise NotDecoded(f"{value!r} is not of type {kind.__name__}")
        return value

    return check


def _whole(bits: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        whole: int = _exactly(int)(value)
        if not -(2 ** (bits - 1)) <= whole < 2 ** (bits - 1):
            raise NotDecoded(f"{value} does not fit {bits} bits")
        return whole

    return check


def _double(value: Any) -> float:
    try:
        number = float(value if type(value) is int else _exactly(float)(value))
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise NotDecoded(f"{value} does not fit a double")
    return number


def _timestamp(value: Any) -> Timestamp:
    try:
        return Timestamp(from_iso(_exactly(str)(value)))
    except ValueError as problem:
        raise NotDecoded(f"{value!r} is not a moment") from problem


def _unsupported(value: Any) -> Any:
    # No dead letter: the event may be right, it is the reference that cannot tell.
    raise Unsupported(f"the reference does not know the type DATE, here of {value!r}")


_SCALARS: dict[str, Callable[[Any], Any]] = {
    "STRING": _exactly(str),
    "BOOLEAN": _exactly(bool),
    "INT": _whole(32),
    "BIGINT": _whole(64),
    "DOUBLE": _double,
    "TIMESTAMP": _timestamp,
    "DATE": _unsupported,
}
