"""The law of joins, without Spark: whatever came before, the SQL of a join gives the rows that are
new, and it finds them also in what memory keeps of the past.

    rows(all) = rows(old) + new_rows(old, new) - withdrawn

DuckDB runs the SQL that the compiler makes for Spark, over events that Hypothesis invents.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import duckdb
import pytest
from chance import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from headrace.compile.flow import FlowPlan
from headrace.compile.join import JoinSide, StreamJoin, changed, join_plan
from headrace.compile.plan import ColumnPlan, StreamPlan
from headrace.core.origin import Origin
from headrace.define.dialect import parse_translatable, sql_of
from headrace.speed.join_history import history_starts

LOWER, UPPER, DELAY = -1, 3, 1
JOINS = {
    "INNER": "JOIN",
    "LEFT": "LEFT JOIN",
    "RIGHT": "RIGHT JOIN",
    "FULL": "FULL JOIN",
    "SEMI": "LEFT SEMI JOIN",
}
Event = tuple[int | None, int | None]  # key, time


@dataclass(frozen=True)
class Past:
    """What has come of both streams, in the order of their logs."""

    left: list[Event]
    right: list[Event]


def stream(name: str) -> StreamPlan:
    return StreamPlan(name, (ColumnPlan("ts", "TIMESTAMP", True),), "json", 1, ("ts", DELAY))


PAIR = FlowPlan("a+b", (stream("a"), stream("b")), joined=True)


def joined(kind: str) -> tuple[exp.Select, StreamJoin]:
    on = f"l.k = r.k AND r.ts - l.ts BETWEEN {LOWER} AND {UPPER}"
    items = "l._offset AS x" if kind == "SEMI" else "l._offset AS x, r._offset AS y"
    tree = parse_translatable(
        f"SELECT {items} FROM a AS l {JOINS[kind]} b AS r ON {on}", Origin("x", 1)
    )
    assert isinstance(tree, exp.Select)
    return tree, StreamJoin(kind, JoinSide("l", "a", "ts"), JoinSide("r", "b", "ts"), LOWER, UPPER)


class Duck:
    """Two relations of events that say whether they are new, and the SQL of a join over them."""

    def __init__(self, kind: str) -> None:
        self.db = duckdb.connect(":memory:")
        # Times are whole numbers here.
        self.db.execute("CREATE MACRO epoch_us(x) AS x")
        select, join = joined(kind)
        self.plan = join_plan(select, join)
        changed(select, join)
        self.rows_sql = parse_translatable(sql_of(select), Origin("x", 1)).sql(dialect="duckdb")

    def ask(self, sql: str, marks: dict[str, int | None]) -> list[Any]:
        # DuckDB takes only the parameters that are there.
        given = {name: mark for name, mark in marks.items() if f"${name}" in sql}
        return self.db.execute(sql, given).fetchall()

    def load(self, old: Past, new: Past, since: tuple[int, int]) -> None:
        sides = (("a", old.left, new.left, since[0]), ("b", old.right, new.right, since[1]))
        for name, before, after, moment in sides:
            self.db.execute(
                f"CREATE OR REPLACE TABLE {name} (k INT, ts BIGINT, _offset INT, _new BOOLEAN)"
            )
            for n, (key, time) in enumerate([*before, *after]):
                fresh = n >= len(before)
                if fresh or (time is not None and time >= moment):
                    self.db.execute(
                        f"INSERT INTO {name} VALUES (?, ?, ?, ?)", (key, time, n, fresh)
                    )

    def run(
        self, old: Past, new: Past, since: tuple[int, int] = (-(2**62), -(2**62))
    ) -> tuple[Counter[Any], int]:
        """The new rows, and how many old ones are withdrawn."""
        self.load(old, new, since)
        both = Past(old.left + new.left, old.right + new.right)
        marks = {f"before_{n}": mark for n, mark in enumerate(watermarks(old))}
        marks |= {f"after_{n}": mark for n, mark in enumerate(watermarks(both))}
        rows = Counter(self.ask(self.rows_sql, marks))
        translated = (
            parse_translatable(sql, Origin("x", 1)).sql("duckdb") for sql in self.plan.withdrawn
        )
        return rows, sum(self.ask(sql, marks)[0][0] for sql in translated)


def watermarks(past: Past) -> list[int | None]:
    tops = [max((t for _, t in side if t is not None), default=None) for side in _sides(past)]
    return [None if top is None else top - DELAY for top in tops]


def lows(past: Past) -> list[int | None]:
    return [min((t for _, t in side if t is not None), default=None) for side in _sides(past)]


def _sides(past: Past) -> tuple[list[Event], list[Event]]:
    return past.left, past.right


events = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(0, 1)), st.one_of(st.none(), st.integers(0, 20))),
    max_size=5,
)
pasts = st.builds(Past, events, events)
NOTHING = Past([], [])


@pytest.mark.parametrize("kind", JOINS)
@settings(max_examples=examples(15, 600))
@given(old=pasts, new=pasts)
def test_old_rows_and_new_rows_are_all_rows_but_for_those_withdrawn(
    kind: str, old: Past, new: Past
) -> None:
    duck = Duck(kind)
    both = Past(old.left + new.left, old.right + new.right)
    whole, before = duck.run(NOTHING, both)[0], duck.run(NOTHING, old)[0]
    added, withdrawn = duck.run(old, new)
    left = before + added
    assert whole - left == Counter(), "a row is missing"
    assert (left - whole).total() == withdrawn


@pytest.mark.parametrize("kind", JOINS)
@settings(max_examples=examples(15, 600))
@given(old=pasts, new=pasts)
def test_what_memory_has_forgotten_would_change_nothing(kind: str, old: Past, new: Past) -> None:
    duck = Duck(kind)
    since = history_starts(PAIR, [duck.plan], watermarks(old), lows(new))
    assert duck.run(old, new, (since[0], since[1])) == duck.run(old, new)
