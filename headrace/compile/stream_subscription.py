"""Resolves a subscription to a stream, or refuses it.

A subscriber resumes from a position, so the rows must be a function of the events between two
positions of one log. That is true for declared streams and for stateless streams over one of them.
The rows of a carried stream depend on earlier events, and those of a join on another log.
tests/compile/test_stream_subscription.py reads each error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import msgspec
from sqlglot import exp

from headrace.compile.determinism import refuse_relative_times
from headrace.compile.plan import DerivedPlan, Plan, StreamPlan, TablePlan
from headrace.core.errors import NotFound, Unsupported, did_you_mean
from headrace.core.event import HIDDEN, RAW
from headrace.core.origin import Origin
from headrace.core.subscription import StreamSubscription
from headrace.define.dialect import parse_query, parse_select, sql_of
from headrace.define.tokens import words_in

_ORIGIN = Origin("subscription", 1)
T = TypeVar("T", StreamPlan, DerivedPlan)


class SubscribedStream(msgspec.Struct, frozen=True):
    """The rows of a subscription to a stream; equal subscriptions share one reader."""

    name: str
    stream: StreamPlan  # the declared stream
    sql: str = ""  # of a derived stream: its rows, each with its position in the log
    tables: tuple[TablePlan, ...] = ()
    condition: str = ""
    user: str = ""  # whose queries Spark computes the rows among; empty if the log has them

    @property
    def plain(self) -> bool:
        """Whether the rows are all events, as they are stored."""
        return not self.sql and not self.condition and not self.stream.schema.computed

    @property
    def names_raw(self) -> bool:
        return RAW in words_in(f"{self.sql} {self.condition}")


def is_stream(plan: Plan, name: str) -> bool:
    """Whether the name is that of a stream and not of a view; NotFound if it is neither."""
    streams = [stream.name for stream in plan.streams]
    streams += [derived.name for derived in plan.shown_derived]
    if name.lower() in map(str.lower, streams):
        return True
    if plan.view(name) is None:
        names = [*(view.name for view in plan.shown_views), *streams]
        hint = did_you_mean(name, names, f"available: {', '.join(names)}.")
        raise NotFound(f"there is no view or stream '{name}'", hint=hint)
    return False


def subscribed_stream(plan: Plan, subscription: StreamSubscription) -> SubscribedStream:
    """The stream and rows of a subscription; Unsupported if it has no position to resume from."""
    condition = _said(subscription.condition) if subscription.condition else ""
    stream = _named(plan.streams, subscription.stream)
    if stream is not None:
        return SubscribedStream(stream.name, stream, condition=condition)
    derived = _named(plan.shown_derived, subscription.stream)
    assert derived is not None
    _check_one_by_one(plan, derived)
    return SubscribedStream(
        derived.name,
        plan.stream(derived.stream),
        placed(derived.sql),
        tuple(table for table in plan.tables if table.name in derived.tables),
        condition,
    )


def _said(condition: str) -> str:
    """A condition, normalized. Spark checks later whether it is deterministic otherwise."""
    query = parse_query(f"SELECT 1 WHERE {condition}", _ORIGIN)
    refuse_relative_times(query, None)
    return sql_of(query.args["where"].this)


def _named(known: Iterable[T], name: str) -> T | None:
    return next((each for each in known if each.name.lower() == name.lower()), None)


def _check_one_by_one(plan: Plan, derived: DerivedPlan) -> None:
    """Refuse rows that depend on more than one event."""
    joined = all(stream.name != derived.stream for stream in plan.streams)
    if not derived.carry and not joined:
        return
    why = "joins two streams" if joined else "is stateful"
    raise Unsupported(
        f"stream '{derived.name}' {why}, so it has no position to subscribe from",
        hint=f"add CREATE RULE name AS SELECT * FROM {derived.name}, and "
        "SUBSCRIBE TO alerts WHERE rule = 'name'.",
    )


def placed(sql: str) -> str:
    """A stateless stream's SELECT with the hidden columns of each row's event.

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
