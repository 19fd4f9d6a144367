"""The words for windows: window(), session_window() and landmark_window().

Spark says what the first two mean; the last is ours. What is not Spark's is said to Spark's
analyser in its own words, in one place: `for_spark`. tests/compile/test_window_words.py checks
what each call means, tests/plans the sentences of those that are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlglot import exp

from headrace.compile.ordered import OrderedWindow, as_spark_reads, ordered_name, read_ordered
from headrace.compile.windows import WindowPlan
from headrace.core.errors import Unsupported
from headrace.core.origin import Origin
from headrace.core.time import duration_us, from_iso
from headrace.define.dialect import sql_of

_EDGES = ("start", "end")


def window_name(expression: exp.Expr) -> str | None:
    """The word of a call that is a window, if it is one."""
    name = expression.name.lower() if isinstance(expression, exp.Anonymous) else ""
    return name if name in _READ else None


def window_word(expression: exp.Expr) -> str | None:
    """The word of any window, also of one that needs its events in order."""
    return window_name(expression) or ordered_name(expression)


def window_edge(expression: exp.Expr) -> str | None:
    """`start` or `end` for window.start and window(…).end."""
    name: str | None = None
    if isinstance(expression, exp.Dot) and window_name(expression.this):
        name = expression.expression.name.lower()
    elif isinstance(expression, exp.Column) and expression.table.lower() in _READ:
        name = expression.name.lower()
    return name if name in _EDGES else None


def read_window(call: exp.Expr, origin: Origin) -> WindowPlan:
    """The windows that a call means."""
    try:
        return _READ[call.name.lower()](call.expressions)
    except Unsupported as error:
        error.origin = origin
        raise


def check_windows(query: exp.Query, origin: Origin) -> None:
    """Refuse in our words, before Spark does in its own, what is no window or more than one."""
    calls = {sql_of(node): node for node in query.walk() if window_word(node)}
    windows = {_read(call, origin) for call in calls.values()}
    if len(windows) > 1:
        raise Unsupported(
            "a view has one window", hint="make a view for each of them.", origin=origin
        )


def _read(call: exp.Expr, origin: Origin) -> WindowPlan | OrderedWindow:
    return read_ordered(call, origin) if ordered_name(call) else read_window(call, origin)


def for_spark(text: str, query: exp.Query) -> str:
    """A definition's text as Spark's analyser can read it: with the same names and types."""
    if not any(_ours(node) for node in query.walk()):
        return text
    return sql_of(query.transform(_in_sparks_words))


def _ours(node: exp.Expr) -> bool:
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    return name in _IN_SPARKS_WORDS


def _in_sparks_words(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Anonymous) and node.name.lower() in _IN_SPARKS_WORDS:
        return _IN_SPARKS_WORDS[node.name.lower()](node)
    if isinstance(node, exp.Column) and node.table.lower() == "landmark_window":
        return exp.column(node.name, table="window")
    return node


def _landmark_as_window(node: exp.Anonymous) -> exp.Expr:
    window = exp.Anonymous(
        this="window", expressions=[node.expressions[0].copy(), exp.Literal.string("1 day")]
    )
    selected = isinstance(node.parent, exp.Select) and node.arg_key == "expressions"
    return exp.alias_(window, "landmark_window") if selected else window


# What Spark does not know, as something of the same type that it does know.
_IN_SPARKS_WORDS: dict[str, Callable[[exp.Anonymous], exp.Expr]] = {
    "landmark_window": _landmark_as_window,
    "count_window": as_spark_reads,
    "punctuated_window": as_spark_reads,
}


def _read_time(arguments: list[exp.Expr]) -> WindowPlan:
    if not 2 <= len(arguments) <= 4 or not all(_is_text(a) for a in arguments[1:]):
        raise Unsupported(
            "a window's size, slide and offset are texts",
            hint="write window(ts, '1 hour') or window(ts, '1 hour', '5 minutes').",
        )
    with _wrong("the window's size is wrong"):
        size = duration_us(arguments[1].name)
    with _wrong("the window's slide is wrong"):
        slide = duration_us(arguments[2].name) if len(arguments) > 2 else size
    with _wrong("the window's offset is wrong"):
        offset = _signed_us(arguments[3].name) if len(arguments) > 3 else 0
    if size <= 0 or slide <= 0:
        raise Unsupported("a window must be longer than nothing")
    if slide > size:
        raise Unsupported(
            "a window's slide is longer than its size",
            hint="events between two windows would be in none; make the slide shorter.",
        )
    if abs(offset) >= slide:
        raise Unsupported("a window's offset must be shorter than its slide")
    return WindowPlan("sliding", size, slide, offset % slide)


def _read_session(arguments: list[exp.Expr]) -> WindowPlan:
    if len(arguments) != 2 or (
        isinstance(arguments[1], exp.Literal) and not _is_text(arguments[1])
    ):
        raise Unsupported(
            "a session takes a time and a gap, which is text",
            hint="write session_window(ts, '30 minutes').",
        )
    time, gap = arguments
    if not _is_text(gap):
        return WindowPlan(
            "session", ends=f"unix_micros({sql_of(time)} + cast({sql_of(gap)} AS INTERVAL))"
        )
    with _wrong("the session's gap is wrong"):
        gap_us = duration_us(gap.name)
    if gap_us <= 0:
        raise Unsupported("a session's gap must be longer than nothing")
    return WindowPlan("session", ends=f"unix_micros({sql_of(time)}) + {gap_us}")


def _read_landmark(arguments: list[exp.Expr]) -> WindowPlan:
    if len(arguments) != 2 or not _is_text(arguments[1]):
        raise Unsupported(
            "a landmark is a moment, written as text",
            hint="write landmark_window(ts, '2026-01-01 00:00:00').",
        )
    try:
        return WindowPlan("landmark", offset=from_iso(arguments[1].name))
    except ValueError:
        raise Unsupported(
            f"'{arguments[1].name}' is not a moment",
            hint="write landmark_window(ts, '2026-01-01 00:00:00').",
        ) from None


_READ: dict[str, Callable[[list[exp.Expr]], WindowPlan]] = {
    "window": _read_time,
    "session_window": _read_session,
    "landmark_window": _read_landmark,
}


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and node.is_string


def _signed_us(text: str) -> int:
    sign = -1 if text.strip().startswith("-") else 1
    return sign * duration_us(text.strip().removeprefix("-"))


@contextmanager
def _wrong(what: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise Unsupported(f"{what}: {error}") from error
