"""The rows that become alerts: a stream's rows, kept by all that they say.

A row of the hidden view has its place in the log, its time, when its event arrived, and its values;
so one kept row is one alert, the same in both layers. Its time is that of the event, whether the
user selects it or not; of a match that of its last row, of a threshold that of the event which
reached it. tests/laws/test_alerts.py compares both layers, tests/compile/test_rules.py has the SQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from headrace.compile.derive import dates_its_rows, event_time, streams_below
from headrace.compile.resolve import Queries, Resolved
from headrace.core.event import ARRIVED_AT, DATED, OFFSET, PARTITION
from headrace.core.origin import Origin
from headrace.core.rule import hidden
from headrace.define.dialect import parse_select
from headrace.define.project import Project

TIME, ARRIVED = "_time", "_arrived"
Types = list[tuple[str, str]]


def dated(resolved: Resolved, ordered: Queries, project: Project) -> tuple[Resolved, str | None]:
    """The stream with the time of its rows, and the column that has it, if there is one."""
    if any(dates_its_rows(below) for below in streams_below(resolved, ordered)):
        return resolved, DATED  # it comes with the rows, as their place does
    time = event_time(resolved.stream or "", ordered, project)
    if time is None:
        return resolved, None
    select = resolved.select.copy()
    column = exp.column(time, table=resolved.stream_alias)
    select.select(exp.alias_(column, DATED), copy=False)
    return replace(resolved, select=select), DATED


def raised_rows(
    stream: str, columns: Types, time: str | None, origin: Origin, also: Mapping[str, str]
) -> exp.Select:
    """SELECT of the rows of a stream as they are kept; `also` has hidden columns."""
    own = [(name, type) for name, type in columns if not hidden(name)]
    moment = f"coalesce({time}, {ARRIVED_AT})" if time else ARRIVED_AT
    items = [PARTITION, OFFSET, f"{moment} AS {TIME}", f"{ARRIVED_AT} AS {ARRIVED}", *also]
    items += [_item(name, type) for name, type in own]
    return parse_select(f"SELECT DISTINCT {', '.join(items)} FROM {stream}", origin)


def _item(name: str, type: str) -> str:
    # Nothing is grouped by a VARIANT, which is shown as the text of its JSON.
    return f"to_json(`{name}`) AS `{name}`" if type == "variant" else f"`{name}`"
