"""CSV events -> rows: one record is one CSV line, its fields are the columns in declared order.

An empty field is null. A row is a tuple of the same Python values that JSON events have, so that
the columns are made by the same code; what JSON writes as a string is read from a field the same
way. A field may be quoted and then hold commas and newlines.
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
from headrace.core.schema import Column, Schema, not_in_csv
from headrace.log.decode_errors import EXPECTED, BadEventError, BadValueError
from headrace.log.json_values import SINGLE_MAX, default_of, reader_of

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_BOOLEANS = {"true": True, "false": False}
_BITS = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}
_DIGITS_MAX = 40  # more are out of range in any case, and Python refuses to read thousands


class CsvEvents:
    """Decodes events of one schema from CSV lines."""

    def __init__(self, schema: Schema) -> None:
        for column in schema.columns:
            if problem := not_in_csv(column):
                raise Unsupported(problem, hint="use format = 'json'.")
        self.schema = schema
        self._reads = [_reader(column) for column in schema.columns]
        self._defaults = [default_of(column) for column in schema.columns]
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
            raise BadEventError(f"the line has {len(fields)} fields, expected {declared}")
        parts = zip(self.schema.columns, self._reads, self._defaults, fields, strict=True)
        return tuple(_value(*part) for part in parts)

    def walked(self, rows: list[Any]) -> tuple[dict[int, list[Any]], dict[int, str]]:
        """Every field is read with its row."""
        return {}, {}


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


def _value(column: Column, read: Callable[[str], Any], default: Any, text: str) -> Any:
    """The value of one field; times and dates stay text until the whole column is read."""
    if text == "":
        if default is None and not column.nullable:
            raise BadEventError(f"field '{column.name}' must not be null")
        return default
    try:
        return read(text)
    except BadValueError as error:
        raise BadEventError(error.reason(column)) from error


def _reader(column: Column) -> Callable[[str], Any]:
    """The function that reads the fields of a column that are not empty."""
    name = column.type.name
    if name in _BITS:
        return lambda text: _integer(name, text)
    if name in ("FLOAT", "DOUBLE"):
        return lambda text: _number(name, text)
    return _boolean if name == "BOOLEAN" else reader_of(column)


def _boolean(text: str) -> bool:
    if text.lower() not in _BOOLEANS:
        raise _wrong_type("BOOLEAN")
    return _BOOLEANS[text.lower()]


def _integer(name: str, text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise _wrong_type(name)
    bound = 1 << _BITS[name]
    value = int(text) if len(text) <= _DIGITS_MAX else bound
    if not -bound <= value < bound:
        raise BadValueError(f"is out of range for {name}")
    return value


def _number(name: str, text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise _wrong_type(name)
    value = float(text)
    if not abs(value) < (SINGLE_MAX if name == "FLOAT" else math.inf):
        raise BadValueError(f"is out of range for {name}")
    return value


def _wrong_type(name: str) -> BadValueError:
    return BadValueError(f"should be {EXPECTED[name]}")
