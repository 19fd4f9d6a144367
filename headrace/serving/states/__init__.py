"""Partials that plain SQL cannot merge: opaque *states*, with the functions that can.

A state is one column, bytes or text, made by Spark's lift. Each kind has
  merge   several states -> one, in any order and any grouping; never called with NULL;
  finish  a state, and parameters of the definition -> the answer's value;
  same    whether two states are equal, for the audit; None if a state only estimates.
`register` adds them to the reading engine: `merge_<kind>(list)`, `finish_<kind>(state, …)`,
`same_<kind>(a, b)`, and `cut_<kind>(state)` of lists. NULL is the zero of each.
tests/laws/test_merge.py checks the laws of every kind.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from headrace.core.aggregate import Merge
from headrace.serving.states import collected, count_min, decimals, ids, shapes, sketches

Stored = Any  # bytes or text, as the store keeps it


@dataclass(frozen=True, slots=True)
class State:
    """How one kind of state is merged, finished and compared. `type` is DuckDB's type of the state,
    `finished` that of the finished value.
    """

    type: str
    merge: Callable[[Sequence[Stored]], Stored]
    finish: Callable[..., Any]
    finished: str
    same: Callable[[Stored, Stored], bool] | None = None
    cut: Callable[[Stored], bool] | None = None


def _listed(merge: Callable[[Sequence[str]], str], show: Callable[[str], str]) -> State:
    return State("VARCHAR", merge, show, "VARCHAR", collected.same, collected.cut)


STATES: dict[Merge, State] = {
    Merge.HLL: State("BLOB", sketches.merge_hll, sketches.count_hll, "BIGINT"),
    Merge.KLL: State("BLOB", sketches.merge_kll, sketches.quantile, "DOUBLE"),
    Merge.TOP_K: State("BLOB", sketches.merge_top_k, sketches.top, "VARCHAR"),
    Merge.COUNT_MIN: State("BLOB", count_min.merge, count_min.estimate, "BIGINT", operator.eq),
    Merge.COLLECT_LIST: _listed(collected.merge_lists, collected.show_list),
    Merge.COLLECT_SET: _listed(collected.merge_sets, collected.show_set),
    Merge.IDS: State("BLOB", ids.merge, ids.count, "BIGINT", ids.same),
    Merge.DECIMAL_SUM: State("VARCHAR", decimals.add, decimals.total, "VARCHAR", decimals.same),
    Merge.PAIR: State("VARCHAR", shapes.merge_pairs, shapes.pair, "DOUBLE", shapes.same_pairs),
    Merge.SHAPE: State("VARCHAR", shapes.merge_shapes, shapes.shape, "DOUBLE", shapes.same_shapes),
}


def merge_states(kind: Merge, states: Sequence[Stored | None]) -> Stored | None:
    """The merge of states; a single one is returned as it is."""
    present = [state for state in states if state is not None]
    return STATES[kind].merge(present) if len(present) > 1 else next(iter(present), None)


def finish_state(kind: Merge, state: Stored | None, *parameters: Any) -> Any:
    return None if state is None else STATES[kind].finish(state, *parameters)


def same_state(kind: Merge, a: Stored | None, b: Stored | None) -> bool:
    equal = STATES[kind].same
    return equal is None or a == b or (a is not None and b is not None and equal(a, b))


def register(connection: duckdb.DuckDBPyConnection) -> None:
    """Register the functions of every kind in a connection."""
    for kind, state in STATES.items():
        _register(connection, kind, state)


def _register(connection: duckdb.DuckDBPyConnection, kind: Merge, state: State) -> None:
    def merge(states: list[Stored] | None) -> Stored:
        return merge_states(kind, states or ())

    def finish(*parameters: Any) -> Any:
        return finish_state(kind, *parameters)

    def equal(a: Stored, b: Stored) -> bool:
        return same_state(kind, a, b)

    def cut(value: Stored) -> bool | None:
        return None if value is None or state.cut is None else state.cut(value)

    one = state.type
    for name, function, takes, gives in (
        ("merge", merge, [f"{one}[]"], one),
        ("finish", finish, None, state.finished),
        ("same", equal, [one, one], "BOOLEAN"),
        ("cut", cut, [one], "BOOLEAN"),
    ):
        connection.create_function(
            f"{name}_{kind}", function, takes, gives, null_handling="special"
        )
