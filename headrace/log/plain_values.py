"""Arrow columns for Python, which has no times outside the years 1 to 9999.

In plain form times and dates are numbers, also within lists and objects. As values of Python those
outside are clipped, as in every answer. tests/log/test_plain_values.py has one of each.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa

from headrace.core.time import DAY, FIRST, LAST

_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_Read = Callable[[Any], Any]


def datetime_of(us: int) -> datetime:
    """
    >>> datetime_of(LAST + 1).year
    9999
    """
    return _EPOCH + min(max(us, FIRST), LAST) * _MICROSECOND


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with times and dates as numbers."""
    wanted = _plain(column.type)
    return column if wanted == column.type else column.cast(wanted)


def python_values(column: pa.Array) -> list[Any]:
    """The values, with times and dates as Python has them."""
    values, read = plain(column).to_pylist(), _reader(column.type)
    return values if read is None else [None if v is None else read(v) for v in values]


def _plain(type: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(type):
        return pa.int64()
    if pa.types.is_date32(type):
        return pa.int32()
    if pa.types.is_list(type):
        return pa.list_(_plain(type.value_type))
    if pa.types.is_map(type):
        return pa.map_(_plain(type.key_type), _plain(type.item_type))
    if pa.types.is_struct(type):
        return pa.struct([(field.name, _plain(field.type)) for field in type])
    return type


def _reader(type: pa.DataType) -> _Read | None:
    """What reads a plain value that is not null; None where it is the value."""
    if _plain(type) == type:
        return None
    if pa.types.is_timestamp(type):
        return datetime_of if type.tz else lambda us: datetime_of(us).replace(tzinfo=None)
    if pa.types.is_date32(type):
        return _date
    if pa.types.is_list(type):
        item = _optional(type.value_type)
        return lambda items: [item(x) for x in items]
    if pa.types.is_map(type):
        key, value = _optional(type.key_type), _optional(type.item_type)
        return lambda pairs: [(key(k), value(v)) for k, v in pairs]
    fields = [(field.name, _optional(field.type)) for field in type]
    return lambda found: {name: read(found[name]) for name, read in fields}


def _optional(type: pa.DataType) -> _Read:
    read = _reader(type)
    return lambda value: value if value is None or read is None else read(value)


def _date(day: int) -> date:
    return datetime_of(day * DAY).date()
