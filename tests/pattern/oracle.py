"""What a pattern means, by enumeration: all ways through it, in order of preference, lazily.

Each node is walked with what follows it (`then`); a way is yielded when nothing follows. It
has no program and remembers nothing, and it shares no code with headrace/pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

from headrace.core.pattern import (
    Absent,
    Choice,
    Classifier,
    End,
    Exclude,
    Expression,
    FunctionCall,
    Literal,
    MatchAggregate,
    MatchId,
    MatchNumber,
    Node,
    Pattern,
    Permute,
    Repeat,
    RowNavigation,
    RowsPerMatch,
    Selection,
    Sequence,
    Start,
    Value,
    Variable,
)

Row = tuple[int, Any, tuple[Any, ...]]


class NotKnown(Exception):
    """A row was asked for that is not ripe."""


class TooMany(Exception):
    """The ways of an attempt take and skip more rows than are left to the key."""


@dataclass(frozen=True)
class Way:
    """Where one stands: the next row, (row, variable, excluded) of all taken, what follows the last
    of them, and a NOT since then. With `probe`, variables are noted instead of being asked.
    """

    at: int
    path: tuple[tuple[int, str, bool], ...] = ()
    since: Then | None = None
    absent: str | None = None
    probe: set[str] | None = None


Then = Callable[[Way], Iterator[Way]]


class Oracle:
    """The decided results of a key's ripe rows, as of a watermark."""

    def __init__(self, pattern: Pattern, rows: list[Row], mark: int | None, ended: bool) -> None:
        self.pattern, self.rows, self.mark, self.ended = pattern, rows, mark, ended
        self.conditions = dict(pattern.conditions)
        self.subsets = dict(pattern.subsets)
        self.start = 0
        self.number = 0
        # Rows that the ways of this and later attempts may take and skip.
        self.left = pattern.steps_max
        self.steps = 0  # rows that the ways of this attempt have taken and skipped
        self.given_up: int | None = None  # the row whose attempt needs too many

    def results(self) -> list[tuple[Any, tuple[Any, ...], int]]:
        """(place, measures, last_us) of each."""
        out: list[tuple[Any, tuple[Any, ...], int]] = []
        taken: set[int] = set()
        while self.start < len(self.rows):
            ways: list[Way] = []
            self.steps, too_many, waits = 0, False, False
            try:
                for way in self.attempts():
                    ways.append(way)
            except NotKnown:
                waits = True
            except TooMany:
                too_many = True
            for way in ways:
                try:
                    out += self.given(way.path, self.number + 1)
                except NotKnown:
                    waits = True
                    break
                self.number += 1
                taken |= {at for at, _, _ in way.path} or {self.start}
            if waits:
                break
            if too_many:
                self.given_up = self.start
                break
            if self.left is not None and self.pattern.steps_max is not None and self.steps:
                back = max(1, self.pattern.steps_max // 100)
                self.left = min(self.pattern.steps_max, self.left - self.steps + back)
            after = self.after(ways[0].path) if ways else self.start + 1
            for at in range(self.start, after):
                if self.pattern.rows is RowsPerMatch.UNMATCHED and at not in taken:
                    time, place, _ = self.rows[at]
                    out.append((place, (None,) * len(self.pattern.measures), time))
            self.start = after
        return out

    def attempts(self) -> Iterator[Way]:
        self.first_number = self.number + 1
        seen = set()
        for way in self.walk(self.pattern.node, Way(self.start), lambda way: iter([way]), False):
            rows = tuple((at, name) for at, name, _ in way.path)
            if rows not in seen:
                seen.add(rows)
                yield way
                if self.pattern.selection is not Selection.ANY or len(seen) == 1000:
                    return

    def after(self, path: tuple[tuple[int, str, bool], ...]) -> int:
        skip = self.pattern.skip
        if not path or skip.to == "to next row":
            return self.start + 1
        if skip.to == "past last row":
            return path[-1][0] + 1
        those = [at for at, name, _ in path if name in self.members(skip.name)]
        return those[0 if skip.to == "to first" else -1]

    def members(self, name: str | None) -> tuple[str, ...]:
        assert name is not None
        return self.subsets.get(name, (name,))

    # Ways

    def walk(self, node: Node, way: Way, then: Then, out: bool) -> Iterator[Way]:
        match node:
            case Variable(name):
                yield from self.variable(name, way, then, out)
            case Sequence(()):
                yield from then(way)
            case Sequence(parts):
                rest = Sequence(parts[1:])
                yield from self.walk(parts[0], way, lambda w: self.walk(rest, w, then, out), out)
            case Choice(parts):
                for part in parts:
                    yield from self.walk(part, way, then, out)
            case Permute(parts):
                for order in permutations(parts):
                    yield from self.walk(Sequence(order), way, then, out)
            case Exclude(part):
                yield from self.walk(part, way, then, True)
            case Repeat():
                yield from self.repeat(node, way, then, out, 0)
            case Absent(name):
                yield from self.absent(name, way, then)
            case Start():
                if way.probe is None and way.at == 0 and not way.path:
                    yield from then(way)
            case End():
                yield from self.end(way, then)

    def repeat(self, node: Repeat, way: Way, then: Then, out: bool, count: int) -> Iterator[Way]:
        def iterated(after: Way) -> Iterator[Way]:
            if count >= node.least and len(after.path) == len(way.path):
                return then(after)
            return self.repeat(node, after, then, out, count + 1)

        stop = count >= node.least
        more = node.most is None or count < node.most
        if stop and not (more and node.greedy):
            yield from then(way)
        if more:
            yield from self.walk(node.part, way, iterated, out)
        if stop and more and node.greedy:
            yield from then(way)

    def variable(self, name: str, way: Way, then: Then, out: bool) -> Iterator[Way]:
        if way.probe is not None:
            way.probe.add(name)
            return
        at = way.at
        while self.there(at, way):
            if self.holds(name, at, way):
                self.step()
                yield from then(Way(at + 1, (*way.path, (at, name, out)), then))
                if self.pattern.selection is not Selection.ANY:
                    return
            if not self.may_pass(at, way):
                return
            self.step()
            at += 1

    def step(self) -> None:
        self.steps += 1
        if self.left is not None and self.steps > self.left:
            raise TooMany

    def end(self, way: Way, then: Then) -> Iterator[Way]:
        if way.probe is not None:
            return
        at = way.at
        while at < len(self.rows):
            if not self.there(at, way) or not self.may_pass(at, way):
                return
            self.step()
            at += 1
        if not self.ended:
            raise NotKnown
        yield from then(replace(way, at=at))

    def absent(self, name: str, way: Way, then: Then) -> Iterator[Way]:
        if way.probe is not None:
            yield from then(way)
        elif not self.next_of(then, way):
            next_ = self.next_of(way.since, way) if self.selects(Selection.NEXT) else set()
            at = way.at
            while self.there(at, way):
                if any(self.holds(other, at, way) for other in {name, *next_}):
                    return
                self.step()
                at += 1
            yield from then(replace(way, at=at))
        elif self.selects(Selection.STRICT):
            at = way.at
            while True:
                yield from then(replace(way, at=at))
                if not self.there(at, way) or self.holds(name, at, way):
                    return
                self.step()
                at += 1
        else:
            yield from then(replace(way, absent=name))

    def selects(self, selection: Selection) -> bool:
        return self.pattern.selection is selection

    def may_pass(self, at: int, way: Way) -> bool:
        if self.selects(Selection.STRICT) or not way.path:
            return False
        if way.absent is not None and self.holds(way.absent, at, way):
            return False
        if self.selects(Selection.ANY):
            return True
        return not any(self.holds(name, at, way) for name in self.next_of(way.since, way))

    def next_of(self, then: Then | None, way: Way) -> set[str]:
        assert then is not None
        probe: set[str] = set()
        for _ in then(replace(way, probe=probe)):
            pass
        return probe

    def there(self, at: int, way: Way) -> bool:
        """Is there such a row, inside WITHIN?"""
        within = self.pattern.within_us
        deadline = None if within is None else self.rows[self.start][0] + within
        if at < len(self.rows):
            return deadline is None or self.rows[at][0] < deadline
        over = deadline is not None and self.mark is not None and self.mark >= deadline
        if not self.ended and not over:
            raise NotKnown
        return False

    def holds(self, name: str, at: int, way: Way) -> bool:
        if name not in self.conditions:
            return True
        path = [(row, label) for row, label, _ in way.path] + [(at, name)]
        return self.value(self.conditions[name], path, path, self.first_number) is True

    # Values

    def given(
        self, taken: tuple[tuple[int, str, bool], ...], number: int
    ) -> list[tuple[Any, tuple[Any, ...], int]]:
        path = [(at, label) for at, label, _ in taken]
        time, place, _ = self.rows[path[-1][0] if path else self.start]
        if not path or self.pattern.rows is RowsPerMatch.ONE:
            omitted = self.pattern.rows is RowsPerMatch.OMIT_EMPTY
            return [] if omitted else [(place, self.measures(path, path, number), time)]
        return [
            (self.rows[at][1], self.measures(path[: i + 1], path, number), time)
            for i, (at, _, excluded) in enumerate(taken)
            if not excluded
        ]

    def measures(self, path: list[Any], whole: list[Any], number: int) -> tuple[Any, ...]:
        measures = self.pattern.measures
        return tuple(self.value(measure, path, whole, number) for _, measure in measures)

    def value(self, e: Expression, path: list[Any], whole: list[Any], number: int) -> Any:
        match e:
            case Literal(value):
                return value
            case MatchNumber():
                return number
            case MatchId():
                return None
            case Value(column, place):
                at = self.located(place, path, whole)
                if at is not None and at >= len(self.rows) and not self.ended:
                    raise NotKnown
                if at is None or not 0 <= at < len(self.rows):
                    return None
                return self.rows[at][2][self.pattern.columns.index(column)]
            case Classifier(place):
                return dict(whole).get(self.located(place, path, whole))
            case MatchAggregate():
                return self.aggregate(e, whole if e.final else path)
            case FunctionCall(function, arguments):
                values = [self.value(a, path, whole, number) for a in arguments]
                return _called(function, values)
        raise TypeError(e)

    def rows_of(self, name: str | None, path: list[Any]) -> list[int]:
        return [at for at, label in path if name is None or label in self.members(name)]

    def located(self, place: RowNavigation, path: list[Any], whole: list[Any]) -> int | None:
        rows = self.rows_of(place.name, whole if place.final else path)
        if len(rows) <= place.offset:
            return None
        return rows[place.offset if place.first else -1 - place.offset] + place.shift

    def aggregate(self, e: MatchAggregate, path: list[Any]) -> Any:
        rows = [self.rows[at][2] for at in self.rows_of(e.name, path)]
        if e.column is None:
            return len(rows)
        column = self.pattern.columns.index(e.column)
        values = [row[column] for row in rows if row[column] is not None]
        values = list(dict.fromkeys(values)) if e.distinct else values
        if e.function in ("count", "collect_list"):
            return len(values) if e.function == "count" else values
        if not values:
            return None
        fold = {"sum": sum, "min": min, "max": max, "avg": lambda v: sum(v) / len(v)}
        return fold[e.function](values)


def _called(function: str, values: list[Any]) -> Any:
    if function == "and":
        return False if False in values else None if None in values else True
    if function == "is_null":
        return values[0] is None
    if None in values:
        return None
    x, *others = values
    y = others[0] if others else None
    table: dict[str, Callable[[], Any]] = {
        "=": lambda: x == y,
        "<>": lambda: x != y,
        "<": lambda: x < y,
        "<=": lambda: x <= y,
        ">": lambda: x > y,
        "+": lambda: x + y,
        "not": lambda: not x,
    }
    return table[function]()
