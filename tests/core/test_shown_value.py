"""Each type as an answer shows it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from headrace.core.schema import Type
from headrace.core.shown_value import shown


@pytest.mark.parametrize(
    ("type", "value", "written"),
    [
        ("STRING", "ü", "ü"),
        ("TINYINT", -128, -128),
        ("FLOAT", 2, 2.0),
        ("DECIMAL(38,18)", Decimal("0.000000000000000001"), "0.000000000000000001"),
        ("TIMESTAMP", 1_500_000, "1970-01-01T00:00:01.500000Z"),
        ("TIMESTAMP_NTZ", 1_500_000, "1970-01-01T00:00:01.500000"),
        ("DATE", 1, "1970-01-02"),
        ("BINARY", b"hi", "aGk="),
        ("VARIANT", '{"a":1}', '{"a":1}'),
        ("ARRAY<STRUCT<a: DATE>>", [{"a": 0}, None], [{"a": "1970-01-01"}, None]),
        ("MAP<BOOLEAN, INT>", [(True, 1), (False, None)], {"true": 1, "false": None}),
        ("MAP<DATE, BINARY>", [(0, b"")], {"1970-01-01": ""}),
    ],
)
def test_a_value_is_shown_in_the_form_of_json(type: str, value: Any, written: Any) -> None:
    assert shown(Type.of(type), value) == written
    assert shown(Type.of(type), None) is None
