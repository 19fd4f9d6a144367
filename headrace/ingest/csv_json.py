"""A CSV record as the JSON object that a producer would have sent.

Names come from the header, in the declared spelling where the stream declares them; numbers and
booleans are written as such, an empty field is null. A value that its type cannot hold stays a
string and a row of the wrong length stays as it is: both become dead letters later, with a reason.
tests/ingest/test_records.py checks each type.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from headrace.core.schema import Schema, Type
from headrace.ingest.fields import csv_row

_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_LOOSE_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_BOOLEANS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


def csv_to_json(header: Sequence[str], schema: Schema) -> Callable[[bytes], bytes]:
    """The function that turns one CSV record with these columns into JSON.

    >>> from headrace.core.schema import Column
    >>> convert = csv_to_json(["N", "who"], Schema((Column("n", Type("INT")),)))
    >>> convert(b"7,ada")
    b'{"n":7,"who":"ada"}'
    """
    columns = [schema.find(name.strip()) for name in header]
    names = [c.name if c else name.strip() for c, name in zip(columns, header, strict=True)]
    readers = [value_reader(c.type) if c else str for c in columns]

    def convert(record: bytes) -> bytes:
        row = csv_row(record)
        if len(row) != len(names):
            return record
        fields = zip(names, readers, row, strict=True)
        return msgspec.json.encode({n: read(v) if v else None for n, read, v in fields})

    return convert


def value_reader(kind: Type) -> Callable[[str], Any]:
    """The function that reads a text as a JSON value of this type, or leaves it a text."""
    if kind.nested or kind.name == "VARIANT":
        return _json
    return _READERS.get(kind.name, str)


def _whole(text: str) -> Any:
    word = text.strip()
    if _WHOLE.fullmatch(word):
        return msgspec.Raw(word.encode())  # as written: no digit is lost, whatever its size
    return int(word) if _LOOSE_WHOLE.fullmatch(word) else text


def _double(text: str) -> Any:
    word = text.strip()
    if _NUMBER.fullmatch(word):
        return msgspec.Raw(word.encode())
    try:
        number = float(word)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def _boolean(text: str) -> Any:
    return _BOOLEANS.get(text.strip().lower(), text)


def _json(text: str) -> Any:
    try:
        msgspec.json.decode(text)
        return msgspec.Raw(text.encode())
    except msgspec.DecodeError:
        return text


_READERS: dict[str, Callable[[str], Any]] = {
    "TINYINT": _whole, "SMALLINT": _whole, "INT": _whole, "BIGINT": _whole, "FLOAT": _double,
    "DOUBLE": _double, "BOOLEAN": _boolean,
}  # fmt: skip
