"""The queue of each action: what is to be delivered, in the store.

A notice is added in the transaction that decides on its alerts, and has a key by which it is known
again, so it is decided once. What waits is in the table and not in memory, however long nobody
takes it. A notice whose delivery failed is due again later; the others go on without it.
tests/run/test_deliveries.py checks it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from headrace.compile.plan import ActionPlan, RulePlan
from headrace.core.time import iso
from headrace.serving.database import Database, Transaction

RAISED, MISSED, WITHDRAWN, ENDED = "raised", "missed", "withdrawn", "ended"
_DUE_ACTIONS = """
WITH RECURSIVE queues(action) AS (
  SELECT min(action) FROM _notices WHERE state = 'waiting'
  UNION ALL
  SELECT (SELECT min(action) FROM _notices WHERE state = 'waiting' AND action > queues.action)
  FROM queues WHERE action IS NOT NULL)
SELECT action FROM queues WHERE EXISTS (
  SELECT 1 FROM _notices n
  WHERE n.action = queues.action AND n.state = 'waiting' AND n.due_at <= ?)
"""


class Notifier(Protocol):
    """Whose alerts are told, and to whom: a rule or a watch."""

    @property
    def name(self) -> str: ...

    @property
    def severity(self) -> str: ...

    @property
    def actions(self) -> tuple[ActionPlan, ...]: ...


class Notice(msgspec.Struct, frozen=True):
    """One notification on its way to one action."""

    number: int
    key: str
    body: bytes  # JSON: key, kind, rule, severity, alerts
    attempts: int  # that have failed


class Delivery(msgspec.Struct, frozen=True):
    """What became of an alert's notification."""

    action: str
    key: str
    state: str  # waiting, delivered, failed
    attempts: int
    reason: str | None


def notify(
    db: Transaction,
    rule: Notifier,
    kind: str,
    alerts: Sequence[dict[str, Any]],
    now_us: int,
) -> None:
    """Queue one notification of these alerts for each of the rule's actions."""
    ids = [alert["id"] for alert in alerts]
    key = _key(kind, ids)
    said = {"key": key, "kind": kind, "rule": rule.name, "severity": rule.severity}
    _queue(db, rule, key, ids, msgspec.json.encode({**said, "alerts": alerts}), now_us)


def end_notice(db: Transaction, watch: Notifier, number: int, why: str, now_us: int) -> None:
    """Queue the last notification of a watch for each of its actions."""
    key = hashlib.sha256(f"{watch.name}\n{number}".encode()).hexdigest()[:32] + f":{ENDED}"
    said = {"key": key, "kind": ENDED, "rule": watch.name, "severity": watch.severity}
    ended = {"alerts": [], "why": why, "ended_at": iso(now_us)}
    _queue(db, watch, key, [], msgspec.json.encode({**said, **ended}), now_us)


def _queue(
    db: Transaction, rule: Notifier, key: str, ids: list[str], body: bytes, now_us: int
) -> None:
    db.executemany(
        "INSERT INTO _notices (action, key, rule, alerts, body, state, attempts, due_at, "
        "queued_at) VALUES (?1, ?2, ?3, ?4, ?5, 'waiting', 0, ?6, ?6) ON CONFLICT DO NOTHING",
        [
            (action.name, key, rule.name, msgspec.json.encode(ids).decode(), body, now_us)
            for action in rule.actions
        ],
    )


def _key(kind: str, ids: Sequence[str]) -> str:
    """The alert's id, where there is one alert; a correction is another notification."""
    whole = ids[0] if len(ids) == 1 else hashlib.sha256("".join(ids).encode()).hexdigest()[:32]
    return f"{whole}:{kind}" if kind == WITHDRAWN else whole


class Queue:
    """One action's notices."""

    def __init__(self, db: Database, action: ActionPlan) -> None:
        self.db, self.action = db, action.name

    def due(self, now_us: int, limit: int) -> list[Notice]:
        """The oldest that may be tried now."""
        with self.db.read() as db:
            rows = db.execute(
                "SELECT number, key, body, attempts FROM _notices "
                "WHERE action = ? AND state = 'waiting' AND due_at <= ? ORDER BY number LIMIT ?",
                (self.action, now_us, limit),
            )
            return [Notice(*row) for row in rows]

    def delivered(self, notices: Sequence[Notice], now_us: int) -> None:
        self._end(notices, "delivered", None, now_us)

    def failed(self, notices: Sequence[Notice], reason: str, now_us: int) -> None:
        """They are not tried again, and kept with the reason."""
        self._end(notices, "failed", reason, now_us)

    def _end(self, notices: Sequence[Notice], state: str, reason: str | None, now_us: int) -> None:
        # What was delivered is in the ledger; its text is needed no more.
        body = "NULL" if state == "delivered" else "body"
        with self.db.write() as db:
            db.executemany(
                f"UPDATE _notices SET state = ?, attempts = attempts + 1, reason = ?, "
                f"ended_at = ?, body = {body} WHERE number = ?",
                [(state, reason, now_us, notice.number) for notice in notices],
            )

    def later(self, notices: Sequence[Notice], reason: str, due_us: int) -> None:
        with self.db.write() as db:
            db.executemany(
                "UPDATE _notices SET attempts = attempts + 1, reason = ?, due_at = ? "
                "WHERE number = ?",
                [(reason, due_us, notice.number) for notice in notices],
            )


def due_actions(db: Transaction, now_us: int) -> list[str]:
    """The actions that have something to try now. It is asked ten times a second, so the index is
    searched once for each action: reading all that waits takes 80 ms for 200,000 notices.
    """
    return [action for (action,) in db.execute(_DUE_ACTIONS, (now_us,))]


def _named(db: Transaction, rules: Sequence[RulePlan]) -> set[tuple[str, str]]:
    """The rules and watches, each with an action that it names."""
    named = {(rule.name, action.name) for rule in rules for action in rule.actions}
    for name, actions in db.execute("SELECT name, actions FROM _watches WHERE state <> 'removed'"):
        plans = msgspec.json.decode(actions, type=tuple[ActionPlan, ...])
        named |= {(name, action.name) for action in plans}
    return named


def forget_other_actions(db: Database, rules: Sequence[RulePlan], now_us: int) -> None:
    """End what waits for an action that no rule names any more."""
    with db.write() as connection:
        waiting = connection.execute(
            "SELECT DISTINCT rule, action FROM _notices WHERE state = 'waiting'"
        ).fetchall()
        for rule, action in set(waiting) - _named(connection, rules):
            connection.execute(
                "UPDATE _notices SET state = 'failed', reason = ?, ended_at = ? "
                "WHERE state = 'waiting' AND rule = ? AND action = ?",
                ("the rule does not name it any more", now_us, rule, action),
            )


def retry(
    db: Transaction,
    rules: Sequence[RulePlan],
    rule: str | None,
    alert: str | None,
    now_us: int,
) -> int:
    """Let what has failed be tried again, of one rule or watch, of one alert, or of all; how many.
    What nobody names any more has nowhere to go.
    """
    failed = db.execute(
        "SELECT number, rule, action FROM _notices WHERE state = 'failed' "
        "AND (?1 IS NULL OR lower(rule) = lower(?1)) "
        "AND (?2 IS NULL OR alerts LIKE '%' || ?2 || '%')",
        (rule, alert),
    ).fetchall()
    named = _named(db, rules)
    again = [(now_us, number) for number, *pair in failed if tuple(pair) in named]
    db.executemany(
        "UPDATE _notices SET state = 'waiting', attempts = 0, due_at = ?, reason = NULL, "
        "ended_at = NULL WHERE number = ?",
        again,
    )
    return len(again)


def deliveries(db: Transaction, rule: str, alert: str) -> list[Delivery]:
    """What became of the notifications of one alert."""
    rows = db.execute(
        "SELECT action, key, state, attempts, reason FROM _notices "
        "WHERE rule = ? AND alerts LIKE '%' || ? || '%' ORDER BY number",
        (rule, alert),
    )
    return [Delivery(*row) for row in rows]
