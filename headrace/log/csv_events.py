"""CSV events -> rows: one record is one CSV line, its fields are the columns in declared order.

An empty field is null. A row is a tuple of the same Python values that JSON events have, so that
the columns are made by the same code. A field may be quoted and then hold commas and newlines.
tests/log/test_decode.py has the table of cases.
"""

from __future__ import annotations

import csv
import io
import math
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.core.errors import Unsupported
from headrace.core.schema import Column, Schema
from headrace.log.refusals import EXPECTED, BadEventError

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_BOOLEANS = {"true": True, "false": False}
_BITS = {"INT": 31, "BIGINT": 63}
_DIGITS_MAX = 40  # more are out of range in any case, and Python refuses to read thousands


class CsvEvents:
    """Decodes events of one schema from CSV lines."""

    def __init__(self, schema: Schema) -> None:
        for column in schema.columns:
            if column.type.array:
                raise Unsupported(
                    f"the column '{column.name}' is an array, which CSV events cannot hold",
                    hint="use format = 'json'.",
                )
        self.schema = schema
        self.blank = (None,) * len(schema.columns)

    def getter(self, column: int) -> Callable[[Any], Any]:
        return operator.itemgetter(column)

    def rows_of(self, body: bytes, lengths: NDArray[np.uint32]) -> list[Any] | None:
        """CSV is always taken line by line: a quote must not reach into the next event."""
        return None

    def row_of(self, line: bytes) -> tuple[Any, ...]:
        """The row of one event; raises BadEventError with the reason."""
        fields = _split(line)
        if len(fields) != len(self.schema.columns):
            declared = len(self.schema.columns)
            raise BadEventError(f"the line has {len(fields)} fields and {declared} are declared")
        return tuple(map(_value, self.schema.columns, fields))


def _split(line: bytes) -> list[str]:
    try:
        rows = list(csv.reader(io.StringIO(line.decode(), newline=""), strict=True))
    except UnicodeDecodeError as error:
        raise BadEventError(f"not CSV: not UTF-8 at byte {error.start}") from error
    except csv.Error as error:
        raise BadEventError(f"not CSV: {error}") from error
    if len(rows) > 1:
        raise BadEventError("not CSV: more than one line")
    if not rows or not rows[0]:
        raise BadEventError("not CSV: the body is empty")
    return rows[0]


def _value(column: Column, text: str) -> Any:
    """The value of one field; times and dates stay text until the whole column is read."""
    if text == "":
        if not column.nullable:
            raise BadEventError(f"field '{column.name}' must not be null")
        return None
    name = column.type.name
    if name in _BITS:
        return _integer(column, text)
    if name == "DOUBLE":
        return _number(column, text)
    if name == "BOOLEAN":
        if text.lower() not in _BOOLEANS:
            raise _wrong(column)
        return _BOOLEANS[text.lower()]
    return text


def _integer(column: Column, text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise _wrong(column)
    bound = 1 << _BITS[column.type.name]
    value = int(text) if len(text) <= _DIGITS_MAX else bound
    if not -bound <= value < bound:
        raise BadEventError(f"field '{column.name}' is out of range for {column.type.name}")
    return value


def _number(column: Column, text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise _wrong(column)
    value = float(text)
    if math.isinf(value):
        raise BadEventError(f"field '{column.name}' is out of range for DOUBLE")
    return value


def _wrong(column: Column) -> BadEventError:
    return BadEventError(f"field '{column.name}' should be {EXPECTED[column.type.name]}")
