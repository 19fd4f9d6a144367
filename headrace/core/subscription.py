"""A subscription: to a view, with its triggers and its mode, or to a stream.

A window of the view has early panes (before the watermark has passed its end), one on time (when it
passes) and late ones (after it). `lateness_us` after its end it is closed: its last pane says so,
and later changes are counted but not sent. Without EMIT every change is sent, and no window is
closed. tests/define/test_view_subscription.py checks what is read, tests/serving/test_panes.py what
it means.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from headrace.core.time import duration_text


class Form(StrEnum):
    """What is sent for a changed row."""

    PANES = "panes"  # by triggers
    INSERTS = "inserts"  # rows that came in, or their new version
    DELETES = "deletes"  # rows that went out, or their old version
    RELATION = "relation"  # the whole answer each time


class Mode(StrEnum):
    """How a pane relates to earlier panes of the same row."""

    DISCARDING = "discarding"  # only what changed since the last pane
    ACCUMULATING = "accumulating"  # the value so far
    RETRACTING = "retracting"  # the old value is withdrawn, then the new one given


class Every(msgspec.Struct, frozen=True):
    """A trigger: after a number of events, after an interval, or at each change."""

    events: int | None = None
    interval_us: int | None = None


CHANGE = Every()


class Subscription(msgspec.Struct, frozen=True):
    """One subscription; equal ones receive the same panes."""

    view: str
    where: tuple[tuple[str, str], ...] = ()
    form: Form = Form.PANES
    mode: Mode = Mode.ACCUMULATING
    early: Every | None = CHANGE
    on_time: bool = False
    late: Every | None = CHANGE
    lateness_us: int | None = None  # None: a window is never closed
    condition: str = ""  # SQL over the view's columns, beside `where`

    @property
    def timed(self) -> bool:
        """Whether its panes depend on the ends of windows."""
        return self.on_time or self.lateness_us is not None

    @property
    def intervals(self) -> tuple[int, ...]:
        """The intervals after which a pane may be due although no event has arrived."""
        both = (every.interval_us for every in (self.early, self.late) if every)
        return tuple(interval for interval in both if interval is not None)

    @property
    def counts_events(self) -> bool:
        return any(every is not None and every.events for every in (self.early, self.late))


class StreamSubscription(msgspec.Struct, frozen=True):
    """The rows of a stream's events, from now on or from the beginning."""

    stream: str
    condition: str = ""  # SQL over the stream's columns
    beginning: bool = False


def subscription(name: str, where: str | None, emit: str | None) -> str:
    """The text of a subscription to a view or stream; a name that is a whole subscription stays as
    it is.

    >>> subscription("hits", "page = '/a'", "ON TIME RETRACTING")
    "SUBSCRIBE TO hits WHERE page = '/a' EMIT ON TIME RETRACTING"
    """
    whole = len(name.split()) > 1
    said = (
        name if whole else f"SUBSCRIBE TO {name}",
        where and f"WHERE {where}",
        emit and f"EMIT {emit}",
    )
    return " ".join(part for part in said if part)


def emission(asked: Subscription) -> str:
    """The triggers and the mode of a subscription in SQL.

    >>> emission(Subscription("v", early=None, on_time=True, late=None, lateness_us=0))
    'ON TIME ACCUMULATING'
    """
    if asked.form is not Form.PANES:
        return asked.form.value.upper()
    if not asked.timed and asked.early == CHANGE:
        return f"CHANGES {asked.mode.value.upper()}"
    endless = asked.late == asked.early and not asked.timed
    said = [
        f"EARLY EVERY {_words(asked.early)}" if asked.early else "",
        "ON TIME" if asked.on_time else "",
        f"LATE EVERY {_words(asked.late)}" if asked.late and not endless else "",
        f"ALLOWED LATENESS INTERVAL '{duration_text(asked.lateness_us)}'"
        if asked.lateness_us
        else "",
    ]
    return f"{', '.join(filter(None, said))} {asked.mode.value.upper()}"


def _words(every: Every) -> str:
    if every.interval_us is not None:
        return f"INTERVAL '{duration_text(every.interval_us)}'"
    return f"{every.events} EVENTS"


class ViewShape(msgspec.Struct, frozen=True):
    """The columns of a view by what they mean to a subscriber."""

    view: str
    columns: tuple[str, ...]
    keys: tuple[str, ...] | None  # None: a row is known by all of its values
    window: str | None
    count: str | None  # the column that counts events
    streams: tuple[str, ...]
    ordered: bool = False  # whether the order of the rows is a part of the answer
    sessions: bool = False  # whether its windows are sessions, which grow and merge


class Guarantee(StrEnum):
    """What a sink's readers can rely on when the process is killed."""

    EXACTLY_ONCE = "exactly_once"
    AT_LEAST_ONCE = "at_least_once"
    AT_MOST_ONCE = "at_most_once"
