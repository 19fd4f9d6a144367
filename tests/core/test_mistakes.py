"""Mistakes are told at once, in the order in which they were met."""

from __future__ import annotations

import pytest

from headrace.core.errors import BadDefinition, HeadraceError, NoJava, Unsupported
from headrace.core.mistakes import Mistakes


def test_the_first_mistake_is_raised_with_the_others() -> None:
    inner, outer = Mistakes(), Mistakes()
    for message in ("one", "two"):
        with inner.noted():
            raise BadDefinition(message)
    with outer.noted():
        inner.end()
    for _ in range(2):  # the same mistake is told once
        with outer.noted():
            raise Unsupported("three")
    with pytest.raises(BadDefinition, match="one") as caught:
        outer.end()
    assert [error.message for error in caught.value.others] == ["two", "three"]
    assert [error.others for error in caught.value.others] == [(), ()]


def test_nothing_is_raised_where_nothing_is_wrong() -> None:
    mistakes = Mistakes()
    with mistakes.noted():
        pass
    mistakes.end()


def test_the_parts_that_are_wrong_are_known_by_name() -> None:
    mistakes = Mistakes()
    with mistakes.noted("a"):
        pass
    for name in ("b", "c"):
        with mistakes.noted(name):
            raise BadDefinition("the same mistake in two parts")
    assert mistakes.wrong == {"b", "c"}


def test_what_is_no_fault_of_the_user_is_raised_at_once() -> None:
    with pytest.raises(HeadraceError, match="no Java"), Mistakes().noted():
        raise NoJava("no Java was found")
