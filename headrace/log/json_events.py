"""JSON events -> rows, by one msgspec decoder made from the schema.

An event means the same whatever its neighbours are, and whoever reads it. `rows_of` decodes a whole
body at once only when each line opens and closes with a brace and yields exactly one row: a value
that ran over a line's end would meet a raw newline in a string, or a brace where JSON has none.
Fields that are not declared are ignored; of a key that comes twice the last value counts, though
each is checked.
tests/log/test_decode.py has the table of cases; tests/log/test_poison.py the hostile ones.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Annotated, Any, Optional

import msgspec
import numpy as np
from numpy.typing import NDArray

from headrace.core.schema import Column, Schema, Type
from headrace.log.refusals import BadEventError, reason_of

# Python's own bound on recursion depends on who calls; this one does not, so all readers agree.
DEPTH_MAX = 128
_QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_STEPS = np.zeros(256, np.int64)
_STEPS[list(b"[{")] = 1
_STEPS[list(b"]}")] = -1
_INT32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_INT64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_PYTHON: dict[str, Any] = {
    "STRING": str,
    "BOOLEAN": bool,
    "INT": _INT32,
    "BIGINT": _INT64,
    "DOUBLE": float,
    "TIMESTAMP": str,
    "DATE": str,
}


class JsonEvents:
    """Decodes events of one schema; a row is a msgspec struct with the fields f0, f1, …"""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        names = {f"f{i}": column.name for i, column in enumerate(schema.columns)}
        self._row = msgspec.defstruct(
            "Row", [_field(f"f{i}", c) for i, c in enumerate(schema.columns)],
            rename=names, kw_only=True, gc=False,
        )  # fmt: skip
        self._decoder = msgspec.json.Decoder(self._row)
        self.blank = self._row(**dict.fromkeys(names))

    def getter(self, column: int) -> Callable[[Any], Any]:
        return operator.attrgetter(f"f{column}")

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
            # The decoder does not look into fields that are not declared, so this does.
            if not line.isascii():
                line.decode()
            if too_deep(line):
                raise BadEventError(f"nested deeper than {DEPTH_MAX} levels")
            return self._decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadEventError(reason_of(error, line, self.schema)) from error


def _field(name: str, column: Column) -> tuple[str, Any] | tuple[str, Any, None]:
    if column.nullable:
        return name, Optional[_python_type(column.type)], None  # noqa: UP045
    return name, _python_type(column.type)


def _python_type(type_: Type) -> Any:
    scalar = _PYTHON[type_.name]
    return list.__class_getitem__(Optional[scalar]) if type_.array else scalar  # noqa: UP045


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
