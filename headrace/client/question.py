"""A question, and its answer when its rows are first wanted.

A question does not change: `where`, `between` and `limit` give another one. It is asked once, so
that rows, frame and `answer` of one question speak for the same moment; `again()` asks anew.
tests/client/test_question.py checks what is asked, and how often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

from headrace.api.service import Service
from headrace.client.shown import as_html, as_text
from headrace.client.tables import pandas_frame
from headrace.serving.answer import Answer, AsOf, ColumnInfo
from headrace.serving.tables import arrow_table, typed_rows


class Answered:
    """What can be done with an answer, however it was asked for."""

    def __init__(self, ask: Callable[[], Answer]) -> None:
        self._ask = ask
        self._answer: Answer | None = None

    @property
    def answer(self) -> Answer:
        """Rows as JSON has them, `as_of` of each stream, and the exactness of each column."""
        if self._answer is None:
            self._answer = self._ask()
        return self._answer

    @property
    def as_of(self) -> dict[str, AsOf]:
        return self.answer.as_of

    @property
    def columns(self) -> dict[str, ColumnInfo]:
        return self.answer.columns

    def rows(self) -> list[dict[str, Any]]:
        """The rows, each value as the type of its column says."""
        return typed_rows(self.answer)

    def to_arrow(self) -> Any:
        return arrow_table(self.answer)

    def to_pandas(self) -> Any:
        return pandas_frame(self.answer)

    def again(self) -> Answered:
        """The same question, asked anew."""
        return Answered(self._ask)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows())

    def __len__(self) -> int:
        return len(self.answer.rows)

    def __repr__(self) -> str:
        return as_text(self.answer)

    def _repr_html_(self) -> str:
        return as_html(self.answer)


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a view."""

    view: str
    keys: dict[str, str | None] = field(default_factory=dict)
    since: str | None = None
    until: str | None = None
    most: int | None = None


class Question(Answered):
    """A question about a view's rows.

    client.view("visitors").where(url="/home").between("2026-11-15", "2026-11-16").limit(10).rows()
    """

    def __init__(self, service: Service, asked: Asked) -> None:
        self._service, self._asked = service, asked
        ask = partial(
            service.view,
            asked.view,
            asked.keys or None,
            since=asked.since,
            until=asked.until,
            limit=asked.most,
        )
        super().__init__(ask)

    def where(self, **keys: object) -> Question:
        """Only rows with these values of key columns; None is null."""
        said = {n: None if value is None else said_as(value) for n, value in keys.items()}
        return self._changed(keys=self._asked.keys | said)

    def between(self, since: str | date | None = None, until: str | date | None = None) -> Question:
        """Only rows whose window starts in [since, until)."""
        bounds = [None if bound is None else said_as(bound) for bound in (since, until)]
        return self._changed(since=bounds[0], until=bounds[1])

    def limit(self, most: int) -> Question:
        """So many rows at most."""
        return self._changed(most=most)

    def again(self) -> Question:
        return self._changed()

    def _changed(self, **changes: Any) -> Question:
        return Question(self._service, replace(self._asked, **changes))


def said_as(value: object) -> str:
    """A value of a key as the server reads it; a moment without a zone is in UTC.

    >>> said_as(True), said_as(datetime(2026, 11, 15, 19)), said_as(1.5)
    ('true', '2026-11-15T19:00:00+00:00', '1.5')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
    return value.isoformat() if isinstance(value, date) else str(value)
