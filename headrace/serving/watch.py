"""Watches a view for one subscriber: when something may have changed, it looks.

Asking whether anything moved costs a few rows of the store; the view itself is read only after a
commit, or when an interval has gone by. The position is asked before the answer is read, so a
commit between the two is seen at the next turn. tests/serving/test_feed.py checks it.
"""

from __future__ import annotations

from headrace.compile.view_subscription import query_of
from headrace.core.errors import LimitReached
from headrace.core.rule import ALERTS
from headrace.core.subscription import Subscription, ViewShape
from headrace.core.time import from_iso
from headrace.serving.account import Account, Look, Seen
from headrace.serving.answer import Answer, AsOf, as_of
from headrace.serving.catalog import read_plan
from headrace.serving.ledger import changes
from headrace.serving.panes import look
from headrace.serving.progress import read_stream
from headrace.serving.read import Reader


class Watch:
    """One subscription, and what it has been told."""

    def __init__(
        self, reader: Reader, asked: Subscription, shape: ViewShape, account: Account
    ) -> None:
        self.reader, self.asked, self.shape, self.account = reader, asked, shape, account
        self._moved: object = None
        self._looked: tuple[object, int] = None, 0
        self.due_us: int | None = None  # when to look although nothing has moved

    def look(self) -> Look | None:
        """What is to be said now; None if nothing has moved. It counts once it is `told`."""
        moved, now = self._progress(), self.reader.clock()
        if moved == self._moved and (self.due_us is None or now < self.due_us):
            return None
        found = look(self.asked, self.shape, self.account, self._seen(now))
        self._looked = moved, now
        return found

    def told(self, found: Look) -> None:
        """The look's panes are where they belong, so they are not said again."""
        self.account.after(found)
        self._moved, now = self._looked
        self.due_us = self.account.due_us(self.asked, now)

    def _progress(self) -> object:
        with self.reader.db.read() as db:
            if self.shape.view == ALERTS:
                return changes(db)
            states = [read_stream(db, stream) for stream in self.shape.streams]
        marks = as_of(states, self.reader.clock()).values()
        return [(mark.position, mark.generation, mark.watermark) for mark in marks]

    def _seen(self, now_us: int) -> Seen:
        answer = subscribed(self.reader, self.asked)
        if answer.truncated:
            raise LimitReached(
                f"view '{self.asked.view}' has more than {self.reader.rows_max} rows to watch",
                hint="narrow the subscription with WHERE, or raise subscribe.rows_max.",
            )
        return Seen(answer.rows, _watermark(list(answer.as_of.values())), now_us)


def subscribed(reader: Reader, asked: Subscription, limit: int | None = None) -> Answer:
    """The rows that a subscription is about: by its keys, or by its condition."""
    with reader.db.read() as db:
        plan = read_plan(db)
    view = plan.view(asked.view) if plan else None
    query = query_of(view, asked) if view else ""
    return (
        reader.sql(query, limit)
        if query
        else reader.view(asked.view, dict(asked.where), limit=limit)
    )


def _watermark(marks: list[AsOf]) -> int | None:
    """The slowest stream's; none while a stream has none."""
    texts = [mark.watermark for mark in marks]
    known = [from_iso(text) for text in texts if text is not None]
    return min(known) if known and len(known) == len(texts) else None
