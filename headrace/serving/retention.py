"""The retention of alerts: old alerts are removed and never raised again.

An alert is removed when it was raised before the floor, its notifications are settled, and nothing
can raise it again:
  over a stream   its event arrived before the floor, and a generation contains its row. Speed has
                  only rows that were decided after the boundary, and of a generation's rows those
                  that arrived before the floor are no candidates (serving/alert_candidates.py);
  over views      its row has left the answer, so it would return as another alert;
  else            its rule or watch was removed.
The floor is `alerts.keep` before now. It is saved in the transaction that removes, and never goes
back. tests/serving/test_retention.py checks each, and kills it.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from headrace.compile.plan import Plan, RulePlan, ShapePlan
from headrace.core.failpoint import failpoint
from headrace.core.position import Position
from headrace.core.time import Clock, now_us
from headrace.serving.alert_candidates import FLOOR, read_candidate_progress, read_floor
from headrace.serving.alert_metrics import ALERT, DELIVERED, count_removed, destination_kind
from headrace.serving.alerts import bump_alerts_version
from headrace.serving.catalog import read_plan
from headrace.serving.commits import write_meta
from headrace.serving.database import Database, Transaction

CHUNK = 1_000  # alerts of a rule that one transaction removes


class AlertRetention:
    """Removes the alerts of one store."""

    def __init__(self, db: Database, keep_us: int, clock: Clock = now_us) -> None:
        self.db, self.keep_us, self.clock = db, keep_us, clock

    def remove_old(self) -> int:
        """Remove all old alerts, in chunks; returns how many."""
        removed = 0
        while part := self._remove_chunk():
            removed += part
        return removed

    def _remove_chunk(self) -> int:
        now = self.clock()
        with self.db.write() as db:
            _raise_floor(db, now - self.keep_us)
            removal = _Removal(db, read_floor(db), now)
            removed = removal.remove_alerts()
            removal.remove_notifications()
            if removed:
                bump_alerts_version(db)
            failpoint("alerts.removing")
        failpoint("alerts.removed")
        return removed


def _raise_floor(db: Transaction, floor_us: int) -> None:
    write_meta(db, FLOOR, str(max(floor_us, read_floor(db))))


@dataclass(frozen=True, slots=True)
class _Removal:
    """One chunk, inside a transaction."""

    db: Transaction
    floor_us: int
    now_us: int

    def remove_alerts(self) -> int:
        old = self.db.execute(
            "SELECT DISTINCT rule FROM _alerts WHERE raised_at < ?", (self.floor_us,)
        ).fetchall()
        plan = read_plan(self.db) if old else None
        found = [id for (name,) in old for id in self._removable(name, plan)]
        delete = "DELETE FROM _alerts WHERE id = ? RETURNING rule, severity"
        count_removed(self.db, ALERT, [self.db.execute(delete, (id,)).fetchone() for id in found])
        return len(found)

    def _removable(self, name: str, plan: Plan | None) -> list[str]:
        raiser = self._raiser(name, plan)
        if raiser is None:
            return [id for id, _ in self._old(name, self.floor_us, "true")]
        if isinstance(raiser, RulePlan) and raiser.keys is not None:
            return [
                id for id, _ in self._old(name, self._raised_before(raiser), "left_at IS NOT NULL")
            ]
        if (at := read_candidate_progress(self.db, raiser)) is None:
            return []
        found = self._old(name, self._raised_before(raiser), f"arrived_at < {self.floor_us}")
        return [id for id, position in found if _absorbed(Position.parse(position), at.boundary)]

    def _raiser(self, name: str, plan: Plan | None) -> RulePlan | ShapePlan | None:
        """The rule or shape that could raise the alerts of this name again."""
        rule = next((rule for rule in plan.rules if rule.name == name), None) if plan else None
        if plan is None or rule is not None:
            return rule
        shapes = {shape.name: shape for shape in plan.shapes}
        row = self.db.execute(
            "SELECT shape FROM _watches WHERE name = ? AND state = 'active'", (name,)
        ).fetchone()
        return shapes.get(row[0]) if row else None

    def _raised_before(self, raiser: RulePlan | ShapePlan) -> int:
        """Alerts raised before this time may be removed; those that may suppress others stay."""
        suppress = raiser.suppress_us if isinstance(raiser, RulePlan) else None
        return min(self.floor_us, self.now_us - suppress) if suppress else self.floor_us

    def _old(self, name: str, age_us: int, condition: str) -> list[tuple[str, str]]:
        """The oldest alerts without a waiting notification."""
        waiting = "SELECT alerts FROM _outbox WHERE rule = ? AND state = 'waiting'"
        held = {id for (text,) in self.db.execute(waiting, (name,)) for id in _ids(text)}
        rows = self.db.execute(
            "SELECT id, position FROM _alerts WHERE rule = ? AND raised_at < ? "
            f"AND {condition} ORDER BY number LIMIT {CHUNK + len(held)}",
            (name, age_us),
        )
        return [(id, position) for id, position in rows if id not in held][:CHUNK]

    def remove_notifications(self) -> None:
        """A notification is removed with the last of its alerts."""
        ended = self.db.execute(
            "SELECT number, queue, state, alerts FROM _outbox WHERE ended_at < ?", (self.floor_us,)
        ).fetchall()
        gone = [
            (n, queue, state) for n, queue, state, ids in ended if not self._any_exists(_ids(ids))
        ]
        self.db.executemany("DELETE FROM _outbox WHERE number = ?", [(n,) for n, *_ in gone])
        delivered = [
            (destination_kind(queue), "") for _, queue, state in gone if state == DELIVERED
        ]
        count_removed(self.db, DELIVERED, delivered)

    def _any_exists(self, alerts: list[str]) -> bool:
        """Whether one of the alerts exists."""
        sql = "SELECT 1 FROM _alerts WHERE id = ?"
        return any(self.db.execute(sql, (id,)).fetchone() for id in alerts)


def _ids(text: str) -> list[str]:
    """The alerts of a notification."""
    return msgspec.json.decode(text, type=list[str])


def _absorbed(position: Position, boundary: Position) -> bool:
    """Whether the generation contains everything up to a position. A position with another number
    of partitions is of a stream that does not exist any more.
    """
    return len(position.offsets) != len(boundary.offsets) or position <= boundary
