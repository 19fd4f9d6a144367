"""The rows of a view after some events: `Reference(…).answer(view, events)`.

A name in FROM is a stream (its events), a table (its rows) or a query (answered in turn), whatever
its case. The answer depends on nothing but the arguments: events of a stream may come in any
order, since position in the log is read from `_offset` and `_partition`.
tests/testing/test_views.py checks it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.core.errors import UnknownName
from headrace.testing.reference.lateness import asked_for_lateness, numbers_of
from headrace.testing.reference.names import read
from headrace.testing.reference.sources import Named, Table
from headrace.testing.reference.values import shown
from headrace.testing.reference.views import answered

Rows = Sequence[Mapping[str, Any]]


class Reference:
    """A project as the reference sees it.

    `tables` gives each table's rows; the columns of one that may be empty can be said in
    `table_columns`.

    >>> reference = Reference(
    ...     streams={"clicks": ["user", "ms"]},
    ...     tables={},
    ...     queries={"slow": "SELECT user, max(ms) AS ms FROM clicks GROUP BY user"},
    ... )
    >>> reference.answer("slow", {"clicks": [{"user": "a", "ms": 3}, {"user": "a", "ms": 5}]})
    [{'user': 'a', 'ms': 5}]
    """

    def __init__(
        self,
        streams: Mapping[str, Sequence[str]],
        tables: Mapping[str, Rows],
        queries: Mapping[str, str],
        *,
        table_columns: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._streams = _folded(streams)
        self._tables = _folded(tables)
        self._table_columns = _folded(table_columns or {})
        self._queries: dict[str, str] = _folded(queries)

    def answer(self, view: str, events: Mapping[str, Rows]) -> list[dict[str, Any]]:
        """The view's rows, timestamps as ISO 8601 text; in order if the view has ORDER BY."""
        table = self._named(_folded(events))(view)
        return [{name: shown(row.get(name.lower())) for name in table.names} for row in table.rows]

    def lateness(self, view: str, events: Mapping[str, Rows]) -> list[dict[str, Any]]:
        """For each group of a view its `key` values, and how many of its events were late."""
        query, keys = asked_for_lateness(read(self._queries[view.lower()]))
        table = answered(query, self._named(_folded(events)))
        return [
            {"key": [shown(row.get(name.lower())) for name in keys], **numbers_of(row)}
            for row in table.rows
        ]

    def columns(self, view: str) -> tuple[str, ...]:
        """The names of the view's columns, in order."""
        return self._named({})(view).names

    def _named(self, events: Mapping[str, Rows]) -> Named:
        known: dict[str, Table] = {}

        def named(name: str) -> Table:
            folded = name.lower()
            if folded not in known:
                known[folded] = self._table(folded, events, named)
            return known[folded]

        return named

    def _table(self, name: str, events: Mapping[str, Rows], named: Named) -> Table:
        if name in self._streams:
            return _table(self._streams[name], events.get(name, ()))
        if name in self._tables:
            return _table(self._table_columns.get(name), self._tables[name])
        if name in self._queries:
            return answered(read(self._queries[name]), named)
        raise UnknownName(f"there is no stream, table or view named '{name}'")


def _folded(named: Mapping[str, Any]) -> dict[str, Any]:
    return {name.lower(): value for name, value in named.items()}


def _table(columns: Sequence[str] | None, rows: Rows) -> Table:
    names = columns or list(dict.fromkeys(name for row in rows for name in row))
    return Table(tuple(names), [_folded(row) for row in rows])
