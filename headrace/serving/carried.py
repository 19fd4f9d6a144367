"""The states of carried views, by key: at the boundary, and at speed's position.

The state of a key after the boundary is a row of the speed table, or that of the generation if the
key had no event since. States are written in the transaction of the epoch or promotion that
computed them, together with its rows, and have a checksum. An empty state means that nothing is
kept for a key any more, and SET_ASIDE that the search for a pattern was given up.

`_disorder` stores where events arrived out of order, by the newest group concerned. While
`provisional` is 1, speed's rows are not consistent with the generation, and speed computes them
again from the boundary in its next epoch. tests/serving/test_carried.py checks each case.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headrace.compile.plan import ViewPlan
from headrace.core.pattern import SET_ASIDE
from headrace.serving.checksums import check, checksum_of
from headrace.serving.database import Transaction
from headrace.serving.store import NOW, CarriedEpoch, StateRow

_COLUMNS = (
    "(_key TEXT PRIMARY KEY, _time INTEGER, _seq INTEGER, _state BLOB, _timer INTEGER, "
    "_checksum INTEGER) WITHOUT ROWID"
)


_UPSERT = (
    "ON CONFLICT (_key) DO UPDATE SET _time = excluded._time, _seq = excluded._seq, "
    "_state = excluded._state, _timer = excluded._timer, _checksum = excluded._checksum"
)
_IS_SET_ASIDE = f"_state = x'{SET_ASIDE.hex()}'"


def state_tables(name: str, version: str) -> tuple[str, str, str]:
    """The tables of states at the boundary, at speed's position, and of a staged build."""
    whole = f"{name}_{version}"
    return f'"_state_{whole}"', f'"_state_speed_{whole}"', f'"_state_{whole}_staged"'


def create_states(db: Transaction, plan: ViewPlan) -> None:
    if plan.carry:
        for table in state_tables(plan.name, plan.recompute):
            db.execute(f"CREATE TABLE IF NOT EXISTS {table} {_COLUMNS}")
            index = table[:-1] + '_timers"'
            db.execute(
                f"CREATE INDEX IF NOT EXISTS {index} ON {table} (_timer) WHERE _timer IS NOT NULL"
            )
            aside = table[:-1] + '_aside"'
            db.execute(
                f"CREATE INDEX IF NOT EXISTS {aside} ON {table} (_time) WHERE {_IS_SET_ASIDE}"
            )


def drop_states(db: Transaction, name: str, version: str) -> None:
    for table in state_tables(name, version):
        db.execute(f"DROP TABLE IF EXISTS {table}")
    db.execute("DELETE FROM _disorder WHERE version = ?", (version,))


def read_states(
    db: Transaction,
    plan: ViewPlan,
    keys: Sequence[str] | None,
    due_us: int | None,
    *,
    at_boundary: bool,
) -> list[StateRow]:
    """The states of some keys and of those whose timer is due, or of all keys, at the boundary or
    at speed's position.
    """
    generation, speed, _ = state_tables(plan.name, plan.recompute)
    tables = (generation,) if at_boundary else (generation, speed)
    if keys is None:
        found = {row[0]: row for table in tables for row in db.execute(f"SELECT * FROM {table}")}
    else:
        found = _read_some(db, tables, keys, due_us)
    states = (checked_state(plan.name, *row) for row in found.values())
    return [state for state in states if state[3]]


def set_aside_keys(db: Transaction, plan: ViewPlan) -> list[tuple[str, int]]:
    """The keys whose search for the view's pattern was given up, with the event time of the row at
    which it was, ordered by it.
    """
    if plan.carry is None or plan.carry.match is None:
        return []
    found: dict[str, int] = {}
    for table in state_tables(plan.name, plan.recompute)[:2]:
        found |= db.execute(f"SELECT _key, _time FROM {table} WHERE {_IS_SET_ASIDE}").fetchall()
    return sorted(found.items(), key=lambda pair: pair[1])


def count_states(db: Transaction, plan: ViewPlan) -> int:
    """The number of states; a key with a state in both tables counts twice."""
    counts = [
        db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        for table in state_tables(plan.name, plan.recompute)[:2]
    ]
    return int(sum(counts))


def _read_some(
    db: Transaction, tables: Sequence[str], keys: Sequence[str], due_us: int | None
) -> dict[str, Sequence[Any]]:
    due = [
        key
        for table in tables
        for (key,) in db.execute(f"SELECT _key FROM {table} WHERE _timer <= ?", (due_us,))
    ]
    listed, wanted = db.listed([*keys, *due])
    found: dict[str, Sequence[Any]] = {}
    for table in tables:
        rows = db.execute(
            f"SELECT s.* FROM ({listed}) AS k CROSS JOIN {table} AS s WHERE s._key = k.value",
            (wanted,),
        )
        found |= {row[0]: row for row in rows}
    return found


def commit_states(db: Transaction, plan: ViewPlan, epoch: CarriedEpoch, group: int) -> None:
    """Add an epoch's states, inside the caller's transaction."""
    _, speed, _ = state_tables(plan.name, plan.recompute)
    if epoch.rebased:
        db.execute(f"DELETE FROM {speed}")
        db.execute("DELETE FROM _disorder WHERE version = ?", (plan.recompute,))
    _put(db, speed, epoch.states)
    if epoch.disorder is not None:
        newest = group if epoch.disorder == NOW else epoch.disorder
        db.execute(
            "INSERT INTO _disorder VALUES (?, ?, ?) ON CONFLICT (version) DO UPDATE SET "
            "newest = excluded.newest, provisional = excluded.provisional",
            (plan.recompute, newest, int(epoch.provisional)),
        )


def stage_states(db: Transaction, plan: ViewPlan, states: Iterable[StateRow]) -> None:
    _, _, staged = state_tables(plan.name, plan.recompute)
    db.execute(f"DELETE FROM {staged}")
    _put(db, staged, states)


def promote_states(db: Transaction, plan: ViewPlan, full: bool, group: int, ahead: bool) -> None:
    """Make a build's states those of the boundary at the end of `group`; `ahead` says whether speed
    has committed epochs after it.
    """
    generation, speed, staged = state_tables(plan.name, plan.recompute)
    if full:
        db.execute(f"DELETE FROM {generation}")
    db.execute(f"INSERT INTO {generation} SELECT * FROM {staged} WHERE true {_UPSERT}")
    db.execute(f"DELETE FROM {generation} WHERE _state = ?", (b"",))
    db.execute(f"DELETE FROM {staged}")
    if not ahead:
        db.execute(f"DELETE FROM {speed}")
        db.execute("DELETE FROM _disorder WHERE version = ?", (plan.recompute,))
    # Events out of order that the generation contains do not matter any more. Later ones precede,
    # in event order, events that the generation contains.
    db.execute(
        "DELETE FROM _disorder WHERE version = ? AND newest <= ? AND provisional = 0",
        (plan.recompute, group),
    )
    db.execute("UPDATE _disorder SET provisional = 1 WHERE version = ?", (plan.recompute,))


def needs_rebase(db: Transaction, version: str) -> bool:
    """Whether speed's rows of a version are not consistent with its generation."""
    row = db.execute(
        "SELECT max(provisional) FROM _disorder WHERE version = ?", (version,)
    ).fetchone()
    return bool(row[0])


def consistent_up_to(db: Transaction, version: str, group: int) -> bool:
    """Whether speed's rows of a version up to a group do not depend on later events."""
    sql = "SELECT 1 FROM _disorder WHERE version = ? AND (newest > ? OR provisional = 1)"
    return db.execute(sql, (version, group)).fetchone() is None


def _put(db: Transaction, table: str, states: Iterable[StateRow]) -> None:
    rows = [(*state, state_checksum(*state)) for state in states]
    db.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?, ?) {_UPSERT}", rows)


def state_checksum(key: str, time: int, seq: int, state: bytes, timer: int | None) -> int:
    return checksum_of((key, time, seq, timer), state)


def checked_state(
    view: str, key: str, time: int, seq: int, state: bytes, timer: int | None, checksum: int | None
) -> StateRow:
    """A stored state; CorruptStore if it is not the one that was written."""
    check(checksum, (key, time, seq, timer), state, f"a state of '{view}'")
    return key, time, seq, state, timer
