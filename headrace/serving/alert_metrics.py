"""Counters of rules, watches and notifications that never decrease.

Removed alerts and notifications are counted where they are removed, in the same transaction:
    raised = alerts in the store + removed alerts.
tests/serving/test_alert_metrics.py checks the equation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from headrace.core.time import SECOND
from headrace.serving.database import Transaction

ALERT, DELIVERED = "alert", "delivered"
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class DeliveryMetrics:
    """The notifications of one kind of destination."""

    delivered: int = 0
    failed: int = 0  # given up, until somebody retries them
    waiting: int = 0
    oldest_s: float = 0.0  # the age of the oldest waiting one


@dataclass(frozen=True, slots=True)
class AlertMetrics:
    """The counters at one time."""

    raised: dict[Pair, int]  # by rule and severity
    sent: dict[str, DeliveryMetrics]  # by kind of destination
    watches: int = 0  # that are active
    matches: int = 0  # of all watches, also removed ones


def count_removed(db: Transaction, what: str, removed: Iterable[Pair]) -> None:
    """Count removed rows, inside the caller's transaction."""
    db.executemany(
        "INSERT INTO _removed VALUES (?, ?, ?, ?) "
        "ON CONFLICT (what, name, kind) DO UPDATE "
        "SET count = _removed.count + excluded.count",
        [(what, *pair, count) for pair, count in Counter(removed).items()],
    )


def read_alert_metrics(db: Transaction, now_us: int) -> AlertMetrics:
    live, matches = db.execute(
        "SELECT count(*) FILTER (WHERE state = 'active'), coalesce(sum(matches), 0) FROM _watches"
    ).fetchone()
    return AlertMetrics(_raised(db), _deliveries(db, now_us), live, matches)


def _raised(db: Transaction) -> dict[Pair, int]:
    """Of rules only; there may be too many watches for one series each."""
    rows = db.execute(
        "SELECT name, kind, sum(count) FROM ("
        "SELECT rule AS name, severity AS kind, count(*) AS count FROM _alerts GROUP BY 1, 2 "
        "UNION ALL SELECT name, kind, count FROM _removed WHERE what = ?) AS counted "
        "WHERE name NOT IN (SELECT name FROM _watches) GROUP BY 1, 2",
        (ALERT,),
    )
    return {(rule, severity): count for rule, severity, count in rows}


def _deliveries(db: Transaction, now_us: int) -> dict[str, DeliveryMetrics]:
    counts, oldest = Counter[Pair](), dict[str, int]()
    for queue, state, count, queued_us in db.execute(
        "SELECT queue, state, count(*), min(queued_at) FROM _outbox WHERE rule IS NOT NULL "
        "GROUP BY 1, 2"
    ):
        kind = destination_kind(queue)
        counts[kind, state] += count
        if state == "waiting":
            oldest[kind] = min(queued_us, oldest.get(kind, queued_us))
    for kind, count in db.execute(
        "SELECT name, sum(count) FROM _removed WHERE what = ? GROUP BY 1", (DELIVERED,)
    ):
        counts[kind, DELIVERED] += count
    return {
        kind: DeliveryMetrics(
            counts[kind, DELIVERED],
            counts[kind, "failed"],
            counts[kind, "waiting"],
            max(0, now_us - oldest.get(kind, now_us)) / SECOND,
        )
        for kind, _ in sorted(counts)
    }


def destination_kind(destination: str) -> str:
    """
    >>> destination_kind("file alerts.ndjson")
    'file'
    """
    return destination.partition(" ")[0]
