"""Paths into an event: how they are written, what they find, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.json_path import JsonPath

STEPS = st.tuples(st.text(min_size=1, max_size=6)).flatmap(
    lambda first: st.lists(st.text(max_size=6) | st.integers(0, 99), max_size=4).map(
        lambda rest: (*first, *rest)
    )
)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("$.a", ("a",)),
        ("$.actor.id", ("actor", "id")),
        ("$.user-agent", ("user-agent",)),
        ("$.items[0].price", ("items", 0, "price")),
        ('$."first name".x', ("first name", "x")),
        ("$['a.b']['c']", ("a.b", "c")),
        ('$["a\\"b"][12]', ('a"b', 12)),
        ("$.größe", ("größe",)),
    ],
)
def test_a_path_is_read(text: str, steps: tuple[str | int, ...]) -> None:
    assert JsonPath.parse(text).steps == steps


@given(STEPS)
def test_a_path_survives_being_written(steps: tuple[str | int, ...]) -> None:
    assert JsonPath.parse(str(JsonPath(steps))).steps == steps


@given(STEPS, st.integers())
def test_a_path_finds_what_was_put_there(steps: tuple[str | int, ...], value: int) -> None:
    event: dict[str, Any] = {}
    path = JsonPath(steps)
    path.put(event, value)
    assert path.within(event[path.field]) == value


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the path '' does not begin with '$'"),
        ("a.b", "the path 'a.b' does not begin with '$'"),
        ("$", "the path '$' does not begin with a field, such as '$.name'"),
        ("$[0]", "the path '$[0]' does not begin with a field, such as '$.name'"),
        ("$.a.b.*", "the path '$.a.b.*' is not valid at '.*'"),
        ("$..a", "the path '$..a' is not valid at '..a'"),
        ("$.a[-1]", "the path '$.a[-1]' is not valid at '[-1]'"),
        ('$.a["b', "the path '$.a[\"b' is not valid at '[\"b'"),
        ('$."b"]', "the path '$.\"b\"]' is not valid at '.\"b\"]'"),
        ("$" + ".a" * 33, "has more than 32 steps"),
    ],
)
def test_what_is_not_a_path_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match="the path") as caught:
        JsonPath.parse(text)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("value", [None, 5, "text", [], {}, {"b": 1}, [[1]]])
def test_a_step_that_finds_nothing_gives_nothing(value: Any) -> None:
    assert JsonPath.parse("$.a.x[0]").within(value) is None
