"""A lazy query, which is sent when its rows are first read.

A query is immutable: `where`, `between` and `limit` return another one. It is sent once, so that
rows, frame and `answer` of one query are of the same snapshot; `again()` returns a new query.
tests/client/test_query.py checks which requests are sent, and how often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

from msgspec.structs import replace

from headrace.api.resources.rows import ViewRequest
from headrace.api.service import Service
from headrace.client.render import as_html, as_text
from headrace.client.tables import pandas_frame
from headrace.serving.answer import Answer, AsOf, ColumnInfo
from headrace.serving.answer_table import arrow_table, typed_rows


class ResultSet:
    """The result of a query, fetched when it is first read."""

    def __init__(self, fetch: Callable[[], Answer]) -> None:
        self._fetch = fetch
        self._answer: Answer | None = None

    @property
    def answer(self) -> Answer:
        """Rows with the types of JSON, `as_of` of each stream, and the exactness of each column."""
        if self._answer is None:
            self._answer = self._fetch()
        return self._answer

    @property
    def as_of(self) -> dict[str, AsOf]:
        return self.answer.as_of

    @property
    def columns(self) -> dict[str, ColumnInfo]:
        return self.answer.columns

    def rows(self) -> list[dict[str, Any]]:
        """The rows, each value converted to the type of its column."""
        return typed_rows(self.answer)

    def to_arrow(self) -> Any:
        return arrow_table(self.answer)

    def to_pandas(self) -> Any:
        return pandas_frame(self.answer)

    def again(self) -> ResultSet:
        """The same query, to be sent again."""
        return ResultSet(self._fetch)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows())

    def __len__(self) -> int:
        return len(self.answer.rows)

    def __repr__(self) -> str:
        return as_text(self.answer)

    def _repr_html_(self) -> str:
        return as_html(self.answer)


class ViewQuery(ResultSet):
    """A query of a view's rows.

    client.view("visitors").where(url="/home").between("2026-11-15", "2026-11-16").limit(10).rows()
    """

    def __init__(self, service: Service, request: ViewRequest) -> None:
        self._service, self._request = service, request
        super().__init__(partial(service.ask, request))

    def where(self, **keys: object) -> ViewQuery:
        """Only rows with these values of key columns; None is null."""
        given = {n: None if value is None else key_text(value) for n, value in keys.items()}
        values = {**self._request.key_values, **given}
        return self._changed(
            keys={name: value for name, value in values.items() if value is not None},
            null=",".join(name for name, value in values.items() if value is None) or None,
        )

    def between(
        self, since: str | date | None = None, until: str | date | None = None
    ) -> ViewQuery:
        """Only rows whose window starts in [since, until)."""
        bounds = [None if bound is None else key_text(bound) for bound in (since, until)]
        return self._changed(since=bounds[0], until=bounds[1])

    def limit(self, most: int) -> ViewQuery:
        """At most this number of rows."""
        return self._changed(limit=most)

    def again(self) -> ViewQuery:
        return self._changed()

    def _changed(self, **changes: Any) -> ViewQuery:
        return ViewQuery(self._service, replace(self._request, **changes))


def key_text(value: object) -> str:
    """A key value as text for the server; a timestamp without a zone is in UTC.

    >>> key_text(True), key_text(datetime(2026, 11, 15, 19)), key_text(1.5)
    ('true', '2026-11-15T19:00:00+00:00', '1.5')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
    return value.isoformat() if isinstance(value, date) else str(value)
