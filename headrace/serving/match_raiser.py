"""Raises the matches of watches as alerts, each once, until its watch ends.

    evaluate(shape):  new rows of the shape  ->  alerts, outbox, ended watches, in one transaction

The id of a match is a digest of the watch's name and the row: its partition, offset, the watch's
number and the row's values. So batch computes the same ids as speed, and an evaluation that was
killed resumes where it stopped. Matches are processed in the order of event times; the one that
ends its watch is the last. An event that arrived at the watch's UNTIL or later is not a match.
tests/serving/test_match_raiser.py checks each, and kills it at each failpoint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import msgspec

from headrace.compile.plan import ShapePlan, ViewPlan
from headrace.core.failpoint import failpoint
from headrace.core.rule import RAISED, hidden
from headrace.core.time import Clock, iso, now_us
from headrace.serving.alert_candidates import (
    CHUNK,
    CandidateProgress,
    Row,
    bodies_of,
    raised_rows,
    read_candidate_progress,
    stream_rows,
)
from headrace.serving.alerts import bump_alerts_version
from headrace.serving.database import Database, Transaction
from headrace.serving.notifications import notify
from headrace.serving.watches import RunningWatch, active_watches, end_watch, expired_watches


@dataclass(frozen=True, slots=True)
class Match:
    """A row of a shape's view that is not an alert yet."""

    row_key: str
    fresh: bool  # found by speed
    time_us: int
    arrived_us: int
    watch: int
    done: bool  # the watch's WHEN is true
    body: dict[str, Any]


class MatchRaiser:
    """Raises the matches of watches, one shape at a time."""

    def __init__(self, db: Database, clock: Clock = now_us) -> None:
        self.db, self.clock = db, clock

    def evaluate(self, shape: ShapePlan) -> int:
        """Raise new matches; returns how many new rows there were."""
        with self.db.read() as db:
            at = read_candidate_progress(db, shape)
            before = db.execute(
                "SELECT position, marks, generation FROM _watch_looks WHERE shape = ?",
                (shape.name,),
            ).fetchone()
            if at is None or before == at.stored():
                return 0
            promoted = before is None or before[2] != at.generation
            count = 0
            for part in _matches(db, shape, at.view, promoted):
                self._save(at, part)
                count += len(part)
        with self.db.write() as writer:
            writer.execute(
                "INSERT INTO _watch_looks VALUES (?, ?, ?, ?) ON CONFLICT (shape) DO UPDATE SET "
                "position = excluded.position, marks = excluded.marks, "
                "generation = excluded.generation",
                (shape.name, *at.stored()),
            )
        return count

    def _save(self, at: CandidateProgress, part: Sequence[Match]) -> None:
        now = self.clock()
        with self.db.write() as db:
            active = active_watches(db, (match.watch for match in part))
            for match in part:
                watch = active.get(match.watch)
                if watch is not None and (after := _raise(db, at, watch, match, now)):
                    active[match.watch] = after
                else:
                    active.pop(match.watch, None)
            bump_alerts_version(db)
            failpoint("watches.saving")
        failpoint("watches.saved")

    def end_expired(self) -> int:
        """End the watches whose UNTIL has passed; returns how many."""
        now = self.clock()
        with self.db.read() as db:
            expired = expired_watches(db, now)
        if expired:
            with self.db.write() as writer:
                for watch in expired:
                    assert watch.until_us is not None
                    why = f"its UNTIL time was reached: {iso(watch.until_us)}"
                    end_watch(writer, watch, why, now)
        return len(expired)


def _matches(
    db: Transaction, shape: ShapePlan, view: ViewPlan, promoted: bool
) -> Iterator[list[Match]]:
    """New rows of active watches in the order of their times, in chunks."""
    rows = _new_rows(db, shape, stream_rows(db, view, promoted))
    outputs = [output for output in view.outputs if not hidden(output.name)]
    while part := list(islice(rows, CHUNK)):
        bodies = bodies_of(outputs, [row[8:] for row in part])
        yield [
            Match(row[0], bool(row[1]), row[4], row[5], row[6], bool(row[7]), body)
            for row, body in zip(part, bodies, strict=True)
        ]


def _new_rows(db: Transaction, shape: ShapePlan, rows: Sequence[Row]) -> Iterator[Row]:
    """The rows of active watches that are not alerts yet."""
    sql = "SELECT number, name FROM _watches WHERE shape = ? AND state = 'active'"
    active = dict(db.execute(sql, (shape.name,)).fetchall())
    keys: dict[int, list[str]] = {}
    for row in rows:
        if row[6] in active:
            keys.setdefault(row[6], []).append(row[0])
    known = {watch: raised_rows(db, active[watch], row_keys) for watch, row_keys in keys.items()}
    return (row for row in rows if row[6] in known and row[0] not in known[row[6]])


def _raise(
    db: Transaction, at: CandidateProgress, watch: RunningWatch, match: Match, now: int
) -> RunningWatch | None:
    """Save a match and its notification; returns the watch after it, None if it has ended."""
    if watch.until_us is not None and match.arrived_us >= watch.until_us:
        return watch
    id = hashlib.sha256(f"{watch.name}\n{match.row_key}".encode()).hexdigest()[:32]
    by = "speed" if match.fresh else f"generation {at.generation}"
    added = db.execute(
        "INSERT INTO _alerts (id, rule, version, row_key, severity, body, event_time, per, "
        "raised_at, raised_by, position, missed, arrived_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, '[]', ?, ?, ?, 0, ?) ON CONFLICT DO NOTHING",
        (
            id, watch.name, watch.number, match.row_key, watch.severity,
            msgspec.json.encode(match.body).decode(), match.time_us, now, by, str(at.position),
            match.arrived_us,
        ),
    ).rowcount  # fmt: skip
    if not added:
        return watch
    document = {
        "id": id, "rule": watch.name, "severity": watch.severity,
        "event_time": iso(match.time_us), "raised_at": iso(now), "raised_by": by,
        "body": match.body,
    }  # fmt: skip
    notify(db, watch, RAISED, [document], now)
    db.execute("UPDATE _watches SET matches = matches + 1 WHERE number = ?", (watch.number,))
    count = watch.matches + 1
    if match.done:
        end_watch(db, watch, "its WHEN condition was met", now)
    elif watch.matches_max is not None and count >= watch.matches_max:
        end_watch(db, watch, f"it had {count} {'match' if count == 1 else 'matches'}", now)
    else:
        return replace(watch, matches=count)
    return None
