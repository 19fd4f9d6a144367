"""The rows of a view after some events: `Reference(…).answer(view, events)`.

A name in FROM is a stream (its events), a table (its rows) or a query (answered in turn), whatever
its case. The answer depends on nothing but the arguments: events of a stream may come in any
order, since position in the log is read from `_offset` and `_partition`.
tests/testing/test_views.py checks it.

How late the events of a view's windows were is the view's own SELECT with other aggregates: the
keys stay, HAVING, ORDER BY and LIMIT go, and every group counts its events and those that are late.
tests/testing/test_reference_engine.py checks it, tests/transcripts/computed_*.yaml say what the
values of computed columns are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from headrace.core.errors import UnknownName
from headrace.testing.reference.aggregates import aggregating
from headrace.testing.reference.clauses import name_of
from headrace.testing.reference.expressions import evaluate
from headrace.testing.reference.match_clause import clause_of
from headrace.testing.reference.matches import matched
from headrace.testing.reference.names import HIDDEN, NameScope, VisibleColumn, read, resolve
from headrace.testing.reference.order import EVENT_TIME
from headrace.testing.reference.processors import ReferenceProcessor, call_of, run_processor
from headrace.testing.reference.relations import Clock, Table, TableLookup
from headrace.testing.reference.rules import apply_rules, rules_of
from headrace.testing.reference.thresholds import threshold_matches, threshold_of
from headrace.testing.reference.values import shown
from headrace.testing.reference.views import run_select


@dataclass(frozen=True, slots=True)
class StreamWatermark:
    """A stream's event time is in `column`; its watermark is `delay_us` behind the newest."""

    column: str
    delay_us: int


Rows = Sequence[Mapping[str, Any]]
WatermarksByStream = Mapping[str, int | None] | None


class Reference:
    """A project as the reference sees it.

    `tables` gives each table's rows; the columns of one that may be empty can be given in
    `table_columns`. `watermarks` gives the time column and the delay of each stream that has a
    watermark, `processors` the classes that queries may call, and `files` the decision tables that
    rules are read from. `closed` says that the input has ended: MATCH_RECOGNIZE then reads every
    row, and knows the last. `steps_max` is how many steps the search of a key may take.

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
        watermarks: Mapping[str, StreamWatermark] | None = None,
        processors: Mapping[str, ReferenceProcessor] | None = None,
        closed: bool = False,
        files: Mapping[str, str] | None = None,
        steps_max: int | None = None,
    ) -> None:
        self._streams = _folded(streams)
        self._tables = _folded(tables)
        self._table_columns = _folded(table_columns or {})
        self._watermarks: dict[str, StreamWatermark] = _folded(watermarks or {})
        self._processors: dict[str, ReferenceProcessor] = _folded(processors or {})
        self._queries: dict[str, str] = _folded(queries)
        self._closed = closed
        self._files = files or {}
        self._steps_max = steps_max

    def answer(
        self, view: str, events: Mapping[str, Rows], watermarks_us: WatermarksByStream = None
    ) -> list[dict[str, Any]]:
        """The view's rows, timestamps as ISO 8601 text; in order if the view has ORDER BY.
        `watermarks_us` gives the watermarks of streams that do not follow from the events alone.
        """
        table = self._named(_folded(events), watermarks_us and _folded(watermarks_us))(view)
        return [{name: shown(row.get(name.lower())) for name in table.names} for row in table.rows]

    def lateness(self, view: str, events: Mapping[str, Rows]) -> list[dict[str, Any]]:
        """For each group of a view its `key` values, and how many of its events were late."""
        query, keys = lateness_query(read(self._queries[view.lower()]))
        table = run_select(query, self._named(_folded(events)))
        return [
            {"key": [shown(row.get(name.lower())) for name in keys], **numbers_of(row)}
            for row in table.rows
        ]

    def columns(self, view: str) -> tuple[str, ...]:
        """The names of the view's columns, in order."""
        return self._named({})(view).names

    def _named(
        self, events: Mapping[str, Rows], watermarks_us: WatermarksByStream = None
    ) -> TableLookup:
        known: dict[str, Table] = {}

        def named(name: str) -> Table:
            folded = name.lower()
            if folded not in known:
                known[folded] = self._table(folded, events, watermarks_us, named)
            return known[folded]

        return named

    def _table(
        self,
        name: str,
        events: Mapping[str, Rows],
        watermarks_us: WatermarksByStream,
        named: TableLookup,
    ) -> Table:
        if name in self._streams:
            table = _table(self._streams[name], events.get(name, ()))
            mark = self._watermarks.get(name)
            if mark is None:
                return table
            return _timed(
                table, mark, watermarks_us[name] if watermarks_us else _watermark_us(table, mark)
            )
        if name in self._tables:
            return _table(self._table_columns.get(name), self._tables[name])
        if name in self._queries:
            return self._answered(self._queries[name], named)
        raise UnknownName(f"there is no stream, table or view named '{name}'")

    def _answered(self, query: str, named: TableLookup) -> Table:
        if said := threshold_of(query):
            return threshold_matches(said, run_select(read(f"SELECT * {said.rest}"), named))
        clause = clause_of(query)
        if clause is not None:
            stream = named(clause.stream)
            matches = matched(clause, stream, closed=self._closed, steps_max=self._steps_max)
            return run_select(read(clause.query), lambda _: matches)
        rules = rules_of(query, self._files)
        if rules is not None:
            return apply_rules(rules, named, run_select)
        call = call_of(query)
        if call is None:
            return run_select(read(query), named)
        if call.name.lower() not in self._processors:
            raise UnknownName(f"there is no processor named '{call.name}'")
        return run_processor(call, self._processors[call.name.lower()], named(call.stream))


def _folded(named: Mapping[str, Any]) -> dict[str, Any]:
    return {name.lower(): value for name, value in named.items()}


def _table(columns: Sequence[str] | None, rows: Rows) -> Table:
    names = columns or list(dict.fromkeys(name for row in rows for name in row))
    return Table(tuple(names), [_folded(row) for row in rows])


def _timed(table: Table, watermark: StreamWatermark, watermark_us: int | None) -> Table:
    """A stream's events with their event time, and the stream's clock."""
    column = watermark.column.lower()
    rows = [row | {EVENT_TIME: row.get(column)} for row in table.rows]
    return Table(table.names, rows, Clock(("", column), watermark_us))


def _watermark_us(table: Table, watermark: StreamWatermark) -> int | None:
    """The delay behind the newest event of the partition that is furthest behind."""
    newest: dict[int, int] = {}
    for event in table.rows:
        time, partition = event.get(watermark.column.lower()), event.get("_partition", 0)
        if time is not None:
            newest[partition] = max(time.us, newest.get(partition, time.us))
    return min(newest.values()) - watermark.delay_us if newest else None


NUMBERS = {
    "on_time": "count_if(NOT {event}._late)",
    "late": "count_if({event}._late)",
    "late_by_max": "max({event}._lateness) FILTER (WHERE {event}._late)",
    "late_by_mean": "avg({event}._lateness) FILTER (WHERE {event}._late)",
}
_MARK = "lateness_"


def lateness_query(query: exp.Select) -> tuple[exp.Select, list[str]]:
    """The query for lateness, with its numbers named `lateness_…`, and the names of its keys."""
    plain = [item for item in query.expressions if not any(map(aggregating, item.walk()))]
    query = query.copy()
    for clause in ("having", "order", "limit"):
        query.set(clause, None)
    event = query.args["from_"].this.alias_or_name
    for name, text in NUMBERS.items():
        query.select(f"{text.format(event=event)} AS {_MARK}{name}", dialect="spark", copy=False)
    return query, [name_of(item) for item in plain]


def numbers_of(row: dict[str, object]) -> dict[str, object]:
    return {name: row[_MARK + name] for name in NUMBERS}


def computed(expressions: Mapping[str, str], event: Mapping[str, Any]) -> dict[str, Any]:
    """The values of expressions over an event that has its stored and hidden columns.

    >>> computed({"total": "CAST(price * many AS BIGINT)"}, {"price": 3, "many": 2})
    {'total': 6}
    """
    scope = NameScope(
        tuple(VisibleColumn("event", name) for name in dict.fromkeys((*event, *HIDDEN)))
    )
    row = {("event", name.lower()): value for name, value in event.items()}
    return {
        name: evaluate(resolve(read(f"SELECT {sql} AS value").expressions[0].this, scope), row)
        for name, sql in expressions.items()
    }
