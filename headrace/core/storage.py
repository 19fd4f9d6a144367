"""How a value of any type is kept in the store, and comes back as it was.

For values a and b of one type, with `sql` the form in which Spark writes them:
  read(sql(a)) = a;
  key_sql(a) = key_sql(b) exactly where Spark's GROUP BY takes them for one value;
  if the storage is `ordered`, sql(a) < sql(b) exactly where a < b, so the store compares natively.
A number is a number, a time its microseconds, a date its days. A DECIMAL is a text of one width,
because the store has no decimals: 1.50 of DECIMAL(4,2) is '01.50', and -1.50 is '-98.49', its
digits turned round. A list or an object is the JSON of its parts, each in its own form; a map is
the list of its entries in the order of keys, and NaN within them a text.
tests/core/test_storage.py checks the laws, tests/spark/test_storage.py that Spark writes this.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from headrace.core.schema import Type

Stored = int | float | str | bytes
NAN = "NaN"  # within JSON
_TURNED = str.maketrans("0123456789", "9876543210")
_COLUMNS = {
    "STRING": "TEXT", "BOOLEAN": "INTEGER", "TINYINT": "INTEGER", "SMALLINT": "INTEGER",
    "INT": "INTEGER", "BIGINT": "INTEGER", "FLOAT": "REAL", "DOUBLE": "REAL",
    "TIMESTAMP": "INTEGER", "TIMESTAMP_NTZ": "INTEGER", "DATE": "INTEGER", "DECIMAL": "TEXT",
    "BINARY": "BLOB", "VARIANT": "TEXT", "ARRAY": "TEXT", "MAP": "TEXT", "STRUCT": "TEXT",
}  # fmt: skip
_FORMS = {
    "BOOLEAN": "cast({} as int)",
    "FLOAT": "cast({} as double)",
    "TIMESTAMP": "unix_micros({})",
    "TIMESTAMP_NTZ": "unix_micros(cast({} as timestamp))",
    "DATE": "unix_date({})",
    "VARIANT": "to_json({})",
}
_FLOATS = ("FLOAT", "DOUBLE")


@dataclass(frozen=True, slots=True)
class Storage:
    """How the values of one type are kept."""

    type: Type

    @property
    def column(self) -> str:
        """The store's type of a column of them."""
        return _COLUMNS[self.type.name]

    @property
    def ordered(self) -> bool:
        """Whether stored values compare as the values do."""
        return not (self.type.nested or self.type.name == "VARIANT")

    @property
    def groups(self) -> bool:
        """Whether two values can be compared for equality."""
        return not self.type.has("VARIANT")

    def sql(self, x: str) -> str:
        """Spark SQL of the stored value."""
        return self._written(x, self.part(x))

    def key_sql(self, x: str) -> str:
        """Spark SQL of the stored value, in which equal values are equal."""
        return self._written(x, self.key_part(x))

    def _written(self, x: str, part: str) -> str:
        return f"to_json({part}, map('ignoreNullFields', 'false'))" if self.type.nested else part

    def part(self, x: str) -> str:
        """Spark SQL of the value as a part of JSON."""
        return _part(self.type, x, 0, equal=False)

    def key_part(self, x: str) -> str:
        return _part(self.type, x, 0, equal=True)

    def read(self, stored: Stored | None) -> Any:
        """The value of a stored one, as Arrow takes it: a time is its microseconds, a map a list of
        pairs.
        """
        if stored is None:
            return None
        return _reader(self.type)(json.loads(stored) if self.type.nested else stored)  # type: ignore[arg-type]

    def read_part(self, part: Any) -> Any:
        """The value of a part of JSON."""
        if self.type.name == "BINARY" and part is not None:
            return base64.b64decode(part)
        return None if part is None else _reader(self.type)(part)


@lru_cache(maxsize=1_000)
def storage_of(type: Type) -> Storage | None:
    """None if no view can hold values of the type."""
    return Storage(type) if _kept(type) else None


def _kept(type: Type) -> bool:
    if any(field.type.name == "VARIANT" or not _kept(field.type) for field in type.fields):
        return False
    # A map is shown as a JSON object, whose keys are texts.
    return type.name in _COLUMNS and not (type.name == "MAP" and type.key.nested)


def decimal_text(number: Decimal, precision: int, scale: int) -> str:
    """A decimal as it is kept.

    >>> decimal_text(Decimal("1.50"), 4, 2), decimal_text(Decimal("-1.50"), 4, 2)
    ('01.50', '-98.49')
    """
    places = max(precision - scale, 1)
    digits = f"{number.copy_abs():0{places + scale + bool(scale)}.{scale}f}"
    return "-" + digits.translate(_TURNED) if number < 0 else digits


def _decimal(text: str) -> Decimal:
    # Not by a minus, which would round to the context's digits.
    turned = text.startswith("-")
    return Decimal(text[1:].translate(_TURNED)).copy_negate() if turned else Decimal(text)


def _decimal_sql(x: str, precision: int, scale: int) -> str:
    # With its sign, because Spark's abs rounds to 34 digits.
    digits = "0" * max(precision - scale, 1) + ("." + "0" * scale if scale else "")
    text = f"to_char({x}, 'S{digits}')"
    turned = f"translate({text}, '0123456789', '9876543210')"
    return f"CASE WHEN {x} < 0 THEN {turned} ELSE substring({text}, 2) END"


def _part(type: Type, x: str, depth: int, *, equal: bool) -> str:
    """SQL of a part of JSON; in `equal` ones, -0.0 is 0.0."""
    if type.name == "DECIMAL" and type.size:
        return _decimal_sql(x, *type.size)
    if type.nested and not _as_it_is(type, equal=equal):
        return _nested(type, x, depth, equal=equal)
    form = _FORMS.get(type.name, "({})" if " " in x else "{}").format(x)
    return f"({form} + 0.0D)" if equal and type.name in _FLOATS else form


def _as_it_is(type: Type, *, equal: bool) -> bool:
    """Whether Spark's own JSON of a value is the form in which it is kept."""
    formed = {*_FORMS, "DECIMAL", "MAP", *(_FLOATS if equal else ())}
    return not type.has(*formed)


def _nested(type: Type, x: str, depth: int, *, equal: bool) -> str:
    v = f"v{depth}"

    def part(of: Type, sql: str) -> str:
        return _part(of, sql, depth + 1, equal=equal)

    match type.name:
        case "ARRAY":
            return f"transform({x}, {v} -> {part(type.element, v)})"
        case "MAP":
            key, value = part(type.key, f"{v}.key"), part(type.element, f"{v}.value")
            entry = f"named_struct('k', {key}, 'v', {value})"
            before, after = f"l{depth}", f"r{depth}"
            order = f"CASE WHEN {before}.k < {after}.k THEN -1 ELSE 1 END"
            entries = f"transform(map_entries({x}), {v} -> {entry})"
            return f"array_sort({entries}, ({before}, {after}) -> {order})"
    fields = (f"{text_sql(f.name)}, {part(f.type, f'{v}.{_quoted(f.name)}')}" for f in type.fields)
    made = f"CASE WHEN {v} IS NOT NULL THEN named_struct({', '.join(fields)}) END"
    # An array of one, so that the object is computed once however many fields it has.
    return f"transform(array({x}), {v} -> {made})[0]"


def text_sql(text: str) -> str:
    """A text as a literal of Spark's."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@lru_cache(maxsize=1_000)
def _reader(type: Type) -> Callable[[Any], Any]:
    """What makes a value of a part of JSON that is not null."""
    match type.name:
        case "DECIMAL":
            return _decimal
        case "BOOLEAN":
            return bool
        case "FLOAT" | "DOUBLE":
            return float
        case "ARRAY":
            element = Storage(type.element).read_part
            return lambda items: [element(item) for item in items]
        case "MAP":
            key, value = Storage(type.key).read_part, Storage(type.element).read_part
            return lambda entries: [(key(entry["k"]), value(entry["v"])) for entry in entries]
        case "STRUCT":
            fields = [(field.name, Storage(field.type).read_part) for field in type.fields]
            return lambda found: {name: read(found[name]) for name, read in fields}
    return lambda value: value
