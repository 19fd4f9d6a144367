"""Partials that plain SQL cannot merge: opaque *states*, with the functions that can.

A state is one column, bytes or text, made by Spark's lift. Each kind has
  merge   several states -> one, in any order and any grouping; NULL never gets here;
  finish  a state, and what the definition says beside it -> the answer's value;
  same    whether two states mean the same, for the audit; None where a state only estimates.
`register` gives them to a SQLite connection, as SQLite has min and max: `merge_<kind>(a, b)` of two
values, `merge_<kind>(a)` over rows, and `finish_<kind>(a, …)`. NULL is the zero of each.
tests/laws/test_merge.py checks the laws of every kind.
"""

from __future__ import annotations

import operator
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.core.aggregate import Merge
from headrace.serving.states import collected, count_min, decimals, hll, ids, kll, shapes, top_k

Stored = Any  # bytes or text, as the store keeps it


@dataclass(frozen=True, slots=True)
class State:
    """How one kind of state is merged, read and compared."""

    merge: Callable[[Sequence[Stored]], Stored]
    finish: Callable[..., Any]
    same: Callable[[Stored, Stored], bool] | None = None


STATES: dict[Merge, State] = {
    Merge.HLL: State(hll.merge, hll.count),
    Merge.KLL: State(kll.merge, kll.quantile),
    Merge.TOP_K: State(top_k.merge, top_k.top),
    Merge.COUNT_MIN: State(count_min.merge, count_min.estimate, operator.eq),
    Merge.COLLECT_LIST: State(collected.merge_lists, collected.show_list, collected.same),
    Merge.COLLECT_SET: State(collected.merge_sets, collected.show_set, collected.same),
    Merge.IDS: State(ids.merge, ids.count, ids.same),
    Merge.DECIMAL_SUM: State(decimals.add, decimals.total, decimals.same),
    Merge.PAIR: State(shapes.merge_pairs, shapes.pair, shapes.same_pairs),
    Merge.SHAPE: State(shapes.merge_shapes, shapes.shape, shapes.same_shapes),
}


def merged(kind: Merge, states: Sequence[Stored | None]) -> Stored | None:
    """One state for all; a single one is left as it is, unread."""
    found = [state for state in states if state is not None]
    return STATES[kind].merge(found) if len(found) > 1 else next(iter(found), None)


def finished(kind: Merge, state: Stored | None, *said: Any) -> Any:
    return None if state is None else STATES[kind].finish(state, *said)


def same(kind: Merge, a: Stored | None, b: Stored | None) -> bool:
    equal = STATES[kind].same
    return equal is None or a == b or (a is not None and b is not None and equal(a, b))


def register(connection: sqlite3.Connection) -> None:
    """Make the functions of every kind known in a connection."""
    for kind in STATES:
        _register(connection, kind)


def _register(connection: sqlite3.Connection, kind: Merge) -> None:
    def two(a: Stored, b: Stored) -> Stored:
        return merged(kind, (a, b))

    def finish(state: Stored, *said: Any) -> Any:
        return finished(kind, state, *said)

    def equal(a: Stored, b: Stored) -> bool:
        return same(kind, a, b)

    class All:
        """The rows of a group, merged at once when all of them are there."""

        def __init__(self) -> None:
            self.states: list[Stored | None] = []

        def step(self, state: Stored) -> None:
            self.states.append(state)

        def finalize(self) -> Stored:
            return merged(kind, self.states)

    connection.create_function(f"merge_{kind}", 2, two, deterministic=True)
    connection.create_aggregate(f"merge_{kind}", 1, All)
    connection.create_function(f"finish_{kind}", -1, finish, deterministic=True)
    connection.create_function(f"same_{kind}", 2, equal, deterministic=True)
