"""Values that JSON does not have, as answers write them.

Moments are ISO 8601 in UTC, and NaN or infinity is null. Whoever answers in JSON writes with these,
so that a value looks the same wherever it comes from. tests/run/test_following_spark.py compares a
stream's rows as Spark gives them with those read from the log.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime


def moment(value: datetime) -> str:
    """A moment in UTC.

    >>> from datetime import timedelta, timezone
    >>> moment(datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))))
    '2026-01-01T00:00:00Z'
    """
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def number(value: float) -> float | None:
    """A number, or null for what is none.

    >>> number(0.5), number(float("nan"))
    (0.5, None)
    """
    return value if math.isfinite(value) else None
