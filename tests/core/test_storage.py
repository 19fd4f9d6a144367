"""A decimal keeps its order as a text, and what SQLite holds comes back as it was."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.schema import Type
from headrace.core.storage import Storage, decimal_text, storage_of

SIZES = st.tuples(st.integers(1, 38), st.integers(0, 38)).filter(lambda size: size[1] <= size[0])


Drawn = tuple[tuple[int, int], list[Decimal]]


@st.composite
def decimals(draw: st.DrawFn) -> Drawn:
    precision, scale = draw(SIZES)
    units = st.integers(-(10**precision) + 1, 10**precision - 1)
    found = draw(st.lists(units, min_size=2, max_size=6))
    digits = [Decimal((n < 0, tuple(map(int, str(abs(n)))), -scale)) for n in found]
    return (precision, scale), digits


@given(decimals())
def test_a_decimal_is_a_text_of_the_same_order(
    drawn: tuple[tuple[int, int], list[Decimal]],
) -> None:
    size, numbers = drawn
    storage = Storage(Type.decimal_of(*size))
    texts = [decimal_text(number, *size) for number in numbers]
    assert [storage.read(text) for text in texts] == numbers
    assert sorted(texts) == [decimal_text(number, *size) for number in sorted(numbers)]


@pytest.mark.parametrize(
    ("type", "stored", "value"),
    [
        ("STRING", "ü", "ü"),
        ("BOOLEAN", 1, True),
        ("FLOAT", 0.5, 0.5),
        ("TIMESTAMP_NTZ", -1, -1),
        ("BINARY", b"\0\xff", b"\0\xff"),
        ("VARIANT", '{"a":1}', '{"a":1}'),
        ("ARRAY<BINARY>", '["AP8=",null]', [b"\0\xff", None]),
        ("MAP<INT, DECIMAL(4,2)>", '[{"k":1,"v":"-98.49"}]', [(1, Decimal("-1.50"))]),
        ("STRUCT<a: DOUBLE, `b c`: DATE>", '{"a":"NaN","b c":7}', {"a": math.nan, "b c": 7}),
    ],
)
def test_a_stored_value_is_read_as_what_it_was(type: str, stored: Any, value: Any) -> None:
    storage = storage_of(Type.of(type))
    assert storage is not None
    assert repr(storage.read(stored)) == repr(value)
    assert storage.read(None) is None


@pytest.mark.parametrize("type", ["ARRAY<VARIANT>", "MAP<STRUCT<a: INT>, INT>"])
def test_what_no_view_can_hold_has_no_storage(type: str) -> None:
    assert storage_of(Type.of(type)) is None
