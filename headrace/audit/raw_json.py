"""`_raw` in DuckDB: the bytes of an event as one JSON text, read as Spark's parse_json reads them.

The last of duplicate names counts, where DuckDB takes the first. A number without an exponent is
exact up to 38 digits and any other is a DOUBLE; one that DuckDB's JSON would round is a string, of
which a cast makes the same value. What Spark cannot read is NULL. tests/audit/test_raw_json.py
compares it with Spark.
"""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec

NAME = "_headrace_raw_json"
# What Spark's parse_json takes.
_NUMBER_CHARS_MAX, _NAME_CHARS_MAX, _DECIMAL_DIGITS_MAX = 1_000, 50_000, 38
_DOUBLE_DIGITS = 15  # that every DOUBLE keeps


def raw_json(raw: bytes) -> str | None:
    """
    >>> raw_json(b'{"a": 1, "a": 2.50, "b": 1e400}'), raw_json(b"not json")
    ('{"a":2.5,"b":"Infinity"}', None)
    """
    try:
        found = json.loads(
            raw,
            object_pairs_hook=_object,
            parse_int=_number,
            parse_float=_number,
            parse_constant=_refused,
        )
        return msgspec.json.encode(found).decode()
    except ValueError:
        return None


def register_raw_json(connection: Any) -> None:
    connection.create_function(NAME, raw_json, ["BLOB"], "VARCHAR", null_handling="special")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if any(len(name) > _NAME_CHARS_MAX for name, _ in pairs):
        raise ValueError("a name is too long")
    return dict(pairs)


def _number(text: str) -> Any:
    if len(text) > _NUMBER_CHARS_MAX:
        raise ValueError("a number is too long")
    digits = sum(map(str.isdigit, text))
    if "e" in text.lower() or digits > _DECIMAL_DIGITS_MAX:
        number = float(text)
        return number if math.isfinite(number) else str(number).replace("inf", "Infinity")
    plain = text.rstrip("0").rstrip(".") if "." in text else text
    plain = "0" if plain == "-0" else plain
    return msgspec.Raw(plain) if digits <= _DOUBLE_DIGITS else plain


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")
