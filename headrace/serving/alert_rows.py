"""Compares the rows of a rule over views with its alerts: which rows are new, and which have left.

A row keeps its identity while its keys stay the same. A session keeps it while it grows: it is the
row of each alert whose session has the same other keys and lies inside its window. So a session
that the rule selects is one alert, however many events extend it.
tests/serving/test_alert_raiser.py checks what is raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from headrace.compile.plan import WINDOW, OutputPlan, RulePlan, ViewPlan
from headrace.serving.database import Transaction
from headrace.serving.read import read_view_rows
from headrace.serving.sessions import Session, Sessions

KeyedRow = tuple[Any, ...]  # the key of a row, then its columns


def new_rows(db: Transaction, rule: RulePlan, view: ViewPlan) -> Iterator[KeyedRow]:
    """The rows without an alert."""
    known, rows = _alerted_keys(db, rule), _keyed_rows(db, rule, view)
    if rule.session is None:
        return (row for row in rows if row[0] not in known)
    alerts = Sessions(_sessions(rule, view, sorted(known)))
    return (
        row for row in rows if not any(map(alerts.contained_in, _sessions(rule, view, [row[0]])))
    )


def left_rows(db: Transaction, rule: RulePlan, view: ViewPlan) -> list[str]:
    """The keys of rows that have an alert and are not in the answer any more."""
    known, keys = _alerted_keys(db, rule), [row[0] for row in _keyed_rows(db, rule, view)]
    if rule.session is None:
        return sorted(known.difference(keys))
    answer = Sessions(_sessions(rule, view, keys))
    alerts = _sessions(rule, view, sorted(known))
    return [alert.key for alert in alerts if answer.containing(alert) is None]


def _alerted_keys(db: Transaction, rule: RulePlan) -> set[str]:
    """The keys of rows that have an alert and were not marked as left."""
    sql = "SELECT row_key FROM _alerts WHERE rule = ? AND left_at IS NULL"
    return {key for (key,) in db.execute(sql, (rule.name,))}


def _sessions(rule: RulePlan, view: ViewPlan, keys: Iterable[str]) -> Iterator[Session]:
    """The sessions of rows with these keys."""
    columns = [
        name for output in view.outputs if _is_key(rule, output) for name in _stored_columns(output)
    ]
    index = columns.index(f"{rule.session}_start")
    for key in keys:
        values = msgspec.json.decode(key)
        start_us, end_us = values.pop(index), values.pop(index)
        yield Session(start_us, end_us, msgspec.json.encode(values), key)


def _keyed_rows(db: Transaction, rule: RulePlan, view: ViewPlan) -> list[KeyedRow]:
    """The rows of the rule's answer, sorted by key."""
    columns = [_is_key(rule, output) for output in view.outputs for _ in _stored_columns(output)]
    rows = []
    for row in read_view_rows(db, view, cached=True):
        values = [value for value, is_key in zip(row, columns, strict=False) if is_key]
        rows.append((msgspec.json.encode(values).decode(), *row))
    return sorted(rows, key=lambda row: str(row[0]))


def _is_key(rule: RulePlan, output: OutputPlan) -> bool:
    return output.name in (rule.keys or ())


def _stored_columns(output: OutputPlan) -> list[str]:
    """The columns of an output in a stored row; a window has two."""
    window = output.type == WINDOW
    return [f"{output.name}_start", f"{output.name}_end"] if window else [output.name]
