"""What a selection cannot say, and the sentence it gets."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.define.sigma.detection import detection_tree


def refusal(detection: Any) -> str:
    with pytest.raises(ValueError) as refused:
        detection_tree(detection, None)
    return str(refused.value)


@pytest.mark.parametrize(
    ("key", "said", "sentence"),
    [
        ("a|wide", "x", "the modifier 'wide' is not supported"),
        ("a|re|contains", "x", "the modifiers 're' and 'contains' cannot be combined"),
        ("a|i", "x", "the modifier 'i' requires 're'"),
        ("a|gt|cased", 1, "the modifier 'cased' cannot be combined with 'gt'"),
        ("a|contains", None, "'a' with 'contains' requires a string, not null"),
        ("a", {"b": 1}, "'a' with '=' requires a string, not a mapping"),
        ("a", [], "'a' has an empty list"),
        ("a|gt", "five", "'a' with 'gt' requires a number, not 'five'"),
        ("a", float("nan"), "'a' with '=' requires a number, not 'nan'"),
        ("a", 2**70, f"'a' is compared with {2**70}, which is out of range for BIGINT"),
        ("a|exists", "yes", "'a' with 'exists' requires true or false, not 'yes'"),
        ("a|cidr", "10.0.0.0/99", "'10.0.0.0/99' is not a network such as '10.0.0.0/8'"),
        (
            "a|cidr",
            "fe80::/10",
            "the IPv6 network 'fe80::/10' is not supported",
        ),
        (
            "a|re",
            "(x",
            "the regular expression '(x' is not valid: "
            "missing ), unterminated subpattern at position 0",
        ),
        ("a|re", "x{", "the regular expression 'x{' has '{', which Spark interprets differently"),
        (
            "a|re",
            "(?P<n>x)",
            "the regular expression '(?P<n>x)' has '(?P', which Spark interprets differently",
        ),
        (
            "a|re",
            "[a[b]",
            "the regular expression '[a[b]' has '[', which Spark interprets differently",
        ),
        ("|contains", "x", "the modifier 'contains' is not supported for keywords; only 'all' is"),
        ("|all", ["x"], "'x' is a keyword; name the column to search with --keywords"),
    ],
)
def test_a_value_that_is_not_understood_gets_a_sentence(key: str, said: Any, sentence: str) -> None:
    assert refusal({"s": {key: said}, "condition": "s"}) == sentence


@pytest.mark.parametrize(
    ("detection", "sentence"),
    [
        ([], "'detection' must be a mapping of selections and a 'condition'"),
        ({"s": {"a": 1}}, "detection has no condition"),
        ({"s": {}, "condition": "s"}, "the selection 's' is empty"),
        ({"s": [], "condition": "s"}, "the selection 's' is empty"),
        ({"s": None, "condition": "s"}, "the selection 's' is empty"),
        (
            {"s": {"a": 1}, "timeframe": "5m", "condition": "s"},
            "a timeframe is not supported; use the timespan of a correlation rule",
        ),
        (
            {"s": {"a": 1}, "condition": "s near s"},
            "the condition 's near s' has an unexpected 'near'",
        ),
        ({"s": {"a": 1}, "condition": "(s"}, "the condition '(s' is missing a ')'"),
        (
            {"s": {"a": 1}, "condition": "s and"},
            "the condition 's and' is missing the name of a selection",
        ),
        (
            {"s": {"a": 1}, "condition": "2 of s*"},
            "'2 of s*' is not supported; use '1 of' or 'all of'",
        ),
        (
            {"s": {"a": 1}, "condition": "1 of t*"},
            "'t*' in the condition is not a selection",
        ),
        (
            {"s": {"a": 1}, "condition": "not " * 200 + "s"},
            "the condition is nested more than 100 levels deep",
        ),
    ],
)
def test_a_detection_that_is_not_understood_gets_a_sentence(detection: Any, sentence: str) -> None:
    assert refusal(detection) == sentence
