"""What must be known of a stream to tell its rows, or why it cannot be told.

A subscriber of a stream comes back with a position, so its rows must be a function of the events
between two positions of one log. Those of a declared stream are, and those of a stateless stream
over one; a carried row depends on what came before, and a joined one on another log.
tests/compile/test_follow.py reads each refusal.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TypeVar

import msgspec
from sqlglot import exp

from headrace.compile.moments import refuse_moving_moments
from headrace.compile.plan import DerivedPlan, Plan, StreamPlan, TablePlan
from headrace.core.errors import NotFound, Unsupported
from headrace.core.event import HIDDEN, RAW
from headrace.core.origin import Origin
from headrace.core.subscription import StreamSubscription
from headrace.define.dialect import parse_query, parse_select, sql_of
from headrace.define.tokens import words_in

_ORIGIN = Origin("subscription", 1)
T = TypeVar("T", StreamPlan, DerivedPlan)


class Followed(msgspec.Struct, frozen=True):
    """Which rows a subscription to a stream is about; equal ones are told together."""

    name: str
    stream: StreamPlan  # whose events they come of
    sql: str = ""  # a derived stream's rows, each with its place in the log
    tables: tuple[TablePlan, ...] = ()
    condition: str = ""

    @property
    def plain(self) -> bool:
        """Whether they are the events as they are stored, all of them."""
        return not self.sql and not self.condition and not self.stream.schema.computed

    @property
    def names_raw(self) -> bool:
        return RAW in words_in(f"{self.sql} {self.condition}")


def is_stream(plan: Plan, name: str) -> bool:
    """Whether a stream is subscribed to, and not a view; NotFound if there is neither."""
    streams = [stream.name for stream in plan.streams]
    streams += [derived.name for derived in plan.shown_derived]
    if name.lower() in map(str.lower, streams):
        return True
    if plan.view(name) is None:
        names = [*(view.name for view in plan.shown_views), *streams]
        close = difflib.get_close_matches(name, names, 1)
        hint = f"did you mean '{close[0]}'?" if close else f"there are: {', '.join(names)}."
        raise NotFound(f"there is no view or stream '{name}'", hint=hint)
    return False


def followed(plan: Plan, asked: StreamSubscription) -> Followed:
    """What the subscription is about; an error says why it cannot be told."""
    condition = _said(asked.condition) if asked.condition else ""
    stream = _named(plan.streams, asked.stream)
    if stream is not None:
        return Followed(stream.name, stream, condition=condition)
    derived = _named(plan.shown_derived, asked.stream)
    assert derived is not None
    _check_one_by_one(plan, derived)
    return Followed(
        derived.name,
        plan.stream(derived.stream),
        placed(derived.sql),
        tuple(table for table in plan.tables if table.name in derived.tables),
        condition,
    )


def _said(condition: str) -> str:
    """A condition in the words of definitions; whether it is certain otherwise, Spark says."""
    query = parse_query(f"SELECT 1 WHERE {condition}", _ORIGIN)
    refuse_moving_moments(query, None)
    return sql_of(query.args["where"].this)


def _named(known: Iterable[T], name: str) -> T | None:
    return next((each for each in known if each.name.lower() == name.lower()), None)


def _check_one_by_one(plan: Plan, derived: DerivedPlan) -> None:
    """Refuse rows that are made of more than one event."""
    joined = all(stream.name != derived.stream for stream in plan.streams)
    if not derived.carry and not joined:
        return
    why = "joins two streams" if joined else "is carried from event to event"
    raise Unsupported(
        f"stream '{derived.name}' {why}, so it has no position to subscribe from",
        hint=f"add CREATE RULE name AS SELECT * FROM {derived.name}, and "
        "SUBSCRIBE TO alerts WHERE rule = 'name'.",
    )


def placed(sql: str) -> str:
    """A stateless stream's SELECT with the hidden columns of the event that each row comes of.

    >>> placed("SELECT upper(user) AS who FROM clicks AS c WHERE ms > 9")[:61]
    'SELECT upper(user) AS who, c._partition, c._offset, c._arrive'
    """
    select = parse_select(sql, _ORIGIN)
    alias = select.args["from_"].this.alias_or_name
    given = {item.alias_or_name.lower() for item in select.expressions}
    if not any(_is_all_of(item, alias) for item in select.expressions):
        missing = [exp.column(name, alias) for name in HIDDEN if name not in given]
        select.select(*missing, copy=False)
    return sql_of(select)


def _is_all_of(item: exp.Expr, alias: str) -> bool:
    """Whether it is `*`, or `*` of the stream."""
    table = item.args.get("table") if isinstance(item, exp.Column) else None
    return item.is_star and (table is None or table.name.lower() == alias.lower())
