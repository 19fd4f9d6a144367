"""Tracks a view for one subscription: polls for changes and computes new panes.

Checking for progress reads a few rows of the store; the view itself is read only after a commit, or
when an interval has passed. Progress is read before the view, so a commit between the two is
noticed at the next poll. tests/serving/test_view_feed.py checks it.
"""

from __future__ import annotations

from headrace.compile.view_subscription import query_of
from headrace.core.errors import LimitReached
from headrace.core.rule import ALERTS
from headrace.core.subscription import Subscription, ViewShape
from headrace.core.time import from_iso
from headrace.serving.alerts import alerts_version
from headrace.serving.answer import Answer, AsOf, as_of
from headrace.serving.catalog import read_plan
from headrace.serving.emit_state import Emission, EmitState, ViewAnswer
from headrace.serving.panes import next_panes
from headrace.serving.progress import read_stream
from headrace.serving.read import Reader


class ViewTracker:
    """One subscription and its state."""

    def __init__(
        self, reader: Reader, subscription: Subscription, shape: ViewShape, state: EmitState
    ) -> None:
        self.reader, self.subscription, self.shape, self.state = reader, subscription, shape, state
        self._committed: object = None  # the progress at the newest commit
        self._polled: tuple[object, int] = None, 0
        self.due_us: int | None = None  # when to poll although there is no progress

    def poll(self) -> Emission | None:
        """The new panes; None without progress. They are returned again until `commit`."""
        progress, now = self._progress(), self.reader.clock()
        if progress == self._committed and (self.due_us is None or now < self.due_us):
            return None
        emission = next_panes(self.subscription, self.shape, self.state, self._read(now))
        self._polled = progress, now
        return emission

    def commit(self, emission: Emission) -> None:
        """The panes of the last poll are published or saved."""
        self.state.apply(emission)
        self._committed, now = self._polled
        self.due_us = self.state.due_us(self.subscription, now)

    def _progress(self) -> object:
        with self.reader.db.read() as db:
            if self.shape.view == ALERTS:
                return alerts_version(db)
            states = [read_stream(db, stream) for stream in self.shape.streams]
        marks = as_of(states, self.reader.clock()).values()
        return [(mark.position, mark.generation, mark.watermark) for mark in marks]

    def _read(self, now_us: int) -> ViewAnswer:
        answer = read_subscribed(self.reader, self.subscription)
        if answer.truncated:
            raise LimitReached(
                f"view '{self.subscription.view}' exceeds the subscription limit of "
                f"{self.reader.rows_max} rows",
                hint="narrow the subscription with WHERE, or raise subscribe.rows_max.",
            )
        return ViewAnswer(answer.rows, _watermark(list(answer.as_of.values())), now_us)


def read_subscribed(reader: Reader, subscription: Subscription, limit: int | None = None) -> Answer:
    """The rows that a subscription selects: by its keys, or by its condition."""
    with reader.db.read() as db:
        plan = read_plan(db)
    view = plan.view(subscription.view) if plan else None
    query = query_of(view, subscription) if view else ""
    return (
        reader.sql(query, limit)
        if query
        else reader.view(subscription.view, dict(subscription.where), limit=limit)
    )


def _watermark(marks: list[AsOf]) -> int | None:
    """The watermark of the slowest stream; None while a stream has none."""
    texts = [mark.watermark for mark in marks]
    known = [from_iso(text) for text in texts if text is not None]
    return min(known) if known and len(known) == len(texts) else None
