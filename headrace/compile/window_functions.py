"""The window functions.

window() and session_window() are Spark's; the others are ours. For Spark's analyser, ours are
replaced by an expression of the same type, by `to_spark_windows`. The key of count_window() and
punctuated_window() is computed by a step of a fold: the number of an event within its key, or the
number of its window. A count window is a sliding window over these numbers.
tests/compile/test_window_functions.py checks each call, tests/plans the error messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlglot import exp

from headrace.compile.plan import StepPlan
from headrace.compile.windows import (
    CountWindow,
    LandmarkWindow,
    SessionWindow,
    SlidingWindow,
    WindowPlan,
)
from headrace.core.errors import Unsupported
from headrace.core.origin import Origin
from headrace.core.time import duration_us, from_iso
from headrace.define.dialect import sql_of

_EDGES = ("start", "end")
NUMBER, ENDS = "_number", "_ends"


@dataclass(frozen=True, slots=True)
class OrderedWindow:
    """A fold step that numbers events or windows, its condition, and its window."""

    step: StepPlan
    condition: str | None = None
    window: CountWindow | None = None

    @property
    def key_sql(self) -> str:
        """The stored key of an event, from the number that the step computed."""
        return self.window.key_sql(NUMBER) if self.window else NUMBER


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """How a call is read and, if Spark does not know the function, its replacement of the same
    type.
    """

    read: Callable[[list[exp.Expr]], WindowPlan | OrderedWindow]
    spark_equivalent: Callable[[exp.Expr], exp.Expr] | None = None
    alone: bool = False  # whether the window of an event does not depend on other events


def window_function(expression: exp.Expr) -> str | None:
    """The name of the window function that is called; None if there is none."""
    name = expression.name.lower() if isinstance(expression, exp.Anonymous) else ""
    return name if name in WINDOW_FUNCTIONS else None


def window_edge(expression: exp.Expr) -> str | None:
    """`start` or `end` for window.start and window(…).end."""
    called = isinstance(expression, exp.Dot) and window_function(expression.this)
    named = isinstance(expression, exp.Column) and expression.table.lower() in WINDOW_FUNCTIONS
    name = expression.name.lower()
    return name if (called or named) and name in _EDGES else None


def read_window(call: exp.Expr, origin: Origin) -> WindowPlan | OrderedWindow:
    """The window of a call."""
    try:
        return WINDOW_FUNCTIONS[call.name.lower()].read(call.expressions)
    except Unsupported as error:
        error.origin = origin
        raise


def check_windows(query: exp.Query, origin: Origin) -> None:
    """Refuse windows that are not valid, or more than one, with our messages instead of Spark's."""
    calls = {sql_of(node): node for node in query.walk() if window_function(node)}
    windows = {read_window(call, origin) for call in calls.values()}
    if len(windows) > 1:
        raise Unsupported(
            f"a view can have only one window, got {len(windows)}",
            hint="define a view for each window.",
            origin=origin,
        )


def to_spark_windows(text: str, query: exp.Query) -> str:
    """A definition's text for Spark's analyser, with the same names and types."""
    if not any(map(_translation, query.walk())):
        return text
    return sql_of(query.transform(_to_spark))


def _translation(node: exp.Expr) -> Callable[[exp.Expr], exp.Expr] | None:
    word = window_function(node)
    return WINDOW_FUNCTIONS[word].spark_equivalent if word else None


def _to_spark(node: exp.Expr) -> exp.Expr:
    if translate := _translation(node):
        selected = isinstance(node.parent, exp.Select) and node.arg_key == "expressions"
        return exp.alias_(translate(node), node.name.lower()) if selected else translate(node)
    if isinstance(node, exp.Column) and node.table.lower() == "landmark_window":
        return exp.column(node.name, table="window")
    return node


def _landmark_as_window(node: exp.Expr) -> exp.Expr:
    day = [node.expressions[0].copy(), exp.Literal.string("1 day")]
    return exp.Anonymous(this="window", expressions=day)


def _as_number(node: exp.Expr) -> exp.Expr:
    return exp.cast(exp.Literal.number(0), "bigint")


def _read_time(arguments: list[exp.Expr]) -> SlidingWindow:
    if not 2 <= len(arguments) <= 4 or not all(_is_text(a) for a in arguments[1:]):
        raise Unsupported(
            "window size, slide and offset must be string literals",
            hint="write window(ts, '1 hour') or window(ts, '1 hour', '5 minutes').",
        )
    with _named_errors("window size"):
        size = duration_us(arguments[1].name)
    with _named_errors("window slide"):
        slide = duration_us(arguments[2].name) if len(arguments) > 2 else size
    with _named_errors("window offset"):
        offset = _signed_us(arguments[3].name) if len(arguments) > 3 else 0
    if size <= 0 or slide <= 0:
        raise Unsupported("window size and slide must be greater than zero")
    if slide > size:
        raise Unsupported(
            "the window slide must not be longer than the window size",
            hint="make the slide shorter; events between two windows would be in none.",
        )
    if abs(offset) >= slide:
        raise Unsupported("the window offset must be shorter than the window slide")
    return SlidingWindow(size, slide, offset % slide)


def _read_session(arguments: list[exp.Expr]) -> SessionWindow:
    if len(arguments) != 2 or (
        isinstance(arguments[1], exp.Literal) and not _is_text(arguments[1])
    ):
        raise Unsupported(
            "session_window expects a time and a gap such as '30 minutes'",
            hint="write session_window(ts, '30 minutes').",
        )
    time, gap = arguments
    if not _is_text(gap):
        ends = f"unix_micros({sql_of(time)} + cast({sql_of(gap)} AS INTERVAL))"
        return SessionWindow(ends=ends)
    with _named_errors("session gap"):
        gap_us = duration_us(gap.name)
    if gap_us <= 0:
        raise Unsupported("the session gap must be greater than zero")
    return SessionWindow(ends=f"unix_micros({sql_of(time)}) + {gap_us}")


def _read_landmark(arguments: list[exp.Expr]) -> LandmarkWindow:
    if len(arguments) != 2 or not _is_text(arguments[1]):
        raise Unsupported(
            "landmark_window expects a time and a landmark, a timestamp as a string literal",
            hint="write landmark_window(ts, '2026-01-01 00:00:00').",
        )
    try:
        return LandmarkWindow(offset=from_iso(arguments[1].name))
    except ValueError:
        raise Unsupported(
            f"'{arguments[1].name}' is not a timestamp",
            hint="write landmark_window(ts, '2026-01-01 00:00:00').",
        ) from None


def _read_count(arguments: list[exp.Expr]) -> OrderedWindow:
    sizes = [_whole(argument) for argument in arguments]
    if not 1 <= len(sizes) <= 2 or None in sizes:
        raise Unsupported(
            "count_window expects a number of events and, optionally, a slide",
            hint="write count_window(10) or count_window(10, 5).",
        )
    size, slide = sizes[0] or 0, sizes[-1] or 0
    if not 0 < slide <= size:
        raise Unsupported(
            "the size and slide of count_window must be at least 1, and the slide at most the size"
        )
    step = StepPlan("ordinal", (), (), NUMBER, "BIGINT")
    return OrderedWindow(step, window=CountWindow(size, slide))


def _read_punctuated(arguments: list[exp.Expr]) -> OrderedWindow:
    hint = "write punctuated_window(done), or with limits punctuated_window(done, 1000, '1 day')."
    if not 1 <= len(arguments) <= 3:
        raise Unsupported(
            f"punctuated_window expects 1 to 3 arguments, got {len(arguments)}", hint=hint
        )
    limited = len(arguments) > 1 and not isinstance(arguments[1], exp.Null)
    size = _whole(arguments[1]) if limited else None
    if limited and not size:
        raise Unsupported(
            "the maximum size of punctuated_window must be a number of events, at least 1",
            hint=hint,
        )
    with _named_errors("maximum age of punctuated_window"):
        age_us = duration_us(arguments[2].name) if len(arguments) > 2 else None
    step = StepPlan("punctuation", (ENDS,), (size, age_us), NUMBER, "BIGINT")
    return OrderedWindow(step, condition=sql_of(arguments[0]))


WINDOW_FUNCTIONS = {
    "window": WindowFunction(_read_time, alone=True),
    "session_window": WindowFunction(_read_session),
    "landmark_window": WindowFunction(_read_landmark, _landmark_as_window, alone=True),
    "count_window": WindowFunction(_read_count, _as_number),
    "punctuated_window": WindowFunction(_read_punctuated, _as_number),
}


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and node.is_string


def _whole(argument: exp.Expr) -> int | None:
    number = isinstance(argument, exp.Literal) and not argument.is_string
    return int(argument.name) if number and argument.name.isdigit() else None


def _signed_us(text: str) -> int:
    sign = -1 if text.strip().startswith("-") else 1
    return sign * duration_us(text.strip().removeprefix("-"))


@contextmanager
def _named_errors(what: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise Unsupported(f"the {what} is not valid: {error}") from error
