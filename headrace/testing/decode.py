"""Decodes a record to typed values, or gives the reason why not.

A record is one JSON object in UTF-8. STRING takes text, BOOLEAN true and false, whole types whole
numbers in range, FLOAT and DOUBLE any finite number, DECIMAL a number or text that it holds without
rounding, TIMESTAMP ISO 8601 text or a value in its FORMAT, BINARY base64, ARRAY a list, MAP and
STRUCT an object, VARIANT anything. Nothing is converted: "3" is not a BIGINT. A field that is
missing is NULL, and one that is not declared is ignored; a NULL where NOT NULL was declared is
refused. A column with FROM is what its path finds. tests/testing/test_reference_engine.py has a
table of accepted and refused values.
"""

from __future__ import annotations

import base64
import json
import math
import re
import struct
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from headrace.core.schema import Column, Type
from headrace.core.time import FIRST, LAST, from_iso
from headrace.testing.reference import Date, LocalTimestamp, Timestamp, Variant
from headrace.testing.time_formats import timestamp_us

_STEP = re.compile(r"""\.?"((?:[^"\\]|\\.)*)"|\.([\w-]+)|\[(\d+)\]|\['([^']*)'\]|\["([^"]*)"\]""")
_PLAIN_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,9})?", re.I | re.A)


class DecodeError(ValueError):
    """The record is a dead letter; the message says why."""


def decoded(record: bytes, columns: Sequence[Column]) -> dict[str, Any]:
    """The declared fields of a record."""
    found, stored = _object(record), (column for column in columns if not column.generated)
    return {column.name: _field(column, _at(found, _path(column))) for column in stored}


def raw_of(record: bytes) -> Any:
    """`_raw`: the whole record as a VARIANT, or NULL if it has a number of more than 1,000 digits,
    a name of more than 50,000 characters, or text that is not Unicode.

    A number without an exponent is exact up to 38 digits, any other is a double, also an infinite
    one. Of a name that comes twice the last value counts.

    >>> raw_of(b'{"a": 1, "a": 2.50, "b": 1e400}')
    {'a': Decimal('2.50'), 'b': inf}
    """
    try:
        found = json.loads(
            record.decode(),
            object_pairs_hook=_named_parts,
            parse_float=_part,
            parse_int=_part,
            parse_constant=_refused,
        )
        json.dumps(found, ensure_ascii=False, default=str).encode()
    except ValueError:
        return None
    return found


def _part(text: str) -> int | float | Decimal:
    if len(text) > 1_000:
        raise DecodeError("a number is too long")
    if "e" in text.lower() or sum(map(str.isdigit, text)) > 38:
        return float(text)
    number = Decimal(text) if "." in text else int(text)
    return number if number else 0  # there is no zero with a sign


def _named_parts(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if any(len(name) > 50_000 for name, _ in pairs):
        raise DecodeError("a name is too long")
    return dict(pairs)


def id_of(record: bytes, id_field: str | None, columns: Sequence[Column] = ()) -> Any:
    """The value of the id field, with its type, so that 1 and "1" differ; None if there is none."""
    value = _named(record, id_field, columns)
    return None if value is None else (type(value).__name__, json.dumps(value, default=str))


def key_of(record: bytes, key_field: str | None, columns: Sequence[Column] = ()) -> bytes:
    """The bytes that decide on a record's partition: its key's, or its own if that cannot be
    read.
    """
    value = _named(record, key_field, columns)
    return record if value is None else str(value).encode()


def _named(record: bytes, name: str | None, columns: Sequence[Column]) -> Any:
    """The value of a field by its column's name, or by its own."""
    column = next((c for c in columns if name and c.name.lower() == name.lower()), None)
    try:
        return _at(_object(record), _path(column) if column else [name]) if name else None
    except DecodeError:
        return None


def _path(column: Column) -> list[str | int]:
    if column.path is None:
        return [column.name]
    steps: list[str | int] = []
    for quoted, name, index, *others in _STEP.findall(column.path):
        text = quoted or name or "".join(others)
        steps.append(int(index) if index else text)
    return steps


def _at(value: Any, steps: Sequence[str | int]) -> Any:
    for step in steps:
        if isinstance(step, int):
            value = dict(enumerate(value)).get(step) if isinstance(value, list) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def typed(value: Any, type_: Type) -> Any:
    """A JSON value as the declared type has it.

    >>> typed("1970-01-01T00:00:01Z", Type("TIMESTAMP")), typed(3, Type("DOUBLE"))
    (Timestamp(us=1000000), 3.0)
    """
    if value is None:
        return None
    if type_.name == "ARRAY":
        return [typed(item, type_.element) for item in _exactly(list)(value)]
    if type_.name == "MAP":
        return {key: typed(item, type_.element) for key, item in _exactly(dict)(value).items()}
    if type_.name == "STRUCT":
        found = _exactly(dict)(value)
        return {field.name: typed(found.get(field.name), field.type) for field in type_.fields}
    return _decimal(value, type_) if type_.name == "DECIMAL" else _SCALARS[type_.name](value)


def _object(record: bytes) -> dict[str, Any]:
    try:
        found = json.loads(record.decode(), parse_float=Decimal, parse_constant=_refused)
    except (ValueError, RecursionError) as problem:
        raise DecodeError(f"not JSON: {problem}") from problem
    if not isinstance(found, dict):
        raise DecodeError("not a JSON object")
    return found


def _refused(constant: str) -> Any:
    raise DecodeError(f"{constant} is not JSON")


def _field(column: Column, value: Any) -> Any:
    if value is None and column.default is not None:
        value = json.loads(column.default, parse_float=Decimal)
    if value is None and not column.nullable:
        raise DecodeError(f"{column.name} is missing and is declared NOT NULL")
    if value is not None and column.format:
        return _formatted(value, column.format)
    return typed(value, column.type)


def _formatted(value: Any, format: str) -> Timestamp:
    try:
        us = timestamp_us(value, format)
    except (ValueError, ArithmeticError) as problem:
        raise DecodeError(f"{value!r} is not a time in the format {format}") from problem
    if not FIRST <= us <= LAST:
        raise DecodeError(f"{value!r} is not within the years 1 to 9999")
    return Timestamp(us)


def _exactly(kind: type) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if type(value) is not kind:
            raise DecodeError(f"{value!r} is not of type {kind.__name__}")
        return value

    return check


def _whole(bits: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        whole: int = _exactly(int)(value)
        if not -(2 ** (bits - 1)) <= whole < 2 ** (bits - 1):
            raise DecodeError(f"{value} does not fit {bits} bits")
        return whole

    return check


def _double(value: Any) -> float:
    try:
        number = float(value if type(value) is int else _exactly(Decimal)(value))
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise DecodeError(f"{value} does not fit a double")
    return number


def _float(value: Any) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", _double(value)))[0])
    except OverflowError as problem:
        raise DecodeError(f"{value} does not fit a float") from problem


def _decimal(value: Any, type_: Type) -> Decimal:
    """The number if it is a whole number of units of the last digit, and not too many of them."""
    if isinstance(value, bool | list | dict) or not _PLAIN_NUMBER.fullmatch(str(value)):
        raise DecodeError(f"{value!r} is not a number")
    precision, scale = type_.size or (10, 0)
    number = Decimal(value)
    if number and not -400 < number.adjusted() < 400:
        raise DecodeError(f"{value} does not fit {type_.spark}")
    numerator, denominator = number.as_integer_ratio()
    units, rest = divmod(numerator * 10**scale, denominator)
    if rest or abs(units) >= 10**precision:
        raise DecodeError(f"{value} does not fit {type_.spark}")
    return Decimal((units < 0, tuple(map(int, str(abs(units)))), -scale))


def _binary(value: Any) -> bytes:
    try:
        return base64.b64decode(_exactly(str)(value), validate=True)
    except ValueError as problem:
        raise DecodeError(f"{value!r} is not base64") from problem


def _variant(value: Any) -> Any:
    """Any JSON in which every number is one that a double can hold."""
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            _variant(part)
    elif isinstance(value, int | Decimal) and not isinstance(value, bool):
        _double(value)
    return value


def _date(value: Any) -> Date:
    text = _exactly(str)(value)
    try:
        return Date((date.fromisoformat(text) - date(1970, 1, 1)).days)
    except ValueError as problem:
        raise DecodeError(f"{value!r} is not a date") from problem


def _local(value: Any) -> LocalTimestamp:
    if "Z" in _exactly(str)(value) or re.search(r":\d\d[+-]", value):
        raise DecodeError(f"{value!r} has a zone")
    return LocalTimestamp(_timestamp(value).us)


def _timestamp(value: Any) -> Timestamp:
    try:
        return Timestamp(from_iso(_exactly(str)(value)))
    except ValueError as problem:
        raise DecodeError(f"{value!r} is not a timestamp") from problem


_SCALARS: dict[str, Callable[[Any], Any]] = {
    "STRING": _exactly(str),
    "BOOLEAN": _exactly(bool),
    "TINYINT": _whole(8),
    "SMALLINT": _whole(16),
    "INT": _whole(32),
    "BIGINT": _whole(64),
    "FLOAT": _float,
    "DOUBLE": _double,
    "TIMESTAMP": _timestamp,
    "BINARY": _binary,
    "VARIANT": lambda value: Variant(_variant(value)),
    "DATE": _date,
    "TIMESTAMP_NTZ": _local,
}
