"""The rows of a rule over views beside the ledger: which have no alert yet, and which have left.

A row is the same one while its keys are. A session is the same one while it grows: it is the row of
each alert whose session has the same other keys and lies inside its window. So a session that the
rule selects is one alert, however many events extend it.
tests/serving/test_alert_raiser.py checks what is raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from headrace.compile.plan import WINDOW, OutputPlan, RulePlan, ViewPlan
from headrace.serving.database import Transaction
from headrace.serving.read import rows_of
from headrace.serving.sessions import Session, Sessions

Keyed = tuple[Any, ...]  # what a row is known by, then its columns


def new_rows(db: Transaction, rule: RulePlan, view: ViewPlan) -> Iterator[Keyed]:
    """The rows that no alert has."""
    known, rows = _standing(db, rule), _keyed(db, rule, view)
    if rule.session is None:
        return (row for row in rows if row[0] not in known)
    alerts = Sessions(_sessions(rule, view, sorted(known)))
    return (row for row in rows if not any(map(alerts.inside, _sessions(rule, view, [row[0]]))))


def left_rows(db: Transaction, rule: RulePlan, view: ViewPlan) -> list[str]:
    """What the rows are known by that have an alert and are not in the answer any more."""
    known, keys = _standing(db, rule), [row[0] for row in _keyed(db, rule, view)]
    if rule.session is None:
        return sorted(known.difference(keys))
    answer = Sessions(_sessions(rule, view, keys))
    alerts = _sessions(rule, view, sorted(known))
    return [alert.key for alert in alerts if answer.holding(alert) is None]


def _standing(db: Transaction, rule: RulePlan) -> set[str]:
    """What the rows are known by that have an alert, and have not left the answer."""
    sql = "SELECT row_key FROM _alerts WHERE rule = ? AND left_at IS NULL"
    return {key for (key,) in db.execute(sql, (rule.name,))}


def _sessions(rule: RulePlan, view: ViewPlan, keys: Iterable[str]) -> Iterator[Session]:
    """The sessions of rows that are known by these."""
    shown = [name for output in view.outputs if _is_key(rule, output) for name in _stored(output)]
    place = shown.index(f"{rule.session}_start")
    for key in keys:
        values = msgspec.json.decode(key)
        start_us, end_us = values.pop(place), values.pop(place)
        yield Session(start_us, end_us, msgspec.json.encode(values), key)


def _keyed(db: Transaction, rule: RulePlan, view: ViewPlan) -> list[Keyed]:
    """The rows of the rule's answer, in the order of what they are known by."""
    shown = [_is_key(rule, output) for output in view.outputs for _ in _stored(output)]
    rows = []
    for row in rows_of(db, view, kept=True):
        values = [value for value, is_key in zip(row, shown, strict=False) if is_key]
        rows.append((msgspec.json.encode(values).decode(), *row))
    return sorted(rows, key=lambda row: str(row[0]))


def _is_key(rule: RulePlan, output: OutputPlan) -> bool:
    return output.name in (rule.keys or ())


def _stored(output: OutputPlan) -> list[str]:
    """The places of an output in a stored row; a window has two."""
    window = output.type == WINDOW
    return [f"{output.name}_start", f"{output.name}_end"] if window else [output.name]
