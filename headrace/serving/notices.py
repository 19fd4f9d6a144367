"""The notifications of alerts: one for each destination that a rule or watch notifies.

A notification is put into the outbox in the transaction that decides on its alerts, under a key
that its alerts decide, so it is decided once. What became of it is kept as long as its alerts are.
tests/serving/test_raising.py and tests/run/test_rule_service.py check it.
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


class Notifier(Protocol):
    """Whose alerts are told, and to whom: a rule or a watch."""

    @property
    def name(self) -> str: ...

    @property
    def severity(self) -> str: ...

    @property
    def destinations(self) -> tuple[Destination, ...]: ...


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
    """Queue one notification of these alerts for each of the rule's destinations."""
    ids = [alert["id"] for alert in alerts]
    key = _key(kind, ids)
    said = {"key": key, "kind": kind, "rule": rule.name, "severity": rule.severity}
    _put(db, rule, key, ids, msgspec.json.encode({**said, "alerts": alerts}), now_us)


def end_notice(db: Transaction, watch: Notifier, number: int, why: str, now_us: int) -> None:
    """Queue the last notification of a watch for each of its destinations."""
    key = hashlib.sha256(f"{watch.name}\n{number}".encode()).hexdigest()[:32] + f":{ENDED}"
    said = {"key": key, "kind": ENDED, "rule": watch.name, "severity": watch.severity}
    ended = {"alerts": [], "why": why, "ended_at": iso(now_us)}
    _put(db, watch, key, [], msgspec.json.encode({**said, **ended}), now_us)


def _put(
    db: Transaction, rule: Notifier, key: str, ids: list[str], body: bytes, now_us: int
) -> None:
    queues = [destination.name for destination in rule.destinations]
    put_notification(db, queues, key, rule.name, msgspec.json.encode(ids).decode(), body, now_us)


def _key(kind: str, ids: Sequence[str]) -> str:
    """The alert's id, where there is one alert; a correction is another notification."""
    whole = ids[0] if len(ids) == 1 else hashlib.sha256("".join(ids).encode()).hexdigest()[:32]
    return f"{whole}:{kind}" if kind == WITHDRAWN else whole


def _named(db: Transaction, rules: Sequence[RulePlan]) -> set[tuple[str, str]]:
    """The rules and watches, each with a destination that it names."""
    watches = "SELECT name, destinations FROM _watches WHERE state <> 'removed'"
    several = [(rule.name, rule.destinations) for rule in rules]
    several += [(name, read_destinations(text)) for name, text in db.execute(watches)]
    return {(name, destination.name) for name, named in several for destination in named}


def read_destinations(text: str) -> tuple[Destination, ...]:
    return msgspec.json.decode(text, type=tuple[Destination, ...])


def forget_others(db: Database, rules: Sequence[RulePlan], now_us: int) -> None:
    """End what waits for a destination that its rule does not name any more."""
    with db.write() as connection:
        waiting = connection.execute(
            "SELECT DISTINCT rule, queue FROM _outbox WHERE state = 'waiting' AND rule IS NOT NULL"
        ).fetchall()
        for rule, queue in set(waiting) - _named(connection, rules):
            connection.execute(
                "UPDATE _outbox SET state = 'failed', reason = ?, ended_at = ? "
                "WHERE state = 'waiting' AND rule = ? AND queue = ?",
                ("the rule does not name it any more", now_us, rule, queue),
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
        "SELECT number, rule, queue FROM _outbox WHERE state = 'failed' "
        "AND (?1 IS NULL OR lower(rule) = lower(?1)) "
        "AND (?2 IS NULL OR alerts LIKE '%' || ?2 || '%')",
        (rule, alert),
    ).fetchall()
    named = _named(db, rules)
    again = [(now_us, number) for number, *pair in failed if tuple(pair) in named]
    db.executemany(
        "UPDATE _outbox SET state = 'waiting', attempts = 0, due_at = ?, reason = NULL, "
        "ended_at = NULL WHERE number = ?",
        again,
    )
    return len(again)


def deliveries(db: Transaction, rule: str, alert: str) -> list[Delivery]:
    """What became of the notifications of one alert."""
    rows = db.execute(
        "SELECT queue, key, state, attempts, reason FROM _outbox "
        "WHERE rule = ? AND alerts LIKE '%' || ? || '%' ORDER BY number",
        (rule, alert),
    )
    return [Delivery(*row) for row in rows]
