"""The watches of a project: what each searches for, since when, and how it ended.

A watch is a row that is inserted once and ends once; a changed watch is another row with the same
name. `lower` is the position at which it starts, NULL until a running project has started it, and
`upper` the position from which on its constants are not compared any more.
tests/serving/test_match_raiser.py and tests/run/test_watch_service.py check it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from headrace.compile.plan import ShapePlan, WatchPlan
from headrace.core.errors import NotFound
from headrace.core.position import Position
from headrace.core.time import iso
from headrace.destination.kinds import Destination
from headrace.serving.database import Transaction
from headrace.serving.notifications import notify_end, read_destinations

ACTIVE, ENDED, REMOVED = "active", "ended", "removed"
_OPEN_ENDED = 2**63 - 1
_SHOWN = (
    "number, name, state, severity, matches, kept, added_at, added_by, until_us, matches_max, "
    "ended_at, why, shape, text"
)
_ACTIVE = (
    "SELECT number, name, severity, destinations, until_us, matches_max, matches FROM _watches "
    "WHERE state = 'active'"
)
_KNOWN = "SELECT max(number) FROM _watches GROUP BY lower(name)"


class WatchStatus(msgspec.Struct, frozen=True):
    """A watch and its state."""

    number: int
    name: str
    state: str  # active, ended
    severity: str
    matches: int
    kept: bool  # added to the running project; else it is in the project's files
    added_at: str
    added_by: str
    until: str | None
    matches_max: int | None
    ended_at: str | None
    why: str | None  # why it has ended
    shape: str
    text: str


class WatchCounts(msgspec.Struct, frozen=True):
    """How many watches there are in each state, their matches, and their notifications."""

    live: int
    ended: int
    matches: int
    waiting: int
    failed: int
    problems: list[str] = []


@dataclass(frozen=True, slots=True)
class RunningWatch:
    """An active watch, as needed to raise its matches."""

    number: int
    name: str
    severity: str
    destinations: tuple[Destination, ...]
    until_us: int | None
    matches_max: int | None
    matches: int


def add(
    db: Transaction, watch: WatchPlan, kept: bool, who: str, now_us: int, lower: str | None
) -> None:
    """Add a watch, inside the caller's transaction; an active one of the same name is removed."""
    remove_active(db, watch.name, "it was replaced by a new definition", now_us)
    db.execute(
        "INSERT INTO _watches (name, text, shape, constants, severity, destinations, until_us, "
        "matches_max, kept, added_at, added_by, lower, state, matches) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'active', 0)",
        (
            watch.name, watch.text, watch.shape, _json(watch.constants), watch.severity,
            _json(watch.destinations), watch.until_us, watch.matches_max, kept, now_us, who, lower,
        ),
    )  # fmt: skip


def remove_active(db: Transaction, name: str, why: str, now_us: int) -> None:
    """Remove the active watch of this name, if there is one; nobody is notified."""
    db.execute(
        "UPDATE _watches SET state = 'removed', ended_at = ?, why = ? "
        "WHERE lower(name) = lower(?) AND state = 'active'",
        (now_us, why, name),
    )


def remove(db: Transaction, name: str, who: str, now_us: int) -> None:
    """Remove a watch, also one that has ended; its alerts stay."""
    db.execute(
        "UPDATE _watches SET state = 'removed', ended_at = coalesce(ended_at, ?), "
        "why = coalesce(why, ?) WHERE lower(name) = lower(?) AND state <> 'removed'",
        (now_us, f"removed by {who}", name),
    )


def end_watch(db: Transaction, watch: RunningWatch, why: str, now_us: int) -> None:
    """End a watch and notify its destinations once, inside the caller's transaction."""
    ended = db.execute(
        "UPDATE _watches SET state = 'ended', ended_at = ?, why = ? "
        "WHERE number = ? AND state = 'active'",
        (now_us, why, watch.number),
    ).rowcount
    if ended:
        notify_end(db, watch, watch.number, why, now_us)


def deploy_files(db: Transaction, watches: Sequence[WatchPlan], who: str, now_us: int) -> None:
    """Record which watches of the project's files are new, changed and removed. One that has ended
    and is unchanged stays ended.
    """
    rows = db.execute(
        f"SELECT name, text FROM _watches WHERE number IN ({_KNOWN}) "
        "AND state <> 'removed' AND kept = 0"
    )
    before = dict(rows.fetchall())
    for watch in watches:
        if before.pop(watch.name, None) != watch.text:
            add(db, watch, False, who, now_us, None)
    for name in before:
        remove_active(db, name, "it was removed from the project's files", now_us)


def kept_shapes(db: Transaction) -> dict[str, str]:
    """Of each shape of active watches that are kept in the store, the text of one."""
    return dict(
        db.execute(
            "SELECT shape, text FROM _watches WHERE number IN (SELECT min(number) FROM _watches "
            "WHERE state = 'active' AND kept = 1 GROUP BY shape)"
        )
    )


def added_shapes(db: Transaction) -> set[str]:
    """The shapes of all watches that are kept in the store, also of ended ones."""
    return {shape for (shape,) in db.execute("SELECT DISTINCT shape FROM _watches WHERE kept = 1")}


def kept_names(db: Transaction) -> list[str]:
    """The names of active watches that are kept in the store."""
    rows = db.execute("SELECT name FROM _watches WHERE state = 'active' AND kept = 1")
    return [name for (name,) in rows]


def start_watches(db: Transaction, shape: str, position: Position) -> None:
    """Start the watches that were added while the project was stopped at this position, and set the
    upper position of those that have ended.
    """
    db.execute(
        "UPDATE _watches SET lower = ? WHERE shape = ? AND lower IS NULL", (str(position), shape)
    )
    db.execute(
        "UPDATE _watches SET upper = ? WHERE shape = ? AND upper IS NULL AND state <> 'active'",
        (str(position), shape),
    )


def shapes_to_close(db: Transaction) -> set[str]:
    """The shapes of ended watches whose constants are still compared."""
    rows = db.execute(
        "SELECT DISTINCT shape FROM _watches WHERE upper IS NULL AND state <> ?", (ACTIVE,)
    )
    return {shape for (shape,) in rows}


def constants(
    db: Transaction, shape: ShapePlan, boundary: Position
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of the shape's table of constants, and of the table of their bounds, without watches
    that ended before the boundary.
    """
    rows, known = list[dict[str, Any]](), list[tuple[Any, ...]]()
    for number, values, lower, upper in db.execute(
        "SELECT number, constants, lower, upper FROM _watches WHERE shape = ? "
        "AND lower IS NOT NULL ORDER BY number",
        (shape.name,),
    ):
        ends = Position.parse(upper) if upper else None
        if ends is not None and ends <= boundary:
            continue
        read = tuple(msgspec.json.decode(values))
        known.append(read)
        row: dict[str, Any] = {f"_c{n}": value for n, value in enumerate(read)}
        row |= {"_watch": number}
        row |= {f"_from{n}": offset for n, offset in enumerate(Position.parse(lower).offsets)}
        count = len(Position.parse(lower).offsets)
        last = ends.offsets if ends else (_OPEN_ENDED,) * count
        rows.append(row | {f"_to{n}": offset for n, offset in enumerate(last)})
    weakest = {"min": min, "max": max}
    bounds = {f"_c{n}": weakest[which](v[n] for v in known) for n, which in shape.bounds if known}
    return rows, [bounds] if known else []


def active_watches(db: Transaction, numbers: Iterable[int]) -> dict[int, RunningWatch]:
    """The active ones of these watches, by number."""
    found = {}
    for number in set(numbers):
        row = db.execute(f"{_ACTIVE} AND number = ?", (number,)).fetchone()
        if row:
            found[number] = _active_watch(row)
    return found


def expired_watches(db: Transaction, now_us: int) -> list[RunningWatch]:
    """The active watches whose UNTIL has passed."""
    rows = db.execute(
        f"{_ACTIVE} AND until_us <= ? AND lower IS NOT NULL ORDER BY until_us", (now_us,)
    )
    return [_active_watch(row) for row in rows]


def _active_watch(row: Sequence[Any]) -> RunningWatch:
    number, name, severity, text, until, most, matches = row
    return RunningWatch(number, name, severity, read_destinations(text), until, most, matches)


def destinations_of(db: Transaction) -> dict[str, Destination]:
    """All destinations of watches, by name."""
    rows = db.execute("SELECT DISTINCT destinations FROM _watches")
    return {one.name: one for (text,) in rows for one in read_destinations(text)}


def watches_into_streams(db: Transaction) -> list[WatchPlan]:
    """The active watches whose matches are sent to streams."""
    rows = db.execute("SELECT name, text, shape, destinations FROM _watches WHERE state = 'active'")
    found = ((*row, read_destinations(text)) for *row, text in rows)
    return [
        WatchPlan(name, text, shape, (), "", destinations, None, None)
        for name, text, shape, destinations in found
        if any(destination.feeds for destination in destinations)
    ]


def statuses(db: Transaction, state: str | None = None) -> list[WatchStatus]:
    """All watches that are not removed, by name."""
    rows = db.execute(
        f"SELECT {_SHOWN} FROM _watches WHERE number IN ({_KNOWN}) AND state <> 'removed' "
        "AND (CAST(?1 AS TEXT) IS NULL OR state = ?1) ORDER BY name",
        (state,),
    )
    return [_status(row) for row in rows]


def status(db: Transaction, name: str) -> WatchStatus:
    row = db.execute(
        f"SELECT {_SHOWN} FROM _watches WHERE number IN ({_KNOWN}) "
        "AND lower(name) = lower(?) AND state <> 'removed'",
        (name,),
    ).fetchone()
    if row is None:
        raise NotFound(f"there is no watch '{name}'", hint="`headrace watch list` shows all.")
    return _status(row)


def count_watches(db: Transaction, problems: Sequence[str] = ()) -> WatchCounts | None:
    """The counts of all watches; None if there are no watches."""
    found = {
        state: (count, matches)
        for state, count, matches in db.execute(
            f"SELECT state, count(*), sum(matches) FROM _watches WHERE number IN ({_KNOWN}) "
            "AND state <> 'removed' GROUP BY state"
        )
    }
    if not found:
        return None
    sent = dict(
        db.execute(
            "SELECT state, count(*) FROM _outbox WHERE rule IN (SELECT name FROM _watches) "
            "GROUP BY state"
        )
    )
    live, ended = found.get(ACTIVE, (0, 0)), found.get(ENDED, (0, 0))
    waiting, failed = sent.get("waiting", 0), sent.get("failed", 0)
    return WatchCounts(live[0], ended[0], live[1] + ended[1], waiting, failed, list(problems))


def _status(row: Sequence[Any]) -> WatchStatus:
    number, name, state, severity, matches, kept, added, who, until, most, ended, *rest = row
    return WatchStatus(
        number, name, state, severity, matches, bool(kept), iso(added), who,
        iso(until) if until is not None else None, most,
        iso(ended) if ended is not None else None, *rest,
    )  # fmt: skip


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def names_by_shape(db: Transaction, shapes: Sequence[str]) -> list[str]:
    """The names of all watches of some shapes, also of removed ones."""
    marks = ", ".join("?" * len(shapes))
    sql = f"SELECT DISTINCT name FROM _watches WHERE shape IN ({marks})"
    return [name for (name,) in db.execute(sql, shapes).fetchall()] if shapes else []
