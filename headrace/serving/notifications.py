"""The notifications of alerts: one for each destination of a rule or watch.

A notification is put into the outbox in the transaction that saves its alerts, under a key that is
computed from them, so it is queued once. Its delivery state is kept as long as its alerts are.
tests/serving/test_alert_raiser.py and tests/run/test_rule_service.py check it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from headrace.compile.plan import RulePlan
from headrace.core.rule import ENDED, WITHDRAWN
from headrace.core.time import iso
from headrace.destination.kinds import Destination
from headrace.serving.database import Database, Transaction
from headrace.serving.outbox import put_notification
from headrace.serving.stored_json import decode_stored


class Notifier(Protocol):
    """A rule or a watch: what notifies, and which destinations."""

    @property
    def name(self) -> str: ...

    @property
    def severity(self) -> str: ...

    @property
    def destinations(self) -> tuple[Destination, ...]: ...


class Delivery(msgspec.Struct, frozen=True):
    """The delivery state of an alert's notification at one destination."""

    action: str
    key: str
    state: str  # waiting, delivered, failed
    attempts: int
    reason: str | None


def notify(
    db: Transaction, rule: Notifier, kind: str, alerts: Sequence[dict[str, Any]], now_us: int
) -> None:
    """Queue one notification of these alerts for each of the rule's destinations."""
    ids = [alert["id"] for alert in alerts]
    key = _key(kind, ids)
    fields = {"key": key, "kind": kind, "rule": rule.name, "severity": rule.severity}
    _put(db, rule, key, ids, msgspec.json.encode({**fields, "alerts": alerts}), now_us)


def notify_end(db: Transaction, watch: Notifier, number: int, why: str, now_us: int) -> None:
    """Queue the last notification of a watch for each of its destinations."""
    key = hashlib.sha256(f"{watch.name}\n{number}".encode()).hexdigest()[:32] + f":{ENDED}"
    fields = {"key": key, "kind": ENDED, "rule": watch.name, "severity": watch.severity}
    end = {"alerts": [], "why": why, "ended_at": iso(now_us)}
    _put(db, watch, key, [], msgspec.json.encode({**fields, **end}), now_us)


def _put(
    db: Transaction, rule: Notifier, key: str, ids: list[str], body: bytes, now_us: int
) -> None:
    queues = [destination.name for destination in rule.destinations]
    put_notification(db, queues, key, rule.name, msgspec.json.encode(ids).decode(), body, now_us)


def _key(kind: str, ids: Sequence[str]) -> str:
    """The alert's id if there is one alert; a correction has a key of its own."""
    whole = ids[0] if len(ids) == 1 else hashlib.sha256("".join(ids).encode()).hexdigest()[:32]
    return f"{whole}:{kind}" if kind == WITHDRAWN else whole


def _destinations_by_rule(db: Transaction, rules: Sequence[RulePlan]) -> set[tuple[str, str]]:
    """The pairs of a rule or watch and one of its destinations."""
    watches = "SELECT name, destinations FROM _watches WHERE state <> 'removed'"
    several = [(rule.name, rule.destinations) for rule in rules]
    several += [(name, read_destinations(text)) for name, text in db.execute(watches)]
    return {(name, destination.name) for name, named in several for destination in named}


def read_destinations(text: str) -> tuple[Destination, ...]:
    return decode_stored(text, tuple[Destination, ...])


def fail_orphaned(db: Database, rules: Sequence[RulePlan], now_us: int) -> None:
    """Fail the waiting notifications for destinations that their rule has no more."""
    with db.write() as connection:
        waiting = connection.execute(
            "SELECT DISTINCT rule, queue FROM _outbox WHERE state = 'waiting' AND rule IS NOT NULL"
        ).fetchall()
        for rule, queue in set(waiting) - _destinations_by_rule(connection, rules):
            connection.execute(
                "UPDATE _outbox SET state = 'failed', reason = ?, ended_at = ? "
                "WHERE state = 'waiting' AND rule = ? AND queue = ?",
                ("the rule no longer names this destination", now_us, rule, queue),
            )


def retry(
    db: Transaction, rules: Sequence[RulePlan], rule: str | None, alert: str | None, now_us: int
) -> int:
    """Retry failed notifications, of one rule or watch, of one alert, or of all; returns how many.
    Those for destinations that their rule has no more are not retried.
    """
    failed = db.execute(
        "SELECT number, rule, queue FROM _outbox WHERE state = 'failed' "
        "AND (CAST(?1 AS TEXT) IS NULL OR lower(rule) = lower(?1)) "
        "AND (CAST(?2 AS TEXT) IS NULL OR alerts LIKE '%' || ?2 || '%')",
        (rule, alert),
    ).fetchall()
    named = _destinations_by_rule(db, rules)
    again = [(now_us, number) for number, *pair in failed if tuple(pair) in named]
    db.executemany(
        "UPDATE _outbox SET state = 'waiting', attempts = 0, due_at = ?, reason = NULL, "
        "ended_at = NULL WHERE number = ?",
        again,
    )
    return len(again)


def deliveries(db: Transaction, rule: str, alert: str) -> list[Delivery]:
    """The deliveries of one alert."""
    rows = db.execute(
        "SELECT queue, key, state, attempts, reason FROM _outbox "
        "WHERE rule = ? AND alerts LIKE '%' || ? || '%' ORDER BY number",
        (rule, alert),
    )
    return [Delivery(*row) for row in rows]
