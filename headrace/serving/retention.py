"""The end of alerts: what is old is removed from the ledger, and is never raised again.

An alert is removed when it was raised before the floor, its notifications are settled, and nothing
can raise it again:
  over a stream   its event arrived before the floor, and a generation has taken its row. Speed has
                  only rows that were decided after the boundary, and of a generation's rows those
                  whose events arrived before the floor are no candidates (serving/alert_candidates.py);
  over views      its row has left the answer, so it would come in as another alert;
  else            its rule or watch is no more.
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
from headrace.serving.alert_candidates import FLOOR, floor_of, standing
from headrace.serving.alert_metrics import ALERT, DELIVERED, kind_of, note_removed
from headrace.serving.alerts import bump_alerts_version
from headrace.serving.catalog import read_plan
from headrace.serving.commits import write_meta
from headrace.serving.database import Database, Transaction

CHUNK = 1_000  # alerts of a rule that one transaction removes


class Retention:
    """Removes the alerts of one store."""

    def __init__(self, db: Database, keep_us: int, clock: Clock = now_us) -> None:
        self.db, self.keep_us, self.clock = db, keep_us, clock

    def tidy(self) -> int:
        """Remove all that can go, a part at a time; how many alerts."""
        removed = 0
        while part := self._step():
            removed += part
        return removed

    def _step(self) -> int:
        now = self.clock()
        with self.db.write() as db:
            _raise_floor(db, now - self.keep_us)
            step = _Step(db, floor_of(db), now)
            removed = step.remove_alerts()
            step.remove_notices()
            if removed:
                bump_alerts_version(db)
            failpoint("alerts.removing")
        failpoint("alerts.removed")
        return removed


def _raise_floor(db: Transaction, floor_us: int) -> None:
    write_meta(db, FLOOR, str(max(floor_us, floor_of(db))))


@dataclass(frozen=True, slots=True)
class _Step:
    """One part of the work, inside a transaction."""

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
        note_removed(self.db, ALERT, [self.db.execute(delete, (id,)).fetchone() for id in found])
        return len(found)

    def _removable(self, name: str, plan: Plan | None) -> list[str]:
        raiser = self._raiser(name, plan)
        if raiser is None:
            return [id for id, _ in self._old(name, self.floor_us, "1")]
        if isinstance(raiser, RulePlan) and raiser.keys is not None:
            return [id for id, _ in self._old(name, self._age(raiser), "left_at IS NOT NULL")]
        if (at := standing(self.db, raiser)) is None:
            return []
        found = self._old(name, self._age(raiser), f"arrived_at < {self.floor_us}")
        return [id for id, position in found if _taken(Position.parse(position), at.boundary)]

    def _raiser(self, name: str, plan: Plan | None) -> RulePlan | ShapePlan | None:
        """What could raise the alerts of this name again."""
        rule = next((rule for rule in plan.rules if rule.name == name), None) if plan else None
        if plan is None or rule is not None:
            return rule
        shapes = {shape.name: shape for shape in plan.shapes}
        row = self.db.execute(
            "SELECT shape FROM _watches WHERE name = ? AND state = 'active'", (name,)
        ).fetchone()
        return shapes.get(row[0]) if row else None

    def _age(self, raiser: RulePlan | ShapePlan) -> int:
        """When the youngest was raised that may go; what may suppress another stays."""
        suppress = raiser.suppress_us if isinstance(raiser, RulePlan) else None
        return min(self.floor_us, self.now_us - suppress) if suppress else self.floor_us

    def _old(self, name: str, age_us: int, condition: str) -> list[tuple[str, str]]:
        """The oldest alerts of which no notification waits."""
        waiting = "SELECT alerts FROM _outbox WHERE rule = ? AND state = 'waiting'"
        held = {id for (text,) in self.db.execute(waiting, (name,)) for id in _ids(text)}
        rows = self.db.execute(
            "SELECT id, position FROM _alerts WHERE rule = ? AND raised_at < ? "
            f"AND {condition} ORDER BY number LIMIT {CHUNK + len(held)}",
            (name, age_us),
        )
        return [(id, position) for id, position in rows if id not in held][:CHUNK]

    def remove_notices(self) -> None:
        """A notification goes with the last of its alerts."""
        ended = self.db.execute(
            "SELECT number, queue, state, alerts FROM _outbox WHERE ended_at < ?",
            (self.floor_us,),
        ).fetchall()
        gone = [(n, queue, state) for n, queue, state, ids in ended if not self._any(_ids(ids))]
        self.db.executemany("DELETE FROM _outbox WHERE number = ?", [(n,) for n, *_ in gone])
        delivered = [(kind_of(queue), "") for _, queue, state in gone if state == DELIVERED]
        note_removed(self.db, DELIVERED, delivered)

    def _any(self, alerts: list[str]) -> bool:
        """Whether one of the alerts is still there."""
        sql = "SELECT 1 FROM _alerts WHERE id = ?"
        return any(self.db.execute(sql, (id,)).fetchone() for id in alerts)


def _ids(text: str) -> list[str]:
    """The alerts of a notification."""
    return msgspec.json.decode(text, type=list[str])


def _taken(position: Position, boundary: Position) -> bool:
    """Whether what was known at a position is the generation's; another number of partitions is
    that of another stream, from which nothing can come any more."""
    return len(position.offsets) != len(boundary.offsets) or position <= boundary
