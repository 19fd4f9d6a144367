"""Values as a person reads them."""

from __future__ import annotations

import pytest

from headrace.api.resources.balance import Balance
from headrace.client import formats


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [
        ("2026-11-15T23:00:00Z", "2026-11-16T00:00:00Z", "2026-11-15 23:00 – 2026-11-16 00:00"),
        ("2026-11-15T19:00:10Z", "2026-11-15T19:00:20Z", "2026-11-15 19:00:10 – 19:00:20"),
        ("2026-11-15T19:00:00Z", "2026-11-15T19:00:00.250000Z", "2026-11-15 19:00 – 19:00:00.25"),
    ],
)
def test_a_window_says_no_more_than_it_must(start: str, end: str, text: str) -> None:
    assert formats.window({"start": start, "end": end}) == text


@pytest.mark.parametrize(
    ("value", "type", "text"),
    [
        (7, "BIGINT", "7"),
        (0.0, "DOUBLE", "0.0"),
        (1234567.8916, "DOUBLE", "1234567.892"),
        (-0.5, "DOUBLE", "-0.5"),
        ("2026-11-15T19:00:03Z", "TIMESTAMP", "2026-11-15 19:00:03"),
        ("2026-11-15T19:00:03Z", "timestamp", "2026-11-15 19:00:03"),
        ("2026-11-15", "DATE", "2026-11-15"),
        ({"id": "a", "tags": {"plan": "pro"}}, "STRUCT", "id a, tags (plan pro)"),
        ("2026-11-15T19:00:03Z", "STRING", "2026-11-15T19:00:03Z"),
        (["a", None], "STRING", "a, null"),
        ({"start": None, "end": None}, "WINDOW", "start null, end null"),
    ],
)
def test_a_cell_is_shown_by_its_type(value: object, type: str, text: str) -> None:
    assert formats.cell(value, type) == text


def test_a_balance_that_is_off_says_by_how_much() -> None:
    assert formats.balance_equation(Balance(10, 5, 1, 1, 1)).endswith("(off by 2)")


@pytest.mark.parametrize(("ms", "text"), [(7_200_000, "2.0 h old"), (200_000_000, "2.3 days old")])
def test_an_old_answer_has_a_larger_unit(ms: int, text: str) -> None:
    assert formats.age(ms) == text
