"""What a correlation cannot say, and the sentence it gets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headrace.define.sigma.script import translate

BASE = "".join(
    f"title: B{n}\nname: b{n}\ndetection: {{s: {{a: {n}}}, condition: s}}\n---\n" for n in range(7)
)
COUNT = {"type": "event_count", "rules": ["b1"], "timespan": "1m", "condition": {"gte": 2}}
ORDER = {"type": "temporal", "rules": ["b1", "b2"], "timespan": "1m"}


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ([], "correlation must be a mapping"),
        (COUNT | {"rules": []}, "the correlation has no rules"),
        (COUNT | {"condition": None}, "the correlation has no condition such as 'gte: 10'"),
        (
            COUNT | {"condition": {"gte": 2, "gt": 1}},
            "the condition has both 'gte' and 'gt'",
        ),
        (
            COUNT | {"condition": {"gte": 0}},
            "the condition 'gte: 0' requires a count from 1 to 100,000",
        ),
        (
            COUNT | {"condition": {"gte": "many"}},
            "the condition 'gte: many' requires a whole number",
        ),
        (
            COUNT | {"type": "value_count"},
            "value_count requires exactly one 'field' in the condition",
        ),
        (
            COUNT | {"timespan": None},
            "the timespan 'None' is not a duration such as 30s, 5m, 1h, 7d or 2w",
        ),
        (
            COUNT | {"aliases": {"ip": "x"}},
            "aliases must map each name to rules and their fields",
        ),
        (
            COUNT | {"group-by": ["ip"], "aliases": {"ip": {"b3": "x"}}},
            "the alias 'ip' refers to 'b3', which is not in rules",
        ),
        (
            ORDER | {"condition": {"gte": 1}},
            "a temporal correlation with its own condition is not supported",
        ),
        (
            ORDER | {"rules": [f"b{n}" for n in range(7)]},
            "the correlation expects 7 rules in any order, which is supported for at most 6; use "
            "temporal_ordered, or split it",
        ),
    ],
)
def test_a_correlation_that_is_not_understood_gets_a_sentence(said: Any, reason: str) -> None:
    made = translate([("c.yml", f"{BASE}title: C\ncorrelation: {json.dumps(said)}")])
    [error] = made.errors
    assert error.message == f"Sigma rule 'C' is not translated: {reason}"
    assert str(error.origin) == "c.yml:29"


def test_all_six_in_any_order_and_seven_in_order_are_kept() -> None:
    for kind, many in (("temporal", 6), ("temporal_ordered", 7)):
        said = ORDER | {"type": kind, "rules": [f"b{n}" for n in range(many)]}
        made = translate([("c.yml", f"{BASE}title: C\ncorrelation: {json.dumps(said)}")])
        assert "c" in made.rules
        assert made.errors == ()
