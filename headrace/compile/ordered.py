"""Windows that need the events of a key in order: count_window() and punctuated_window().

Their key is what a carried step says of each event: its number in the order of its key, or the
number of its window. A count window is a sliding window over the axis of these numbers, kept in
panes like any other. tests/compile/test_ordered.py checks the calls; tests/plans the refusals.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from headrace.compile.plan import StepPlan
from headrace.compile.windows import WindowPlan
from headrace.core.errors import Unsupported
from headrace.core.origin import Origin
from headrace.core.time import duration_us
from headrace.define.dialect import sql_of

WORDS = ("count_window", "punctuated_window")
NUMBER, ENDS = "_number", "_ends"


@dataclass(frozen=True, slots=True)
class OrderedWindow:
    """A step that numbers events or windows, the condition it reads, and what is kept of it."""

    step: StepPlan
    condition: str | None = None
    window: WindowPlan | None = None

    @property
    def key_sql(self) -> str:
        """The stored key of an event, of the number that the step gave it."""
        if self.window is None:
            return NUMBER
        return f"({NUMBER} - pmod({NUMBER}, {self.window.pane}))"


def ordered_name(expression: exp.Expr) -> str | None:
    """The word of a call that is such a window, if it is one."""
    name = expression.name.lower() if isinstance(expression, exp.Anonymous) else ""
    return name if name in WORDS else None


def read_ordered(call: exp.Expr, origin: Origin) -> OrderedWindow:
    """The windows that a call means."""
    arguments = call.expressions
    if ordered_name(call) == "count_window":
        return _count(arguments, origin)
    return _punctuated(arguments, origin)


def as_spark_reads(node: exp.Expr) -> exp.Expr:
    """The call as something of the same type and name that Spark knows."""
    number = exp.cast(exp.Literal.number(0), "bigint")
    selected = isinstance(node.parent, exp.Select) and node.arg_key == "expressions"
    return exp.alias_(number, node.name.lower()) if selected else number


def _count(arguments: list[exp.Expr], origin: Origin) -> OrderedWindow:
    sizes = [_whole(argument) for argument in arguments]
    if not 1 <= len(sizes) <= 2 or None in sizes:
        raise Unsupported(
            "a count window takes a number of events, and a slide",
            hint="write count_window(10) or count_window(10, 5).",
            origin=origin,
        )
    size, slide = sizes[0] or 0, sizes[-1] or 0
    if not 0 < slide <= size:
        raise Unsupported(
            "a count window holds at least one event and slides by at most its size", origin=origin
        )
    window = WindowPlan("count", size, slide)
    return OrderedWindow(StepPlan("ordinal", (), (), NUMBER, "BIGINT"), window=window)


def _punctuated(arguments: list[exp.Expr], origin: Origin) -> OrderedWindow:
    hint = "write punctuated_window(done), or with limits punctuated_window(done, 1000, '1 day')."
    if not 1 <= len(arguments) <= 3:
        raise Unsupported("a punctuated window takes a condition", hint=hint, origin=origin)
    limited = len(arguments) > 1 and not isinstance(arguments[1], exp.Null)
    size = _whole(arguments[1]) if limited else None
    if limited and not size:
        raise Unsupported(
            "the size of a punctuated window is a number of events", hint=hint, origin=origin
        )
    age_us = _age(arguments[2], origin) if len(arguments) > 2 else None
    step = StepPlan("punctuation", (ENDS,), (size, age_us), NUMBER, "BIGINT")
    return OrderedWindow(step, condition=sql_of(arguments[0]))


def _age(argument: exp.Expr, origin: Origin) -> int:
    try:
        return duration_us(argument.name)
    except ValueError as error:
        raise Unsupported(
            f"the age of a punctuated window is wrong: {error}", origin=origin
        ) from error


def _whole(argument: exp.Expr) -> int | None:
    number = isinstance(argument, exp.Literal) and not argument.is_string
    return int(argument.name) if number and argument.name.isdigit() else None
