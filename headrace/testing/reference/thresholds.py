"""`count(*) >= n WITHIN INTERVAL … PER key FROM stream`: a row for each event that reaches it.

An event reaches the threshold if the interval that ends with it holds enough events, or different
values, and would not without it. Events count when the watermark has passed them, in ORDER.
tests/testing/test_thresholds.py checks it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from headrace.core.errors import UnknownColumn
from headrace.core.time import duration_us
from headrace.testing.reference.expressions import evaluate
from headrace.testing.reference.names import key_column, read
from headrace.testing.reference.order import EVENT_TIME, by_key, event_time, in_order
from headrace.testing.reference.relations import Table
from headrace.testing.reference.sources import aliased
from headrace.testing.reference.values import Row, Timestamp, Value, grouping

_SAID = re.compile(
    r"\s*count\s*\(\s*(?:\*|DISTINCT\s+(?P<counted>.+?))\s*\)\s*(?P<more>>=|>)\s*(?P<number>\d+)"
    r"\s+WITHIN\s+INTERVAL\s+'?(?P<within>[\w\s]+?)'?(?:\s+PER\s+(?P<keys>\w+(?:\s*,\s*\w+)*))?"
    r"\s+(?P<rest>FROM\s.*)",
    re.I | re.S,
)


@dataclass(frozen=True, slots=True)
class ThresholdClause:
    """A parsed threshold: what is counted, by which keys, and the least count."""

    rest: str  # FROM … WHERE …
    keys: tuple[str, ...]
    least: int
    within_us: int
    counted: exp.Expr | None


def threshold_of(text: str) -> ThresholdClause | None:
    """The threshold that the query is, if it is one.

    >>> threshold_of("count(*) > 4 WITHIN INTERVAL 2 MINUTES PER ip FROM scans").least
    5
    """
    found = _SAID.fullmatch(text)
    if found is None:
        return None
    keys = tuple(key.strip().lower() for key in (found["keys"] or "").split(",") if key.strip())
    least = int(found["number"]) + (found["more"] == ">")
    counted = read(f"SELECT {found['counted']} FROM x").expressions[0] if found["counted"] else None
    return ThresholdClause(found["rest"], keys, least, duration_us(found["within"]), counted)


def threshold_matches(said: ThresholdClause, table: Table) -> Table:
    """The stream of thresholds that were reached."""
    for key in said.keys:
        if key not in map(str.lower, table.names):
            raise UnknownColumn(f"there is no column '{key}' to count by")
    names = {name.lower(): name for name in table.names}
    rows: list[dict[str, Value]] = []
    ripe = [row for row in aliased(table, "").rows if _ripe(row, table)]
    for events in by_key([key_column(("", key)) for key in said.keys], ripe):
        rows += _reached(said, in_order(events))
    return Table((*(names[key] for key in said.keys), "began", "ended"), rows)


def _ripe(row: Row, table: Table) -> bool:
    time = event_time(row)
    return time is not None and table.clock is not None and table.clock.passed(time.us)


def _reached(said: ThresholdClause, events: list[Row]) -> Iterator[dict[str, Value]]:
    for number, event in enumerate(events):
        within = [e for e in events[: number + 1] if _us(e) > _us(event) - said.within_us]
        times = _counted(said, within)
        if len(times) >= said.least > len(_counted(said, within[:-1])):
            place = {name: event.get(("", name)) for name in ("_offset", "_partition")}
            keys = {key: event[("", key)] for key in said.keys}
            ends = {"began": Timestamp(min(times)), "ended": Timestamp(_us(event))}
            yield keys | ends | place | {EVENT_TIME: Timestamp(_us(event))}


def _counted(said: ThresholdClause, events: list[Row]) -> list[int]:
    """The times of the events that count: all, or the last one of each value."""
    if said.counted is None:
        return [_us(event) for event in events]
    last: dict[Value, int] = {}
    for event in events:
        value = evaluate(said.counted, event)
        if value is not None:
            last[grouping(value)] = _us(event)
    return list(last.values())


def _us(event: Row) -> int:
    time = event_time(event)
    assert time is not None
    return int(time.us)
