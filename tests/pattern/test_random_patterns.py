"""Patterns by chance, each over rows by chance: the matcher finds what the oracle says. 2,000 of
them, 50,000 in `make prove`.

Each is also searched in rounds with growing watermarks, through stored states: after each round
there is given out what is decided then, neither less nor more.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
import pytest
from chance import PROVE, examples
from chance import SEED as DRAWN

from headrace.core.pattern import Pattern
from headrace.pattern.matcher import Matcher
from tests.pattern.chance import pattern_by, rows_by
from tests.pattern.oracle import Oracle, Row

# A drawn pattern may take exponential time, in the oracle or in the search: neither has a bound.
SEED = DRAWN if PROVE else 20240607
GROUPS, CASES = 20, examples(100, 2_500)


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("group", range(GROUPS))
def test_matcher_finds_what_the_oracle_says(
    group: int, record_property: Callable[[str, object], None]
) -> None:
    record_property("patterns", CASES)
    for case in range(CASES):
        name = f"{SEED}/{group}/{case}"
        chance = Random(name)
        pattern, rows = pattern_by(chance), rows_by(chance)
        told = f"case {name}\n{pattern}\n{rows}"
        assert whole(pattern, rows) == Oracle(pattern, rows, None, True).results(), told
        check_rounds(chance, pattern, rows, told)


def whole(pattern: Pattern, rows: list[Row]) -> list[Any]:
    search = Matcher(pattern).begin()
    search.take(rows)
    return results(search.matches(None, True))


def check_rounds(chance: Random, pattern: Pattern, rows: list[Row], told: str) -> None:
    matcher, state, given, before = Matcher(pattern), None, [], 0
    for mark in sorted(chance.sample(range(1, 30), 3)):
        search = matcher.resume(state)
        ripe = [row for row in rows if row[0] < mark]
        if search.due_us() is not None and len(ripe) == before:
            assert search.due_us() <= mark or not search.matches(mark, False), told
        search.take(ripe[before:])
        given += results(search.matches(mark, False))
        before = len(ripe)
        expected = Oracle(pattern, ripe, mark, False).results()
        assert given == expected, f"mark {mark} of {told}"
        state = msgspec.msgpack.decode(msgspec.msgpack.encode(search.state()))
    search = matcher.resume(state)
    search.take(rows[before:])
    given += results(search.matches(None, True))
    assert given == Oracle(pattern, rows, None, True).results(), f"last round of {told}"


def results(given: list[Any]) -> list[Any]:
    return [(each.row[1], each.measures, each.last_us) for each in given]
