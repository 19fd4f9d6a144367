"""The law of headrace/log/columns.py: a value means the same in any column."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.schema import Type
from headrace.core.time import from_iso
from headrace.log.columns import convert, unconvertible

TIMESTAMP, DATE = Type("TIMESTAMP"), Type("DATE")
NEW_YEAR = from_iso("2026-01-01T00:00:00Z")

TIMES = {
    "2026-01-01T00:00:00Z": 0,
    "2026-01-01 00:00:00Z": 0,
    "2026-01-01T00:00:00": 0,
    "2026-01-01 00:00:00": 0,
    "2026-01-01T00:00": 0,
    "2026-01-01T01:00:00+01:00": 0,
    "2025-12-31T22:30:00-01:30": 0,
    "2026-01-01 01:00:00+01": 0,
    "2026-01-01T00:00:00.5Z": 500_000,
    "2026-01-01T00:00:00.123456": 123_456,
    "2026-01-01T00:00:00.1234567": 123_456,
    "2026-01-01T00:00:00.123456789Z": 123_456,
    "2026-01-01T01:00:00.99999999+01:00": 999_999,
}
NOT_TIMES = [
    "", "soon", "2026-01-01", "2026-02-30T00:00:00Z", "2026-01-01T24:00:00Z", "1767225600",
    "2026-01-01T00:00:00.1234567890Z", "2026-01-01T00:00:00.Z", " 2026-01-01T00:00:00Z",
    "0000-12-31T23:59:59Z", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00",
    "2026-01-01T00:00:00+25:00", "2026-01-01T00:00:00Z\n", "2026-01-01T00:00:00Zulu",
    "2026-01-01Z", "2026-01-01+01:00", "1900-02-29T00:00:00", "20260101T000000Z",
]  # fmt: skip


def alone(text: str) -> int | None:
    """What the text means by itself, in microseconds; None if it is refused."""
    try:
        return convert(TIMESTAMP, [text]).view(pa.int64())[0].as_py()
    except pa.ArrowInvalid:
        return None


@pytest.mark.parametrize(("text", "after_us"), TIMES.items())
def test_a_time_is_read(text: str, after_us: int) -> None:
    assert alone(text) == NEW_YEAR + after_us


@pytest.mark.parametrize("text", NOT_TIMES)
def test_what_is_not_a_time_is_refused(text: str) -> None:
    assert alone(text) is None


SOME_TIMES = st.lists(
    st.sampled_from([*TIMES, *NOT_TIMES]) | st.none() | st.text("0123456789-:.TZ +", max_size=30)
)


@given(SOME_TIMES)
def test_a_column_of_times_means_what_they_mean_alone(texts: list[str | None]) -> None:
    bad = unconvertible(TIMESTAMP, texts)
    assert bad == [i for i, text in enumerate(texts) if text is not None and alone(text) is None]
    good = [text for i, text in enumerate(texts) if i not in bad]
    numbers = convert(TIMESTAMP, good).view(pa.int64()).to_pylist()
    assert numbers == [None if text is None else alone(text) for text in good]


def test_times_in_arrays_are_read_and_refused_as_a_whole() -> None:
    array = Type.array_of(Type("TIMESTAMP"))
    values = [["2026-01-01T00:00:00Z", None], None, [], ["2026-01-01T00:00:00"]]
    numbers = convert(array, values).cast(pa.list_(pa.int64())).to_pylist()
    assert numbers == [[NEW_YEAR, None], None, [], [NEW_YEAR]]
    assert unconvertible(array, [*values, ["soon"], ["2026-01-01T00:00:00Z", "x"]]) == [4, 5]


def test_dates_are_read() -> None:
    texts = ["2026-01-31", None, "2024-02-29", "2026-1-1", "2026-02-29", "0000-01-01", "20260101"]
    assert unconvertible(DATE, texts) == [3, 4, 5, 6]
    assert [str(day) for day in convert(DATE, texts[:3])] == ["2026-01-31", "None", "2024-02-29"]
