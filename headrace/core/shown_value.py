"""A value as an answer shows it, wherever in an answer it stands.

JSON has neither times nor decimals nor bytes: they are texts, of ISO 8601, of all digits, of
base64. A VARIANT is the text of its JSON. tests/core/test_shown_value.py has one of each.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from headrace.core.schema import Type
from headrace.core.time import DAY, iso


def shown(type: Type, value: Any) -> Any:
    """A value, as core/storage.py reads it, in the form of JSON.

    >>> shown(Type("TIMESTAMP"), 0), shown(Type("DATE"), 1), shown(Type("BOOLEAN"), 1)
    ('1970-01-01T00:00:00Z', '1970-01-02', True)
    >>> from decimal import Decimal
    >>> shown(Type.parse("MAP<STRING, DECIMAL(4,2)>"), [("a", Decimal("1.50"))])
    {'a': '1.50'}
    """
    return None if value is None else writer(type)(value)


@lru_cache(maxsize=1_000)
def writer(type: Type) -> Callable[[Any], Any]:
    """What shows the values of a type that are not null."""
    match type.name:
        case "TIMESTAMP":
            return iso
        case "TIMESTAMP_NTZ":
            return lambda us: iso(us).removesuffix("Z")
        case "DATE":
            return lambda day: iso(day * DAY)[:10]
        case "BOOLEAN":
            return bool
        case "FLOAT" | "DOUBLE":
            return float
        case "DECIMAL":
            return lambda number: f"{number:f}"  # a JSON number would be read as a double
        case "BINARY":
            return lambda value: base64.b64encode(value).decode("ascii")
        case "ARRAY":
            return lambda items: [shown(type.element, item) for item in items]
        case "MAP":
            return lambda pairs: {_name(type.key, k): shown(type.element, v) for k, v in pairs}
        case "STRUCT":
            return lambda found: {f.name: shown(f.type, found[f.name]) for f in type.fields}
    return lambda value: value


def _name(type: Type, key: Any) -> str:
    """The key of a map as the name of a JSON object's field."""
    found = shown(type, key)
    return ("true" if found else "false") if isinstance(found, bool) else str(found)
