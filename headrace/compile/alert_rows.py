"""The hidden view of a rule's alerts: the rows of the rule's stream, grouped by all of their
values.

A row has its position in the log, its time, the arrival time of its event, and its values; so one
row is one alert, the same in both layers. Its time is the event time, whether the user selects it
or not; for a match that of its last row, for a threshold that of the event that reached it.
tests/laws/test_alerts.py compares both layers, tests/compile/test_rules.py has the SQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from headrace.compile.derive import event_time, has_row_time, streams_below
from headrace.compile.resolve import Queries, ResolvedQuery
from headrace.core.event import ARRIVED_AT, DATED, OFFSET, PARTITION
from headrace.core.origin import Origin
from headrace.core.rule import hidden
from headrace.define.dialect import parse_select
from headrace.define.project import Project

TIME, ARRIVED = "_time", "_arrived"
Types = list[tuple[str, str]]


def with_row_time(
    resolved: ResolvedQuery, ordered: Queries, project: Project
) -> tuple[ResolvedQuery, str | None]:
    """The stream with a column of its rows' time, and the name of that column, if there is one."""
    if any(has_row_time(below) for below in streams_below(resolved, ordered)):
        return resolved, DATED  # the rows have it already, like their position
    time = event_time(resolved.stream or "", ordered, project)
    if time is None:
        return resolved, None
    select = resolved.select.copy()
    column = exp.column(time, table=resolved.stream_alias)
    select.select(exp.alias_(column, DATED), copy=False)
    return replace(resolved, select=select), DATED


def alert_select(
    stream: str, columns: Types, time: str | None, origin: Origin, also: Mapping[str, str]
) -> exp.Select:
    """The SELECT of the alerts of a stream's rows; `also` has hidden columns."""
    own = [(name, type) for name, type in columns if not hidden(name)]
    row_time = f"coalesce({time}, {ARRIVED_AT})" if time else ARRIVED_AT
    items = [PARTITION, OFFSET, f"{row_time} AS {TIME}", f"{ARRIVED_AT} AS {ARRIVED}", *also]
    items += [_item(name, type) for name, type in own]
    return parse_select(f"SELECT DISTINCT {', '.join(items)} FROM {stream}", origin)


def _item(name: str, type: str) -> str:
    # A VARIANT cannot be grouped by, so its JSON text is used.
    return f"to_json(`{name}`) AS `{name}`" if type == "variant" else f"`{name}`"
