"""`_raw` in DuckDB: the bytes of an event as one JSON text, read as Spark's parse_json reads them.

The last of duplicate names counts, where DuckDB takes the first; a number without an exponent is
exact up to 38 digits, and any other is a DOUBLE. tests/audit/test_raw_json.py compares it with
Spark.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import msgspec

NAME = "_headrace_raw_json"
_DIGITS_MAX = 38
_encode = msgspec.json.Encoder(decimal_format="number").encode


def raw_json(raw: bytes) -> str | None:
    """
    >>> raw_json(b'{"a": 1, "a": 2.50, "b": 1e400}'), raw_json(b"not json")
    ('{"a":2.5,"b":"Infinity"}', None)
    """
    try:
        found = json.loads(raw, parse_int=_number, parse_float=_number, parse_constant=_refused)
        return _encode(found).decode()
    except ValueError:
        return None


def register_raw_json(connection: Any) -> None:
    connection.create_function(NAME, raw_json, ["BLOB"], "VARCHAR", null_handling="special")


def _number(text: str) -> Decimal | float | str:
    if "e" in text.lower() or sum(map(str.isdigit, text)) > _DIGITS_MAX:
        number = float(text)
        return number if math.isfinite(number) else str(number).replace("inf", "Infinity")
    return Decimal(f"{Decimal(text).normalize():f}")


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")
