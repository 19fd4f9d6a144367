"""The Python and Arrow types of a column's values, from its type in an answer.

A timestamp is a datetime in UTC, a date a date, a window its start and end, a DECIMAL a Decimal,
bytes are bytes; inside of arrays, structs and maps too. JSON has none of these, so the type decides
and never the format of a value: a string that looks like a time stays a string. The values of an
unknown type stay as in JSON. tests/serving/test_value_types.py has one value of each.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa


class Window(NamedTuple):
    """[start, end); a landmark window has no end."""

    start: datetime
    end: datetime | None


@dataclass(frozen=True, slots=True)
class ValueType:
    """How a value that is not null is converted from JSON, and its Arrow type."""

    read: Callable[[Any], Any]
    arrow: Any
    window: bool = False

    def value(self, json: Any) -> Any:
        return None if json is None else self.read(json)


def _timestamp(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _unchanged(value: Any) -> Any:
    return value


TIMESTAMP = ValueType(_timestamp, pa.timestamp("us", tz="UTC"))
_TEXT = ValueType(_unchanged, pa.string())
_SCALARS = {
    "STRING": _TEXT,
    "BOOLEAN": ValueType(bool, pa.bool_()),
    "TINYINT": ValueType(int, pa.int8()),
    "SMALLINT": ValueType(int, pa.int16()),
    "INT": ValueType(int, pa.int32()),
    "BIGINT": ValueType(int, pa.int64()),
    "FLOAT": ValueType(float, pa.float32()),
    "DOUBLE": ValueType(float, pa.float64()),
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP_NTZ": ValueType(datetime.fromisoformat, pa.timestamp("us")),
    "DATE": ValueType(date.fromisoformat, pa.date32()),
    "BINARY": ValueType(base64.b64decode, pa.binary()),
    "VOID": ValueType(_unchanged, pa.null()),
}
_DECIMAL = re.compile(r"DECIMAL\((\d+), ?(\d+)\)")
_NESTED = re.compile(r"(ARRAY|STRUCT|MAP)\s*<(.*)>", re.IGNORECASE | re.DOTALL)


def _window(json: dict[str, Any]) -> Window:
    return Window(_timestamp(json["start"]), TIMESTAMP.value(json["end"]))


WINDOW = ValueType(
    _window, pa.struct([("start", TIMESTAMP.arrow), ("end", TIMESTAMP.arrow)]), window=True
)


def value_type(type: str) -> ValueType:
    """The conversion of a type.

    >>> value_type("TIMESTAMP").value("2026-11-15T19:00:00Z")
    datetime.datetime(2026, 11, 15, 19, 0, tzinfo=datetime.timezone.utc)
    >>> value_type("array<struct<item:decimal(9,2)>>").value([{"item": "1.50"}])
    [{'item': Decimal('1.50')}]
    """
    word = type.strip()
    if word.upper() == "WINDOW":
        return WINDOW
    if inner := _NESTED.fullmatch(word):
        return _nested(inner[1].upper(), _parts(inner[2]))
    if decimal := _DECIMAL.fullmatch(word.upper()):
        return ValueType(Decimal, pa.decimal128(int(decimal[1]), int(decimal[2])))
    return _SCALARS.get(word.upper(), _TEXT)


def _nested(word: str, parts: list[str]) -> ValueType:
    if word == "ARRAY":
        element = value_type(",".join(parts))
        return ValueType(lambda values: [element.value(v) for v in values], pa.list_(element.arrow))
    if word == "MAP":
        key, value = value_type(parts[0]), value_type(",".join(parts[1:]))
        return ValueType(partial(_read_entries, key, value), pa.map_(key.arrow, value.arrow))
    named = [part.split(":", 1) for part in parts]
    fields = {_unquoted(name.strip()): value_type(type) for name, type in named}
    if list(fields) == ["start", "end"] and set(fields.values()) == {TIMESTAMP}:
        return WINDOW
    arrow = pa.struct([(name, kind.arrow) for name, kind in fields.items()])
    return ValueType(partial(_read_fields, fields), arrow)


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def _read_fields(fields: dict[str, ValueType], value: dict[str, Any]) -> dict[str, Any]:
    return {name: fields.get(name, _TEXT).value(part) for name, part in value.items()}


def _read_entries(key: ValueType, value: ValueType, json: dict[str, Any]) -> dict[Any, Any]:
    """A map; the keys of a JSON object are strings, so they are converted."""
    return {_read_key(key, name): value.value(part) for name, part in json.items()}


def _read_key(kind: ValueType, name: str) -> Any:
    return name == "true" if kind.arrow == pa.bool_() else kind.value(name)


def _parts(text: str) -> list[str]:
    """The parts between the outermost commas.

    >>> _parts("a: INT, b: MAP<STRING, DECIMAL(9, 2)>")
    ['a: INT', 'b: MAP<STRING, DECIMAL(9, 2)>']
    """
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]
