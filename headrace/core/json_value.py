"""Values that JSON does not have, as answers write them.

Timestamps are ISO 8601 in UTC, and NaN or infinity is null. All JSON answers are written with these
functions, so that a value is the same whatever its source. tests/run/test_stream_source_spark.py
compares a stream's rows as Spark gives them with those read from the log.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime


def timestamp(value: datetime) -> str:
    """A timestamp in UTC as ISO 8601.

    >>> from datetime import timedelta, timezone
    >>> timestamp(datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))))
    '2026-01-01T00:00:00Z'
    """
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def number(value: float) -> float | None:
    """A number; None for NaN and infinity, which JSON does not have.

    >>> number(0.5), number(float("nan"))
    (0.5, None)
    """
    return value if math.isfinite(value) else None
