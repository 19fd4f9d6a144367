"""One attempt: the matches that begin at one row, in order of preference.

The search backtracks on a stack of its own, so a match may have any length. Where conditions are of
the row only, what comes after an instruction at a row does not depend on the way there: a pair that
failed once is not tried again, and an attempt takes time in proportion to rows × instructions.
Otherwise the number of ways may be exponential in the rows, so an attempt may take and skip
`steps_max` rows, counting each again on each way. What is known of later rows changes nothing of
the steps before, so an attempt that is too long in one round is too long in every other.
tests/pattern/test_random_patterns.py checks it against an enumeration of all ways, and
tests/pattern/test_steps.py the bound.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import NamedTuple

from headrace.pattern.code import (
    ACCEPT,
    ASSERT_FIRST,
    ASSERT_LAST,
    FORK,
    SKIP_REST,
    SKIP_ROW,
    TAKE,
    Code,
)
from headrace.pattern.trail import Row, RowPending, Trail

MATCHES_MAX = 1_000  # of one start row, under SKIP TILL ANY

FoundMatch = tuple[list[int], list[int]]  # the rows taken, and the instructions that took them


class Outcome(IntEnum):
    DONE = 0
    WAITS = 1  # for a row, or for the watermark to reach the deadline
    WAITS_FOR_ROW = 2
    EXHAUSTED = 3  # it would take more steps than it may


class Attempt(NamedTuple):
    """The input of an attempt."""

    rows: list[Row]
    masks: list[int]  # for each row, the variables that can take it
    start: int
    deadline: float  # a row at this time or later is outside WITHIN
    open: bool  # may a row still come that is inside?
    ended: bool
    whole: bool  # is the first of `rows` the key's first?
    steps_max: float = math.inf


def run_attempt(
    code: Code, trail: Trail, attempt: Attempt, found: list[FoundMatch]
) -> tuple[Outcome, int]:
    """Add to `found`: the first match, or under SKIP TILL ANY all that are different. With the
    outcome come the steps that it took, if it is decided.
    """
    try:
        return _run(code, trail, attempt, found)
    except RowPending:
        return Outcome.WAITS_FOR_ROW, 0


def _run(
    code: Code, trail: Trail, attempt: Attempt, found: list[FoundMatch]
) -> tuple[Outcome, int]:
    """The loop. It is one function, with all it uses in locals, because it runs for each row."""
    rows, masks, start, deadline, open_, ended, whole, steps_max = attempt
    ops, nexts, others, bits, names = code.ops, code.nexts, code.others, code.bits, code.names
    needs, blocks, tracks, every = code.needs, code.blocks, code.tracks, code.every
    memoises, size, n = code.memoises, len(code.ops), len(rows)
    path: list[int] = []
    takes: list[int] = []
    stack: list[tuple[int, int, int]] = []
    failed: set[int] = set()
    seen: set[object] = set()
    pc, pos, reached, steps = code.entry, start, 0, 0
    while True:
        op = ops[pc]
        if op == TAKE:
            if pos < n:
                if rows[pos][0] < deadline and (
                    masks[pos] & bits[pc] or (tracks and code.holds(trail, pc, pos))
                ):
                    path.append(pos)
                    takes.append(pc)
                    if tracks:
                        steps += 1
                        if steps > steps_max:
                            return Outcome.EXHAUSTED, steps
                        trail.push(pos, names[pc])
                    pos += 1
                    pc = nexts[pc]
                    continue
            elif open_:
                return Outcome.WAITS, steps
        elif op == FORK:
            preferred, other = nexts[pc], others[pc]
            if pos < n:  # skip a way that this row rules out
                mask = masks[pos]
                if not mask & needs[preferred] or mask & blocks[preferred]:
                    pc = other
                    continue
                if not mask & needs[other] or mask & blocks[other]:
                    pc = preferred
                    continue
            if not memoises:
                stack.append((other, pos, len(path)))
                pc = preferred
                continue
            key = pos * size + pc
            if key not in failed:
                if every:  # it has failed if nothing was found when the stack is back here
                    stack.append((~pc, pos, reached))
                else:  # it has failed if the search ever comes here again
                    failed.add(key)
                stack.append((other, pos, len(path)))
                pc = preferred
                continue
        elif op == SKIP_ROW:
            if pos < n:
                if rows[pos][0] < deadline and code.may_pass(trail, pc, pos, masks[pos]):
                    if tracks:
                        steps += 1
                        if steps > steps_max:
                            return Outcome.EXHAUSTED, steps
                    pos += 1
                    pc = nexts[pc]
                    continue
            elif open_:
                return Outcome.WAITS, steps
        elif op == ACCEPT:
            reached += 1
            if not every:
                found.append((path, takes))
                return Outcome.DONE, steps
            if (identity := code.identity(path, takes)) not in seen:
                seen.add(identity)
                found.append((path[:], takes[:]))
                if len(found) == MATCHES_MAX:
                    return Outcome.DONE, steps
        elif op == SKIP_REST:
            while pos < n and rows[pos][0] < deadline:
                if not code.may_pass(trail, pc, pos, masks[pos]):
                    break
                if tracks:
                    steps += 1
                    if steps > steps_max:
                        return Outcome.EXHAUSTED, steps
                pos += 1
            else:
                if pos == n and open_:
                    return Outcome.WAITS, steps
                pc = nexts[pc]
                continue
        elif op == ASSERT_LAST:
            if pos == n:
                if not ended:
                    return Outcome.WAITS_FOR_ROW, steps
                pc = nexts[pc]
                continue
        elif op == ASSERT_FIRST and pos == 0 and whole:
            pc = nexts[pc]
            continue
        while stack:  # backtrack
            pc, pos, depth = stack.pop()
            if pc >= 0:
                break
            if depth == reached:
                failed.add(pos * size + ~pc)
        else:
            return Outcome.DONE, steps
        del path[depth:], takes[depth:]
        if tracks:
            trail.cut(depth)
