"""Which rows match: every way through the pattern, the most preferred first.

`next_steps` are the steps that may come next, in the order of preference, whatever the rows are;
`ways` tries them in that order, and continues from each. So the first way that comes out is the
match. There is no automaton and nothing is remembered: a way that fails is forgotten.

    A row after the last ripe one is asked for → MissingRow, and the attempt waits;
    but in a closed input, or when WITHIN is over by the watermark, there is no such row.
    The ways have taken and skipped more rows than the key has steps left → the attempt is given up.
tests/testing/test_matching.py checks each kind of pattern.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice, permutations

from headrace.testing.reference.casts import cast
from headrace.testing.reference.navigation import Expression, MatchContext, MatchedRow
from headrace.testing.reference.patterns import (
    ChoicePattern,
    EndAnchor,
    NotPattern,
    Pattern,
    PermutePattern,
    RepeatPattern,
    RowPattern,
    SequencePattern,
    StartAnchor,
)
from headrace.testing.reference.validation import takes
from headrace.testing.reference.values import Row

MATCHES_MAX = 1000  # of one start row, under SKIP TILL ANY


class MissingRow(Exception):
    """The search needs a row that may still arrive."""


class _GivenUp(Exception):
    """The ways have taken and skipped too many rows."""


@dataclass(frozen=True, slots=True)
class KeyRows:
    """The ripe rows of a key in order with their times. After them is nothing if `closed`; else
    there may be rows dated at `watermark_us` or later."""

    rows: tuple[Row, ...]
    times_us: tuple[int, ...]
    watermark_us: int | None = None
    closed: bool = False

    def at(self, number: int) -> Row | None:
        if 0 <= number < len(self.rows):
            return self.rows[number]
        if number >= 0 and not self.closed:
            raise MissingRow
        return None

    def before(self, limit_us: int | None, number: int) -> bool:
        """Whether there is a row of that number, dated before the limit if there is one."""
        if number < len(self.rows):
            return limit_us is None or self.times_us[number] < limit_us
        over = limit_us is not None and self.watermark_us is not None
        if self.closed or (over and self.watermark_us >= limit_us):  # type: ignore[operator]
            return False
        raise MissingRow


@dataclass(frozen=True, slots=True)
class SearchSpec:
    """What is searched for. `till` is "" if rows follow each other, else NEXT or ANY."""

    pattern: Pattern
    defined: Mapping[str, Expression] = field(default_factory=dict)
    within_us: int | None = None
    till: str = ""
    steps_max: int | None = None  # None: there is a bound anyway


@dataclass(frozen=True, slots=True)
class Loop:
    """A repetition after `count` rounds; before the last one so many rows had been taken."""

    repeat: RepeatPattern
    count: int = 0
    taken: int = 0


Todo = tuple[Pattern | Loop, ...]  # what is left of the pattern


@dataclass(frozen=True, slots=True)
class SearchStep:
    """What comes next: a row for `take`, or rows that are not `gap`'s, or (neither) the end.

    A step whose rows may be skipped can have both: then those must not be `gap`'s.
    """

    rest: Todo = ()
    take: RowPattern | None = None
    gap: str = ""


@dataclass(frozen=True, slots=True)
class SearchState:
    """The state of the search: the rows taken so far, and the number of the row that is next."""

    next: int
    taken: tuple[MatchedRow, ...] = ()


Found = tuple[MatchedRow, ...]


@dataclass
class StepBudget:
    """How many rows the ways of an attempt have taken and skipped, and how many they may."""

    most: int | None
    taken: int = 0
    given_up: bool = False

    def count(self) -> None:
        self.taken += 1
        if self.most is not None and self.taken > self.most:
            self.given_up = True
            raise _GivenUp


def find_matches(
    search: SearchSpec, rows: KeyRows, start: int, number: int, steps: StepBudget | None = None
) -> list[Found]:
    """The match that begins with a row, if there is one; with SKIP TILL ANY every one. If the
    attempt is given up, `steps` says so, and there is what was found before.
    """
    attempt = _Attempt(search, rows, start, number, steps or StepBudget(None))
    ways = attempt.ways((search.pattern,), SearchState(start))
    most = MATCHES_MAX if search.till == "ANY" else 1
    matches: list[Found] = []
    with suppress(_GivenUp):
        matches.extend(islice(_different(ways), most))
    return matches


def _different(ways: Iterator[Found]) -> Iterator[Found]:
    known = set[Found]()
    for way in ways:
        if way not in known:
            known.add(way)
            yield way


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The search from one start row, for the match of that number."""

    search: SearchSpec
    rows: KeyRows
    start: int
    number: int
    steps: StepBudget

    def ways(self, todo: Todo, place: SearchState) -> Iterator[Found]:
        for step in self.next_steps(todo, place):
            if step.take:
                for row in self._reached(step, todo, place):
                    taken = MatchedRow(row, step.take.variable, step.take.excluded)
                    yield from self.ways(step.rest, SearchState(row + 1, (*place.taken, taken)))
            elif step.gap:
                for row in self._gaps(step, place):
                    yield from self.ways(step.rest, replace(place, next=row))
            else:
                yield place.taken

    # What comes next

    def next_steps(self, todo: Todo, place: SearchState, gap: str = "") -> Iterator[SearchStep]:
        """The next steps, the most preferred first; `gap` is the NOT that was met on the way."""
        if not todo:
            yield SearchStep()
            return
        head, rest = todo[0], todo[1:]
        if isinstance(head, RowPattern):
            yield SearchStep(rest, head, gap)
        elif isinstance(head, NotPattern):
            yield from self._not(head, rest, place)
        elif self._holds_here(head, place):
            for parts in self._opened(head, place):
                yield from self.next_steps((*parts, *rest), place, gap)

    def _not(self, head: NotPattern, rest: Todo, place: SearchState) -> Iterator[SearchStep]:
        if self.search.till and any(map(_takes, rest)):
            yield from self.next_steps(rest, place, head.variable)
        else:
            yield SearchStep(rest, gap=head.variable)

    def _holds_here(self, head: Pattern | Loop, place: SearchState) -> bool:
        if isinstance(head, StartAnchor):
            return place.next == 0
        return not isinstance(head, EndAnchor) or not self.rows.before(None, place.next)

    def _opened(self, head: Pattern | Loop, place: SearchState) -> Iterator[Todo]:
        """What a part may stand for, in the order of preference."""
        if isinstance(head, SequencePattern):
            yield head.parts
        elif isinstance(head, ChoicePattern):
            yield from ((part,) for part in head.parts)
        elif (
            isinstance(head, PermutePattern)
            and not self.search.till
            and all(map(_plain, head.parts))
        ):
            # Orders that begin alike are one way as long as they do.
            for i, part in enumerate(head.parts):
                yield (part, PermutePattern((*head.parts[:i], *head.parts[i + 1 :])))
            yield from () if head.parts else ((),)
        elif isinstance(head, PermutePattern):
            yield from permutations(head.parts)
        elif isinstance(head, RepeatPattern):
            yield (Loop(head),)
        elif isinstance(head, Loop):
            yield from _rounds(head, len(place.taken))
        else:
            yield ()

    # Which rows

    def _reached(self, step: SearchStep, todo: Todo, place: SearchState) -> Iterator[int]:
        """The rows that the step may take, the next one first."""
        number, limit_us = place.next, self._limit_us()
        while self.rows.before(limit_us, number):
            if step.take and self._is(step.take.variable, number, place):
                self.steps.count()
                yield number
            if not self._passed(step, todo, replace(place, next=number)):
                return
            self.steps.count()
            number += 1

    def _passed(self, step: SearchStep, todo: Todo, place: SearchState) -> bool:
        """Whether the next row may be skipped in this state."""
        if not place.taken or not self.search.till:
            return False
        if self.search.till == "NEXT" and self._wanted(todo, place):
            return False
        return not step.gap or not self._is(step.gap, place.next, place)

    def _wanted(self, todo: Todo, place: SearchState) -> bool:
        """Whether any step that could come next can take the next row."""
        steps = self.next_steps(todo, place)
        return any(s.take and self._is(s.take.variable, place.next, place) for s in steps)

    def _gaps(self, step: SearchStep, place: SearchState) -> Iterator[int]:
        """Where the search may continue after rows that are not the variable's, the nearest first.

        At the end of the pattern it is only after all of them, which must not be the variable's.
        """
        number, limit_us, more = place.next, self._limit_us(), any(map(_takes, step.rest))
        if more:
            yield number
        while self.rows.before(limit_us, number):
            if self._is(step.gap, number, place):
                return
            self.steps.count()
            number += 1
            if more:
                yield number
        if not more:
            yield number

    def _limit_us(self) -> int | None:
        within_us = self.search.within_us
        return None if within_us is None else self.rows.times_us[self.start] + within_us

    def _is(self, variable: str, number: int, place: SearchState) -> bool:
        """Whether the row, if the variable took it now, would be as it is defined."""
        defined = self.search.defined.get(variable)
        if defined is None:
            return True
        taken = (*place.taken, MatchedRow(number, variable))
        return (
            cast(defined.value(MatchContext(taken, taken, self.rows.at, self.number)), "BOOLEAN")
            is True
        )


def _plain(part: Pattern) -> bool:
    return isinstance(part, RowPattern) or (
        isinstance(part, SequencePattern) and all(map(_plain, part.parts))
    )


def _takes(part: Pattern | Loop) -> bool:
    if not isinstance(part, Loop):
        return takes(part)
    return part.count != part.repeat.high and takes(part.repeat.part)


def _rounds(loop: Loop, taken: int) -> Iterator[Todo]:
    """One more round, or no more: which is preferred is what the quantifier says."""
    once_more = (loop.repeat.part, Loop(loop.repeat, loop.count + 1, taken))
    if loop.count < loop.repeat.low:
        yield once_more
        return
    idle = loop.count > loop.repeat.low and loop.taken == taken
    if loop.count == loop.repeat.high or idle:
        yield ()
        return
    yield from ((), once_more) if loop.repeat.reluctant else (once_more, ())
