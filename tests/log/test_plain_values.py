"""One value of each kind on its way from Arrow to Python, in the calendar and outside of it."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from headrace.core.time import DAY, FIRST, LAST
from headrace.log.plain_values import plain, python_values

LATEST = datetime(9999, 12, 31, 23, 59, 59, 999_999)
TIME, LOCAL, DATE = pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32()
TIMES = pa.struct([("start", TIME), ("end", TIME)])
VALUES: list[tuple[pa.DataType, Any, Any]] = [
    (pa.string(), "ü", "ü"),
    (TIME, 1, datetime(1970, 1, 1, 0, 0, 0, 1, UTC)),
    (TIME, LAST + 1, LATEST.replace(tzinfo=UTC)),
    (TIME, FIRST - 1, datetime(1, 1, 1, tzinfo=UTC)),
    (LOCAL, 1, datetime(1970, 1, 1, 0, 0, 0, 1)),
    (LOCAL, LAST + 1, LATEST),
    (DATE, 1, date(1970, 1, 2)),
    (DATE, LAST // DAY + 1, date(9999, 12, 31)),
    (pa.list_(LOCAL), [LAST + 1, None], [LATEST, None]),
    (pa.map_(DATE, TIME), [(0, LAST + 1)], [(date(1970, 1, 1), LATEST.replace(tzinfo=UTC))]),
    (
        TIMES,
        {"start": 0, "end": LAST + 1},
        {"start": datetime(1970, 1, 1, tzinfo=UTC), "end": LATEST.replace(tzinfo=UTC)},
    ),
    (pa.list_(pa.struct([("n", pa.int64())])), [{"n": 1}, None], [{"n": 1}, None]),
]


@pytest.mark.parametrize(("type", "given", "expected"), VALUES)
def test_a_value_is_the_one_of_python(type: pa.DataType, given: Any, expected: Any) -> None:
    column = pa.array([given, None], plain(pa.array([], type)).type).cast(type)
    assert plain(column).to_pylist() == [given, None]
    assert python_values(column) == [expected, None]
    assert python_values(column.slice(1)) == [None]
