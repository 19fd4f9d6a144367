"""The search of one key: where it stands, and the rows that it may still need.

Everything before `start` is decided; of it, only the rows that PREV can see are kept. An attempt
that waits is made again when a row came, the watermark reached its deadline, or the input ended,
and not before. tests/pattern/test_cuts.py checks that a search may be cut anywhere.

Where the number of ways has no other bound, a key has so many steps for its attempts: each decided
one spends what it took and gives a hundredth of the whole back. A key that would need more is
ignored from then on: `given_up` is the row at which the search stopped. Whether it comes to that is
decided by the key's rows alone, not by rounds. tests/pattern/test_steps.py checks this.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.pattern.attempt import Attempt, FoundMatch, Outcome, run_attempt
from headrace.pattern.output import OutputRow
from headrace.pattern.trail import Row, RowPending

if TYPE_CHECKING:
    from headrace.pattern.matcher import Matcher

STEPS_BACK = 100  # of the steps of a key, an attempt gives back one of so many


class Search:
    """Made by a matcher. A row is (time, place, values); a place is one value or a flat tuple."""

    def __init__(
        self, matcher: Matcher, state: Any = None, masks: Sequence[int] | None = None
    ) -> None:
        self.matcher = matcher
        self.rows: list[Row] = []
        self.masks: list[int] = []
        self.start = 0
        self.whole = True  # nothing was let go: the first of `rows` is the key's first
        self.number = 0  # of matches so far
        self.given = 0  # matches from this start, under SKIP TILL ANY
        self.waits = False
        self.due: int | None = None
        self.taken: set[int] = set()  # rows not passed yet that some match took
        self.steps = matcher.steps_max  # that are left
        self.given_up: Row | None = None
        if state is not None:
            rows, self.start, self.whole, self.number, self.given, waits, self.due, taken, spent = (
                state
            )
            self.take([restored(row) for row in rows], masks)
            self.waits, self.taken, self.steps = waits, set(taken), self.steps - spent

    def take(self, rows: Sequence[Row], masks: Sequence[int] | None = None) -> None:
        """Rows that have become ripe, in order, and their masks if these are known."""
        before = len(self.rows)
        self.rows += rows
        self.masks += self.matcher.masks(self.rows)[before:] if masks is None else masks
        if rows:
            self.waits = False

    def matches(self, mark_us: int | None, ended: bool = False) -> list[OutputRow]:
        """What is decided, in order, and was not given before."""
        given: list[OutputRow] = []
        if self.waits and not ended and not self._is_due(mark_us):
            return given
        self.waits = False
        while not self.waits and self.given_up is None and self._at_start(mark_us, ended, given):
            self._attempt(mark_us, ended, given)
        self._let_go()
        return given

    def state(self) -> Any:
        """The state for `Matcher.resume`; None if there is nothing to keep."""
        number = self.number if self.matcher.numbers else 0
        whole = self.whole or not self.matcher.anchored
        spent = 0 if self.matcher.steps_max == self.steps else self.matcher.steps_max - self.steps
        if not self.rows and not number and whole and not spent:
            return None
        taken = sorted(self.taken)
        return [
            list(self.rows), self.start, whole, number, self.given, self.waits, self.due, taken,
            spent,
        ]  # fmt: skip

    def due_us(self) -> int | None:
        """The watermark at which more may be decided without a new row."""
        return self.due if self.waits else None

    def _is_due(self, mark_us: int | None) -> bool:
        return self.due is not None and mark_us is not None and mark_us >= self.due

    def _at_start(self, mark_us: int | None, ended: bool, given: list[OutputRow]) -> bool:
        """Go to the next row with which a match can begin; there may be none."""
        at, end, masks, code = self.start, len(self.rows), self.masks, self.matcher.code
        starts, seconds = code.starts, code.seconds
        while at < end and not (masks[at] & starts and (at + 1 == end or masks[at + 1] & seconds)):
            at += 1
        if at + 1 == end and not seconds & 1 and not self._is_open(at, mark_us, ended):
            at = end
        if at > self.start:
            self._go_to(at, given)
        return at < end

    def _is_open(self, start: int, mark_us: int | None, ended: bool) -> bool:
        """Whether a row may still come that can be in a match which begins at `start`."""
        within_us = self.matcher.within_us
        if ended or within_us is None or mark_us is None:
            return not ended
        return mark_us < self.rows[start][0] + within_us

    def _attempt(self, mark_us: int | None, ended: bool, given: list[OutputRow]) -> None:
        matcher, start, deadline = self.matcher, self.start, math.inf
        if matcher.within_us is not None:
            deadline = self.rows[start][0] + matcher.within_us
        open_ = self._is_open(start, mark_us, ended)
        attempt = Attempt(
            self.rows, self.masks, start, deadline, open_, ended, self.whole, self.steps
        )
        found: list[FoundMatch] = []
        if matcher.code.tracks:
            matcher.trail.begin(self.rows, self.number - self.given + 1, ended)
        outcome, steps = run_attempt(matcher.code, matcher.trail, attempt, found)
        if not self._give(found, ended, given):
            outcome = Outcome.WAITS_FOR_ROW
        if outcome is Outcome.DONE:
            self._spend(steps)
            self._go_to(self._after(found), given)
        elif outcome is Outcome.EXHAUSTED:
            self.given_up = self.rows[start]
        else:
            self.waits = True
            by_mark = outcome is Outcome.WAITS and matcher.within_us is not None
            self.due = int(deadline) if by_mark else None

    def _spend(self, steps: int) -> None:
        """Take the steps of a decided attempt from those that are left, and give some back."""
        most = self.matcher.steps_max
        if steps and most != math.inf:
            self.steps = min(most, self.steps - steps + max(1, most // STEPS_BACK))

    def _give(self, found: list[FoundMatch], ended: bool, given: list[OutputRow]) -> bool:
        """Give out the matches; False if one has a measure that waits for a row."""
        for match in found[self.given :]:
            try:
                of_match = self.matcher.output.of_match(
                    self.rows, self.start, match, self.number + 1, ended
                )
                given += list(of_match)
            except RowPending:
                return False
            self.number += 1
            self.given += 1
            if self.matcher.unmatched:
                self.taken.update(match[0] or [self.start])
        return True

    def _after(self, found: list[FoundMatch]) -> int:
        """The row where the search continues."""
        skip_to = self.matcher.skip_to
        if not found or not found[0][0] or skip_to == "to next row":
            return self.start + 1
        path, takes = found[0]
        if skip_to == "past last row":
            return path[-1] + 1
        names, skip_names = self.matcher.code.names, self.matcher.skip_names
        those = [at for at, take in zip(path, takes, strict=True) if names[take] in skip_names]
        return those[0] if skip_to == "to first" else those[-1]

    def _go_to(self, start: int, given: list[OutputRow]) -> None:
        if self.matcher.unmatched:
            for at in range(self.start, start):
                if at not in self.taken:
                    given.append(self.matcher.output.unmatched(self.rows[at]))
                self.taken.discard(at)
        self.start, self.given = start, 0

    def _let_go(self) -> None:
        """Drop the rows that no expression can reach any more."""
        count = self.start - self.matcher.reach
        if count > 0:
            del self.rows[:count], self.masks[:count]
            self.start -= count
            self.whole = False
            self.taken = {at - count for at in self.taken}


def restored(row: Any) -> Row:
    """A row as it was before it was stored, where tuples became lists."""
    time, place, values = row
    return time, tuple(place) if type(place) is list else place, tuple(values)
