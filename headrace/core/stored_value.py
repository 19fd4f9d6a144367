"""A stored value as an answer shows it, wherever in an answer it stands."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from headrace.core.time import DAY, iso


def shown(type: str | None, value: Any) -> Any:
    """The value of a scalar type in readable form.

    >>> shown("TIMESTAMP", 0), shown("DATE", 1), shown("BOOLEAN", 1), shown("DOUBLE", 2)
    ('1970-01-01T00:00:00Z', '1970-01-02', True, 2.0)
    """
    if value is None:
        return None
    if type == "TIMESTAMP":
        return iso(value)
    if type == "DATE":
        return iso(value * DAY)[:10]
    if type == "BOOLEAN":
        return bool(value)
    if type == "DOUBLE":
        return float(value)
    if isinstance(value, Decimal):
        return f"{value:f}"  # as text: a JSON number would be read as a double
    return value
