"""The rows of a rule over views beside the ledger: which have no alert yet, and which have left.

A row is the same one while its keys are. A session is the same one while it grows: it is the row of
each alert whose session has the same other keys and lies inside its window. So a session that the
rule selects is one alert, however many events extend it.
tests/serving/test_raising.py checks what is raised.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from headrace.compile.plan import WINDOW, OutputPlan, RulePlan, ViewPlan
from headrace.compile.translate import typed_name
from headrace.serving.finish import quoted
from headrace.serving.sessions import Session, Sessions

_STANDING = "SELECT row_key FROM _alerts WHERE rule = ? AND left_at IS NULL"


def new_rows(db: sqlite3.Connection, rule: RulePlan, view: ViewPlan) -> Iterator[Sequence[Any]]:
    """The rows that no alert has: what each is known by, then its columns."""
    rows = f"SELECT * FROM ({_keyed(rule, view)})"
    if rule.session is None:
        known = f"{_STANDING} AND row_key = _row_key"
        unknown = f"{rows} WHERE NOT EXISTS ({known}) ORDER BY _row_key"
        return db.execute(unknown, (rule.name,))
    alerts = Sessions(_sessions(rule, view, db.execute(_STANDING, (rule.name,))))
    found = db.execute(f"{rows} ORDER BY _row_key")
    return (row for row in found if not any(map(alerts.inside, _sessions(rule, view, [row]))))


def left_rows(db: sqlite3.Connection, rule: RulePlan, view: ViewPlan) -> list[str]:
    """What the rows are known by that have an alert and are not in the answer any more."""
    keys = f"SELECT _row_key FROM ({_keyed(rule, view)})"
    if rule.session is None:
        return [key for (key,) in db.execute(f"{_STANDING} EXCEPT {keys}", (rule.name,))]
    answer = Sessions(_sessions(rule, view, db.execute(keys)))
    alerts = _sessions(rule, view, db.execute(_STANDING, (rule.name,)))
    return [alert.key for alert in alerts if answer.holding(alert) is None]


def _sessions(rule: RulePlan, view: ViewPlan, rows: Iterable[Sequence[Any]]) -> Iterator[Session]:
    """The sessions of rows that begin with what they are known by."""
    place = _columns(rule, view).index(f"{rule.session}_start")
    for row in rows:
        values = msgspec.json.decode(row[0])
        start_us, end_us = values.pop(place), values.pop(place)
        yield Session(start_us, end_us, msgspec.json.encode(values), row[0])


def _keyed(rule: RulePlan, view: ViewPlan) -> str:
    """SELECT of the rows of the rule's answer, each with what it is known by."""
    columns = ", ".join(map(quoted, _columns(rule, view)))
    return f"SELECT json_array({columns}) AS _row_key, * FROM {quoted(typed_name(view.name))}"


def _columns(rule: RulePlan, view: ViewPlan) -> list[str]:
    """The columns of the store that a row is known by; a window has two."""
    keys = [output for output in view.outputs if output.name in (rule.keys or ())]
    return [name for output in keys for name in _stored(output)]


def _stored(output: OutputPlan) -> list[str]:
    window = output.type == WINDOW
    return [f"{output.name}_start", f"{output.name}_end"] if window else [output.name]
