"""The ledger of alerts: read and acknowledged.

An alert is written once, when it is raised (serving/raising.py). After that only what people and
batch say of it changes: who has acknowledged it, and whether it was withdrawn. `alerts` is the same
ledger as a view. tests/run/test_rule_service.py checks it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.core.errors import NotFound
from headrace.core.rule import Severity
from headrace.core.time import iso
from headrace.serving.commits import read_meta, write_meta
from headrace.serving.database import Transaction
from headrace.serving.notices import Delivery, deliveries

_COLUMNS = (
    "id, rule, version, severity, state, body, event_time, raised_at, raised_by, missed, "
    "suppressed_by, withdrawn_at, acknowledged_by, acknowledged_at, note, number"
)
LISTED = 100
_SEVERITIES = tuple(severity.value for severity in Severity)  # the gravest last
_PLACES = (f"WHEN '{severity}' THEN {n}" for n, severity in enumerate(_SEVERITIES))
_GRAVITY = f"CASE severity {' '.join(_PLACES)} END"
LEDGER = "ledger"  # of `_meta`: a number that grows with each change


class Alert(msgspec.Struct, frozen=True):
    """One alert as it is told."""

    id: str
    rule: str
    version: int
    severity: str
    state: str  # open, acknowledged, suppressed, muted, backfilled, missed
    body: dict[str, Any]
    event_time: str
    raised_at: str
    raised_by: str  # speed, or the generation
    missed: bool = False  # speed had been there and had not found it
    suppressed_by: str | None = None
    withdrawn_at: str | None = None  # when batch did not find it
    acknowledged_by: str | None = None
    acknowledged_at: str | None = None
    note: str | None = None
    number: int = 0  # in the ledger; a later alert has a larger one
    deliveries: list[Delivery] = []


class Wanted(msgspec.Struct, frozen=True):
    """Which alerts are asked for."""

    rule: str | None = None
    state: str | None = None
    missed: bool = False
    withdrawn: bool = False
    limit: int = LISTED
    each: int | None = None  # at most so many of each rule, the gravest rules first
    before: int | None = None  # only alerts that came before the one of this number
    among: tuple[str, ...] | None = None  # only these rules, as the caller may read no others


class AlertGroup(msgspec.Struct, frozen=True):
    """The alerts of one rule among those that are asked for."""

    rule: str
    severity: str  # the gravest of them
    alerts: int
    newest_at: str


class Alerts(msgspec.Struct, frozen=True):
    """Some of the alerts that are asked for, and how many there are of each rule."""

    alerts: list[Alert]
    total: int
    groups: list[AlertGroup]  # the gravest first


class AlertCounts(msgspec.Struct, frozen=True):
    """How many alerts of a rule there are of each kind, and how many notifications."""

    alerts: int = 0
    open: int = 0
    suppressed: int = 0
    muted: int = 0
    missed: int = 0
    withdrawn: int = 0
    waiting: int = 0
    failed: int = 0


def changed(db: Transaction) -> None:
    """Let those who watch the ledger know, inside the caller's transaction."""
    write_meta(db, LEDGER, str(int(changes(db)) + 1))


def changes(db: Transaction) -> str:
    """Grows with each change of the ledger."""
    return read_meta(db, LEDGER) or "0"


def page(db: Transaction, wanted: Wanted) -> Alerts:
    """Alerts of those that are asked for, and how many there are in all."""
    where, values = _where(db, wanted)
    groups = _groups(db, where, values)
    total = sum(group.alerts for group in groups)
    if wanted.before is not None:
        where, values = f"{where} AND number < ?", [*values, wanted.before]
    if wanted.each is not None:
        return Alerts(_of_each(db, where, values, wanted), total, groups)
    newest = f"WHERE {where} ORDER BY number DESC LIMIT ?"
    return Alerts(_read(db, newest, [*values, wanted.limit]), total, groups)


def alerts(db: Transaction, wanted: Wanted) -> list[Alert]:
    """The alerts of a page."""
    return page(db, wanted).alerts


def _where(db: Transaction, wanted: Wanted) -> tuple[str, list[Any]]:
    """SQL that holds for what is asked for. `missed` and `withdrawn` together mean those that are
    one of both.
    """
    conditions, values = ["1"], list[Any]()
    for column in ("rule", "state"):
        if value := getattr(wanted, column):
            conditions.append(f"{column} = ?")
            values.append(value)
    kinds = ["missed"] if wanted.missed else []
    kinds += ["withdrawn_at IS NOT NULL"] if wanted.withdrawn else []
    if kinds:
        conditions.append(f"({' OR '.join(kinds)})")
    if wanted.among is not None:
        listed, among = db.listed(wanted.among)
        conditions.append(f"rule IN ({listed})")
        values.append(among)
    return " AND ".join(conditions), values


def _groups(db: Transaction, where: str, values: list[Any]) -> list[AlertGroup]:
    rows = db.execute(
        f"SELECT rule, max({_GRAVITY}) AS gravity, count(*), max(raised_at) AS newest FROM _ledger "
        f"WHERE {where} GROUP BY rule ORDER BY gravity DESC, newest DESC, rule",
        values,
    )
    return [
        AlertGroup(rule, _SEVERITIES[gravity], many, iso(newest))
        for rule, gravity, many, newest in rows
    ]


def _of_each(db: Transaction, where: str, values: list[Any], wanted: Wanted) -> list[Alert]:
    places = (
        f"SELECT number, max({_GRAVITY}) OVER (PARTITION BY rule) AS gravity, "
        "row_number() OVER (PARTITION BY rule ORDER BY number DESC) AS place "
        f"FROM _ledger WHERE {where}"
    )
    gravest = f"JOIN ({places}) USING (number) WHERE place <= ? ORDER BY gravity DESC, rule, "
    return _read(db, f"{gravest} number DESC LIMIT ?", [*values, wanted.each, wanted.limit])


def _read(db: Transaction, rest: str, values: list[Any]) -> list[Alert]:
    return [_alert(row) for row in db.execute(f"SELECT {_COLUMNS} FROM _ledger {rest}", values)]


def alert(db: Transaction, id: str) -> Alert:
    """One alert, with what became of its notifications. The beginning of its id is enough."""
    like = _read(db, "WHERE id >= ?1 AND id < ?1 || 'g' LIMIT 2", [id])
    exact = [alert for alert in like if alert.id == id]
    if len(exact or like) != 1:
        several = "several alerts begin with" if like else "there is no alert"
        raise NotFound(f"{several} '{id[:64]}'")
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
    """An alert as notifications say it, and whether it was notified."""
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
    """Somebody has seen it; a second time changes the note and says who was last."""
    found = alert(db, id)
    db.execute(
        "UPDATE _alerts SET acknowledged_by = ?, acknowledged_at = ?, note = ? WHERE id = ?",
        (who, now_us, note, found.id),
    )
    changed(db)
    return alert(db, found.id)


def numbers(db: Transaction, rule: str) -> AlertCounts:
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


def ids_at(db: Transaction, rule: str, partition: int, offset: int, limit: int) -> list[str]:
    """The alerts of a rule over a stream whose row has this place in the log."""
    # Such a row is known by its place first: [partition,offset,…
    first, after = f"[{partition},{offset},", f"[{partition},{offset}-"
    sql = "SELECT id FROM _alerts WHERE rule = ? AND row_key >= ? AND row_key < ? LIMIT ?"
    return [id for (id,) in db.execute(sql, (rule, first, after, limit)).fetchall()]


def count_by_rule(db: Transaction) -> dict[str, int]:
    return dict(db.execute("SELECT rule, count(*) FROM _alerts GROUP BY rule").fetchall())
