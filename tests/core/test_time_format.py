"""Epochs digit by digit, patterns letter by letter, and the second opinion of the reference."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.core.time import FIRST, LAST, from_iso
from headrace.core.time_format import TimeFormat
from headrace.testing.time_formats import timestamp_us

EPOCHS = ["epoch_s", "epoch_ms", "epoch_us", "epoch_ns"]
PATTERNS = [
    "dd/MMM/yyyy:HH:mm:ss Z", "yyyy-MM-dd HH:mm:ss.SSSSSS", "EEE, d MMM yyyy hh:mm:ss a XXX",
    "yyyyMMddHHmmss", "EEEE d MMMM yyyy 'at' H'h'", "M/d/yyyy h:mm a",
    "uuuu-MM-dd'T'HH:mm:ss.SSSXX",
]  # fmt: skip


@pytest.mark.parametrize(
    ("format", "value", "us"),
    [
        ("epoch_s", 1, 1_000_000),
        ("epoch_s", "1.0000019", 1_000_001),
        ("epoch_s", "-0.0000001", -1),
        ("epoch_s", "1.7E9", 1_700_000_000_000_000),
        ("epoch_ms", "1767225600123.4567", 1_767_225_600_123_456),
        ("epoch_us", "-1", -1),
        ("epoch_ns", 1_999, 1),
        ("epoch_ns", -1, -1),
    ],
)
def test_an_epoch_is_cut_towards_the_past(format: str, value: int | str, us: int) -> None:
    assert TimeFormat.parse(format).read(value) == us


@given(st.sampled_from(EPOCHS), st.decimals(allow_nan=False, allow_infinity=False, places=12))
@example("epoch_s", Decimal("1763373600.1234569"))
def test_an_epoch_is_what_fractions_say(format: str, number: Decimal) -> None:
    text = f"{number:f}"
    expected = timestamp_us(text, format)
    if FIRST <= expected <= LAST:
        assert TimeFormat.parse(format).read(text) == expected
        return
    with pytest.raises((OverflowError, ValueError)):
        TimeFormat.parse(format).read(text)


@pytest.mark.parametrize("format", EPOCHS)
@pytest.mark.parametrize(
    "text", ["", "x", "1,5", "0x10", " 1", "1.", ".5", "+1", "1e999", "١", "NaN"]
)
def test_what_is_no_number_is_no_epoch(format: str, text: str) -> None:
    with pytest.raises(ValueError):
        TimeFormat.parse(format).read(text)


@pytest.mark.parametrize("us", [FIRST - 1, LAST + 1])
def test_a_time_beyond_the_years_is_an_overflow(us: int) -> None:
    assert TimeFormat.parse("epoch_us").read(max(FIRST, min(LAST, us))) in (FIRST, LAST)
    with pytest.raises(OverflowError):
        TimeFormat.parse("epoch_us").read(us)
    with pytest.raises(OverflowError):
        TimeFormat.parse("yyyy-MM-dd HH:mm XXX").read("0001-01-01 00:00 +01:00")


MOMENTS = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59))


@given(st.sampled_from(PATTERNS), MOMENTS)
def test_what_is_written_is_read_again_and_as_strptime_reads_it(
    pattern: str, time: datetime
) -> None:
    us = (time.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    format = TimeFormat.parse(pattern)
    text = format.write(us)
    assert format.write(format.read(text)) == text
    assert format.read(text) == timestamp_us(text, pattern)


@pytest.mark.parametrize(
    ("pattern", "text", "moment"),
    [
        ("dd/MMM/yyyy:HH:mm:ss Z", "17/NOV/2026:10:00:00 -0130", "2026-11-17T11:30:00Z"),
        ("d MMMM yy", "1 february 00", "2000-02-01T00:00:00Z"),
        ("yyyy-MM-dd hh:mm a", "2026-01-01 12:05 am", "2026-01-01T00:05:00Z"),
        ("yyyy-MM-dd hh:mm a", "2026-01-01 12:05 PM", "2026-01-01T12:05:00Z"),
        ("yyyy HH:mm:ss.SSSSSSSSS", "2026 00:00:00.1234567", "2026-01-01T00:00:00.123456Z"),
        ("yyyy.MM X", "2026.03 +02", "2026-02-28T22:00:00Z"),
        ("yyyy''MM", "2026'03", "2026-03-01T00:00:00Z"),
        ("yyyy-MM-dd'T'HH:mmx", None, None),
    ],
)  # fmt: skip
def test_a_pattern_reads(pattern: str, text: str | None, moment: str | None) -> None:
    if text is None or moment is None:
        with pytest.raises(ValueError, match="has 'x', which is not supported; use"):
            TimeFormat.parse(pattern)
        return
    assert TimeFormat.parse(pattern).read(text) == from_iso(moment)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd", "2026-02-30"),
        ("yyyy-MM-dd", "2026-2-03"),
        ("yyyy-MM-dd", "2026-02-03 "),
        ("yyyy-MM-dd", "0000-02-03"),
        ("yyyy-MM-dd", "２０２６-02-03"),
        ("yyyy-MM-dd HH", "2026-02-03 24"),
        ("yyyy-MM-dd hh a", "2026-02-03 13 pm"),
        ("yyyy-MM-dd hh a", "2026-02-03 00 am"),
        ("yyyy-MM-dd HH:mm:ss", "2026-12-31 23:59:60"),
        ("yyyy-MM-dd XXX", "2026-02-03 +19:00"),
        ("EEE yyyy-MM-dd", "Mon 2026-11-17"),
        ("dd MMM yyyy", "01 Mai 2026"),
        ("dd MMM yyyy", "01 January 2026"),
    ],
)
def test_what_is_not_in_the_pattern_is_refused(pattern: str, text: str) -> None:
    with pytest.raises(ValueError):
        TimeFormat.parse(pattern).read(text)


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("", "the format '' has no year; write yyyy, or epoch_s, epoch_ms …"),
        ("epoch", "the format 'epoch' has 'e', which is not supported; use yyyy, yy, MMMM"),
        ("yyyy-MM-dd z", "has 'z', which is not supported; use"),
        ("yyyyy", "has 'yyyyy', which is not supported; use"),
        ("DDD yyyy", "has 'DDD', which is not supported; use"),
        ("yyyy[-MM]", "the format 'yyyy[-MM]' has '[', which is not supported"),
        ("yyyy 'T", "the format 'yyyy 'T' has ''', which is not supported"),
        ("HH:mm", "the format 'HH:mm' has no year"),
        ("yyyy MM MMM", "the format 'yyyy MM MMM' has the month twice"),
        ("yyyy HH hh a", "the format 'yyyy HH hh a' has the hour twice"),
        ("yyyy hh", "the format 'yyyy hh' has hh without a, or a without hh; write HH"),
    ],
)
def test_a_pattern_of_other_letters_is_refused(pattern: str, sentence: str) -> None:
    with pytest.raises(ValueError, match="the format") as caught:
        TimeFormat.parse(pattern)
    assert sentence in str(caught.value)
