"""The table of alerts: filtered, counted and acknowledged.

An alert is inserted once, when it is raised (serving/alert_raiser.py). After that only its
acknowledgement and whether batch has withdrawn it change. The view `alerts` shows the same rows.
tests/run/test_rule_service.py checks it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.core.errors import NotFound
from headrace.core.rule import Severity
from headrace.core.time import iso
from headrace.serving.commits import read_meta, write_meta
from headrace.serving.database import Transaction
from headrace.serving.notifications import Delivery, deliveries

_COLUMNS = (
    "id, rule, version, severity, state, body, event_time, raised_at, raised_by, missed, "
    "suppressed_by, withdrawn_at, acknowledged_by, acknowledged_at, note, number"
)
LISTED = 100
_SEVERITIES = tuple(severity.value for severity in Severity)  # lowest first
_RANKS = (f"WHEN '{severity}' THEN {n}" for n, severity in enumerate(_SEVERITIES))
_RANK = f"CASE severity {' '.join(_RANKS)} END"
ALERTS_VERSION = "ledger"  # the key in `_meta` of a number that grows with each change


class Alert(msgspec.Struct, frozen=True):
    """One alert."""

    id: str
    rule: str
    version: int
    severity: str
    state: str  # open, acknowledged, suppressed, muted, backfilled, missed
    body: dict[str, Any]
    event_time: str
    raised_at: str
    raised_by: str  # speed, or the generation
    missed: bool = False  # speed has processed its events and did not find it
    suppressed_by: str | None = None
    withdrawn_at: str | None = None  # when batch did not find it
    acknowledged_by: str | None = None
    acknowledged_at: str | None = None
    note: str | None = None
    number: int = 0  # of the row; later alerts have larger numbers
    deliveries: list[Delivery] = []


class AlertFilter(msgspec.Struct, frozen=True):
    """Which alerts to read."""

    rule: str | None = None
    state: str | None = None
    missed: bool = False
    withdrawn: bool = False
    limit: int = LISTED
    each: int | None = None  # maximum of each rule, rules of the highest severity first
    before: int | None = None  # only alerts with smaller numbers
    among: tuple[str, ...] | None = None  # only these rules: those that the caller may read


class AlertGroup(msgspec.Struct, frozen=True):
    """The matching alerts of one rule."""

    rule: str
    severity: str  # the highest of its alerts
    alerts: int
    newest_at: str


class Alerts(msgspec.Struct, frozen=True):
    """Some of the matching alerts, and how many match, in all and of each rule."""

    alerts: list[Alert]
    total: int
    groups: list[AlertGroup]  # highest severity first


class AlertCounts(msgspec.Struct, frozen=True):
    """How many alerts of a rule there are in each state, and how many notifications."""

    alerts: int = 0
    open: int = 0
    suppressed: int = 0
    muted: int = 0
    missed: int = 0
    withdrawn: int = 0
    waiting: int = 0
    failed: int = 0


def bump_alerts_version(db: Transaction) -> None:
    """Alerts have changed, inside the caller's transaction."""
    write_meta(db, ALERTS_VERSION, str(int(alerts_version(db)) + 1))


def alerts_version(db: Transaction) -> str:
    """Grows with each change of alerts."""
    return read_meta(db, ALERTS_VERSION) or "0"


def read_alerts(db: Transaction, filter: AlertFilter) -> Alerts:
    """The first matching alerts, and how many match."""
    where, values = _where(db, filter)
    groups = _groups(db, where, values)
    total = sum(group.alerts for group in groups)
    if filter.before is not None:
        where, values = f"{where} AND number < ?", [*values, filter.before]
    if filter.each is not None:
        return Alerts(_first_of_each_rule(db, where, values, filter), total, groups)
    newest = f"WHERE {where} ORDER BY number DESC LIMIT ?"
    return Alerts(_read(db, newest, [*values, filter.limit]), total, groups)


def _where(db: Transaction, filter: AlertFilter) -> tuple[str, list[Any]]:
    """The filter as SQL. `missed` and `withdrawn` together select alerts that are either."""
    conditions, values = ["true"], list[Any]()
    for column in ("rule", "state"):
        if value := getattr(filter, column):
            conditions.append(f"{column} = ?")
            values.append(value)
    kinds = ["missed = 1"] if filter.missed else []
    kinds += ["withdrawn_at IS NOT NULL"] if filter.withdrawn else []
    if kinds:
        conditions.append(f"({' OR '.join(kinds)})")
    if filter.among is not None:
        listed, among = db.listed(filter.among)
        conditions.append(f"rule IN ({listed})")
        values.append(among)
    return " AND ".join(conditions), values


def _groups(db: Transaction, where: str, values: list[Any]) -> list[AlertGroup]:
    rows = db.execute(
        f"SELECT rule, max({_RANK}) AS rank, count(*), max(raised_at) AS newest FROM _ledger "
        f"WHERE {where} GROUP BY rule ORDER BY rank DESC, newest DESC, rule",
        values,
    )
    return [
        AlertGroup(rule, _SEVERITIES[rank], many, iso(newest)) for rule, rank, many, newest in rows
    ]


def _first_of_each_rule(
    db: Transaction, where: str, values: list[Any], filter: AlertFilter
) -> list[Alert]:
    places = (
        f"SELECT number, max({_RANK}) OVER (PARTITION BY rule) AS rank, "
        "row_number() OVER (PARTITION BY rule ORDER BY number DESC) AS place "
        f"FROM _ledger WHERE {where}"
    )
    ranked = f"JOIN ({places}) AS ranked USING (number) WHERE place <= ? ORDER BY rank DESC, rule, "
    return _read(db, f"{ranked} number DESC LIMIT ?", [*values, filter.each, filter.limit])


def _read(db: Transaction, rest: str, values: list[Any]) -> list[Alert]:
    return [_alert(row) for row in db.execute(f"SELECT {_COLUMNS} FROM _ledger {rest}", values)]


def read_alert(db: Transaction, id: str) -> Alert:
    """One alert with its deliveries, by its id or an unambiguous prefix of it."""
    like = _read(db, "WHERE id >= ?1 AND id < ?1 || 'g' LIMIT 2", [id])
    exact = [alert for alert in like if alert.id == id]
    if len(exact or like) != 1:
        problem = "more than one alert id begins with" if like else "there is no alert"
        raise NotFound(f"{problem} '{id[:64]}'")
    (found,) = exact or like
    return msgspec.structs.replace(found, deliveries=deliveries(db, found.rule, found.id))


def _alert(row: tuple[Any, ...]) -> Alert:
    values = dict(zip(_COLUMNS.split(", "), row, strict=True))
    values["body"] = msgspec.json.decode(values["body"])
    values["missed"] = bool(values["missed"])
    for name in ("event_time", "raised_at", "withdrawn_at", "acknowledged_at"):
        values[name] = iso(values[name]) if values[name] is not None else None
    return Alert(**values)


def alert_document(db: Transaction, id: str) -> dict[str, Any]:
    """An alert as in the body of a notification, and whether it was notified."""
    row = db.execute(
        "SELECT rule, severity, event_time, raised_at, raised_by, body, withdrawn_at, "
        "quiet IS NULL FROM _alerts WHERE id = ?",
        (id,),
    ).fetchone()
    rule, severity, time, raised_at, raised_by, body, withdrawn_at, notified = row
    return {
        "id": id, "rule": rule, "severity": severity, "event_time": iso(time),
        "raised_at": iso(raised_at), "raised_by": raised_by, "body": msgspec.json.decode(body),
        "withdrawn_at": iso(withdrawn_at) if withdrawn_at else None, "notified": bool(notified),
    }  # fmt: skip


def acknowledge(db: Transaction, id: str, who: str, note: str | None, now_us: int) -> Alert:
    """Acknowledge an alert; a second time replaces who and the note."""
    found = read_alert(db, id)
    db.execute(
        "UPDATE _alerts SET acknowledged_by = ?, acknowledged_at = ?, note = ? WHERE id = ?",
        (who, now_us, note, found.id),
    )
    bump_alerts_version(db)
    return read_alert(db, found.id)


def count_alerts(db: Transaction, rule: str) -> AlertCounts:
    states = dict(
        db.execute("SELECT state, count(*) FROM _ledger WHERE rule = ? GROUP BY state", (rule,))
    )
    missed, withdrawn = db.execute(
        "SELECT coalesce(sum(missed), 0), count(withdrawn_at) FROM _alerts WHERE rule = ?", (rule,)
    ).fetchone()
    sent = dict(
        db.execute("SELECT state, count(*) FROM _outbox WHERE rule = ? GROUP BY state", (rule,))
    )
    return AlertCounts(
        sum(states.values()),
        states.get("open", 0),
        states.get("suppressed", 0),
        states.get("muted", 0),
        missed,
        withdrawn,
        sent.get("waiting", 0),
        sent.get("failed", 0),
    )


def alert_ids_at(db: Transaction, rule: str, partition: int, offset: int, limit: int) -> list[str]:
    """The alerts of a rule over a stream for the event at this partition and offset."""
    # The key of such a row starts with them: [partition,offset,…
    first, after = f"[{partition},{offset},", f"[{partition},{offset}-"
    sql = "SELECT id FROM _alerts WHERE rule = ? AND row_key >= ? AND row_key < ? LIMIT ?"
    return [id for (id,) in db.execute(sql, (rule, first, after, limit)).fetchall()]


def count_alerts_by_rule(db: Transaction) -> dict[str, int]:
    return dict(db.execute("SELECT rule, count(*) FROM _alerts GROUP BY rule").fetchall())
