"""JSON events -> rows, by one msgspec decoder made from the schema.

An event decodes to the same row whatever its neighbours are. `rows_of` decodes a whole body at once
only when each line opens and closes with a brace and yields exactly one row: a value that ran over
a line's end would meet a raw newline in a string, or a brace where JSON has none. Fields that are
not declared are ignored; of a key that comes twice the last value counts, though each is checked. A
field that msgspec cannot check exactly, or in which a path leads on, stays JSON in the row and is
read by `walked`, value by value. tests/log/test_decode.py has the table of cases;
tests/log/test_poison.py the hostile ones.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Optional

import msgspec
import numpy as np
from numpy.typing import NDArray

from headrace.core.json_path import JsonPath
from headrace.core.schema import Column, Schema, Type
from headrace.log.decode_errors import BadEventError, BadValueError, reason_of, subject
from headrace.log.json_values import SINGLE_MAX, Read, decode_json, default_of, reader_of

# Python's own limit of recursion depends on the caller; this one does not, so all readers agree.
DEPTH_MAX = 128
_QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_STEPS = np.zeros(256, np.int64)
_STEPS[list(b"[{")] = 1
_STEPS[list(b"]}")] = -1
_PYTHON: dict[str, Any] = {
    "STRING": str,
    "BOOLEAN": bool,
    "TINYINT": Annotated[int, msgspec.Meta(ge=-(2**7), le=2**7 - 1)],
    "SMALLINT": Annotated[int, msgspec.Meta(ge=-(2**15), le=2**15 - 1)],
    "INT": Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)],
    "BIGINT": Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)],
    "FLOAT": Annotated[float, msgspec.Meta(gt=-SINGLE_MAX, lt=SINGLE_MAX)],
    "DOUBLE": float,
    "TIMESTAMP": str,
    "TIMESTAMP_NTZ": str,
    "DATE": str,
}
_NOTHING = msgspec.Raw(b"null")


@dataclass(frozen=True, slots=True)
class _Walk:
    """One column that is read from a field that stayed JSON."""

    index: int
    column: Column
    path: JsonPath
    read: Read
    default: Any

    def value(self, field: Any) -> Any:
        """The column's value in the value of the field; BadEventError with the reason."""
        value = self.path.within(field)
        try:
            if value is not None:
                return self.read(value)
        except BadValueError as error:
            raise BadEventError(error.reason(self.column)) from error
        if self.default is None and not self.column.nullable:
            raise BadEventError(f"{subject(self.column)} is missing or null")
        return self.default


class JsonEvents:
    """Decodes events of one schema; a row is a msgspec struct with the fields f0, f1, … of columns
    and j0, j1, … of fields that are still JSON.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        walks = _walks(schema)
        walked = {walk.index for each in walks.values() for walk in each}
        plain = [(i, c) for i, c in enumerate(schema.columns) if i not in walked]
        names = {f"f{i}": column.name for i, column in plain}
        names |= {f"j{n}": field for n, field in enumerate(walks)}
        fields: list[Any] = [_field(f"f{i}", column) for i, column in plain]
        fields += [(f"j{n}", msgspec.Raw, _NOTHING) for n in range(len(walks))]
        self._row = msgspec.defstruct("Row", fields, rename=names, kw_only=True, gc=False)
        self._decoder = msgspec.json.Decoder(self._row)
        self._walks = [(f"j{n}", each) for n, each in enumerate(walks.values())]
        self.blank = self._row(**dict.fromkeys(names))

    def getter(self, column: int) -> Callable[[Any], Any]:
        return operator.attrgetter(f"f{column}")

    def walked(self, rows: list[Any]) -> tuple[dict[int, list[Any]], dict[int, str]]:
        """The values of the columns that are read from JSON, by column; and the rows of which one
        cannot be read, with the reason.
        """
        found = {w.index: [None] * len(rows) for _, walks in self._walks for w in walks}
        reasons: dict[int, str] = {}
        for number, row in enumerate(rows if found else ()):
            if row is not self.blank:
                try:
                    for name, walks in self._walks:
                        field = _json(getattr(row, name), walks)
                        for walk in walks:
                            found[walk.index][number] = walk.value(field)
                except BadEventError as error:
                    reasons[number] = str(error)
        return found, reasons

    def rows_of(self, body: bytes, lengths: NDArray[np.uint32]) -> list[Any] | None:
        """One row a line, or None if this body has to be taken line by line."""
        if not (_utf8(body) and _braced(body, lengths) and _shallow(body, lengths)):
            return None
        try:
            rows = self._decoder.decode_lines(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return rows if len(rows) == len(lengths) else None

    def row_of(self, line: bytes) -> Any:
        """The row of one event; raises BadEventError with the reason."""
        try:
            # The decoder skips fields that are not declared, so this checks them.
            if not line.isascii():
                line.decode()
            if too_deep(line):
                raise BadEventError(f"the event is nested more than {DEPTH_MAX} levels deep")
            return self._decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadEventError(reason_of(error, line, self.schema)) from error


def _walks(schema: Schema) -> dict[str, list[_Walk]]:
    """The columns that are read from JSON, by the field of the event that they stand in."""
    paths = [JsonPath.parse(c.path) if c.path else JsonPath((c.name,)) for c in schema.columns]
    shared = {path.field for path in paths if len(path.steps) > 1}
    shared |= {path.field for path in paths if [p.field for p in paths].count(path.field) > 1}
    found: dict[str, list[_Walk]] = {}
    for index, (column, path) in enumerate(zip(schema.columns, paths, strict=True)):
        if path.field in shared or column.path or column.format or not _plain(column.type):
            walk = _Walk(index, column, path, reader_of(column), default_of(column))
            found.setdefault(path.field, []).append(walk)
    return found


def _plain(type_: Type) -> bool:
    """Whether msgspec checks values of this type exactly."""
    return (type_.element if type_.name == "ARRAY" else type_).name in _PYTHON


def _json(raw: Any, walks: list[_Walk]) -> Any:
    """The value of a field that has stayed JSON."""
    if raw is _NOTHING:
        return None
    try:
        return decode_json(raw)
    except msgspec.ValidationError as error:
        raise BadEventError(
            f"{subject(walks[0].column)} is out of range: too many digits"
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadEventError(f"{subject(walks[0].column)} is not JSON: {error}") from error


def _field(name: str, column: Column) -> tuple[str, Any] | tuple[str, Any, None]:
    if column.nullable or column.default is not None:
        return name, Optional[_python_type(column.type)], None  # noqa: UP045
    return name, _python_type(column.type)


def _python_type(type_: Type) -> Any:
    if type_.name != "ARRAY":
        return _PYTHON[type_.name]
    return list.__class_getitem__(Optional[_PYTHON[type_.element.name]])  # noqa: UP045


def _utf8(body: bytes) -> bool:
    if body.isascii():
        return True
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _braced(body: bytes, lengths: NDArray[np.uint32]) -> bool:
    """Whether each line begins with { and ends with }."""
    ends = np.cumsum(lengths.astype(np.int64) + 1) - 1
    letters = np.frombuffer(body, np.uint8)
    opened = letters[ends - lengths] == ord("{")
    closed = letters[ends - 1] == ord("}")
    return bool(opened.all() and closed.all() and lengths.min() >= 2)


def _shallow(body: bytes, lengths: NDArray[np.uint32]) -> bool:
    """Whether no line is nested too deep; short lines cannot be."""
    if lengths.max() <= 2 * DEPTH_MAX:
        return True
    ends = np.cumsum(lengths.astype(np.int64) + 1) - 1
    long = lengths > 2 * DEPTH_MAX
    pairs = zip((ends - lengths)[long].tolist(), ends[long].tolist(), strict=True)
    return not any(too_deep(body[a:b]) for a, b in pairs)


def too_deep(line: bytes) -> bool:
    """
    >>> too_deep(b"[" * 200 + b"]" * 200), too_deep(b'"' + b"[" * 400 + b'"')
    (True, False)
    """
    if len(line) <= 2 * DEPTH_MAX or line.count(b"[") + line.count(b"{") <= DEPTH_MAX:
        return False
    structure = np.frombuffer(_QUOTED.sub(b"", line), np.uint8)
    return bool(np.cumsum(_STEPS[structure]).max(initial=0) > DEPTH_MAX)
