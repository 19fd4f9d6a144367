"""Alerts are raised after commits: each is decided once, and saved with its notifications.

    look(rule):  what is new in the rule's rows  ->  ledger and queues, in one transaction

An alert's id is a digest of the rule's name and the row: its place in the log and its values. So
batch finds the same ids as speed, and a look that is cut off by a kill goes on where it was.
Whether an alert is notified is decided here too, in the order of event times: not if it is older
than the rule (backfilled), muted, follows another too soon (suppressed), or was found by batch
alone (missed) by a rule without corrections. tests/serving/test_alert_raiser.py checks each, and
tests/run/test_alerts_killed.py kills it at each failpoint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from headrace.compile.plan import RulePlan
from headrace.core.event import KEY
from headrace.core.failpoint import failpoint
from headrace.core.position import Position
from headrace.core.rule import MISSED, RAISED, WITHDRAWN, Coupling
from headrace.core.time import Clock, iso, now_us
from headrace.serving.alert_candidates import Candidate, CandidateProgress, candidates, standing
from headrace.serving.alert_rows import left_rows
from headrace.serving.alerts import alert_document, bump_alerts_version
from headrace.serving.database import Database, Transaction
from headrace.serving.merged_rows import read_stored
from headrace.serving.mutes import Mute, active_mutes
from headrace.serving.notifications import notify
from headrace.serving.rules import RuleProgress, read_look

BACKFILLED, MUTED, SUPPRESSED = "backfilled", "muted", "suppressed"


class AlertRaiser:
    """Looks for what is new, one rule at a time."""

    def __init__(self, db: Database, clock: Clock = now_us) -> None:
        self.db, self.clock = db, clock

    def look(self, rule: RulePlan) -> int:
        """Raise the alerts that are new and withdraw those that batch does not find; how many."""
        with self.db.read() as db:
            before = read_look(db, rule.name)
            at = standing(db, rule) if before else None
            if before is None or at is None or _seen(before, at):
                return 0
            promoted = before.generation != at.generation
            look = _Look(rule, before, at, self._version(db, rule))
            count = 0
            for part in candidates(db, rule, at, promoted):
                count += self._save(look, part)
            if rule.keys is not None:
                self._leave(look, left_rows(db, rule, at.view))
            elif promoted:
                count += self._correct(look, *_corrections(db, look))
        self._looked(look)
        return count

    def _version(self, db: Transaction, rule: RulePlan) -> int:
        row = db.execute("SELECT max(version) FROM _rules WHERE name = ?", (rule.name,)).fetchone()
        return int(row[0])

    def _save(self, look: _Look, part: Sequence[Candidate]) -> int:
        now, told = self.clock(), dict[str, list[dict[str, Any]]]()
        with self.db.write() as db:
            deciding = _Deciding(db, look, now)
            for candidate in part:
                kind, document = deciding.decide(candidate)
                if kind:
                    told.setdefault(kind, []).append(document)
            for kind, alerts in told.items():
                whole = look.rule.coupling == Coupling.EPOCH
                for notice in [alerts] if whole else [[alert] for alert in alerts]:
                    notify(db, look.rule, kind, notice, now)
            bump_alerts_version(db)
            failpoint("alerts.saving")
        failpoint("alerts.saved")
        return len(part)

    def _leave(self, look: _Look, row_keys: Sequence[str]) -> None:
        """Rows that have left the answer may come in again."""
        if row_keys:
            with self.db.write() as db:
                db.executemany(
                    "UPDATE _alerts SET left_at = ? WHERE rule = ? AND row_key = ? "
                    "AND left_at IS NULL",
                    [(self.clock(), look.rule.name, row_key) for row_key in row_keys],
                )

    def _correct(self, look: _Look, gone: Sequence[str], back: Sequence[str]) -> int:
        """Withdraw what batch has not found, and take back what it has found after all."""
        if not gone and not back:
            return 0
        now = self.clock()
        with self.db.write() as db:
            mark = "UPDATE _alerts SET withdrawn_at = ? WHERE id = ?"
            db.executemany(mark, [(None, id) for id in back] + [(now, id) for id in gone])
            for id in gone if look.rule.corrections else ():
                document = alert_document(db, id)
                if document["notified"]:
                    notify(db, look.rule, WITHDRAWN, [document], now)
            bump_alerts_version(db)
        return len(gone)

    def _looked(self, look: _Look) -> None:
        with self.db.write() as db:
            db.execute(
                "UPDATE _looks SET position = ?, marks = ?, generation = ? "
                "WHERE rule = ? AND version = ?",
                (*look.at.stored(), look.rule.name, look.before.version),
            )


@dataclass(frozen=True, slots=True)
class _Look:
    """One look at one rule."""

    rule: RulePlan
    before: RuleProgress
    at: CandidateProgress
    version: int

    def history(self, found: Candidate) -> bool:
        """Whether it is of the time before the rule."""
        if found.place is None or self.at.joined:
            return self.before.position is None and any(self.before.since.offsets)
        return _precedes(found.place, self.before.since)

    def missed(self, found: Candidate) -> bool:
        """Whether speed has been at its place and has not found it."""
        seen = self.before.position
        if found.fresh or seen is None or found.place is None:
            return False
        return _precedes(found.place, seen) if self.at.placed else self.at.boundary <= seen


def _seen(before: RuleProgress, at: CandidateProgress) -> bool:
    looked = (before.position, before.marks, before.generation)
    return looked == (at.position, at.marks, at.generation)


def _precedes(place: tuple[int, int], position: Position) -> bool:
    partition, offset = place
    return offset < position.offsets[partition]


class _Deciding:
    """Decides on one alert after the other, inside a transaction."""

    def __init__(self, db: Transaction, look: _Look, now_us: int) -> None:
        self.db, self.look, self.now = db, look, now_us
        self.mutes: list[Mute] = active_mutes(db, look.rule.name, now_us)

    def decide(self, found: Candidate) -> tuple[str | None, dict[str, Any]]:
        """Save the alert; the kind of its notification, None if there is none."""
        rule = self.look.rule
        body = msgspec.json.encode(found.body).decode()
        id = self._id(found, body)
        time = found.time_us if found.time_us is not None else self.now
        per = msgspec.json.encode([found.body[column] for column in rule.per]).decode()
        old, missed = self.look.history(found), self.look.missed(found)
        leader = None if old else self._leader(per, time)
        quiet = self._quiet(found, old, missed, leader)
        by = "speed" if found.fresh else f"generation {self.look.at.generation}"
        added = self.db.execute(
            "INSERT INTO _alerts (id, rule, version, row_key, severity, body, event_time, per, "
            "raised_at, raised_by, position, quiet, suppressed_by, missed, arrived_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (
                id, rule.name, self.look.version, found.row_key, rule.severity, body, time, per,
                self.now, by, str(self.look.at.position), quiet,
                leader if quiet == SUPPRESSED else None, int(missed and not old),
                found.arrived_us,
            ),
        ).rowcount  # fmt: skip
        document = {
            "id": id, "rule": rule.name, "severity": rule.severity, "event_time": iso(time),
            "raised_at": iso(self.now), "raised_by": by, "body": found.body,
        }  # fmt: skip
        if not added or quiet:
            return None, document
        return (MISSED if missed else RAISED), document

    def _id(self, found: Candidate, body: str) -> str:
        said = [self.look.rule.name, found.row_key]
        if found.place is None:
            # A row that has left and comes in again is another alert, whatever it says, also if
            # the ones before have been removed.
            times = self.db.execute(
                "SELECT count(*) FROM _alerts WHERE rule = ? AND row_key = ?", said
            ).fetchone()
            said += [body, str(times[0]), str(self.now)]
        return hashlib.sha256("\n".join(said).encode()).hexdigest()[:32]

    def _quiet(self, found: Candidate, old: bool, missed: bool, leader: str | None) -> str | None:
        """Why it is not notified."""
        if old:
            return BACKFILLED
        if any(mute.covers(found.body) for mute in self.mutes):
            return MUTED
        if leader is not None:
            return SUPPRESSED
        return MISSED if missed and not self.look.rule.corrections else None

    def _leader(self, per: str, time_us: int) -> str | None:
        """The newest alert before this one that was notified and is near enough to suppress it."""
        if self.look.rule.suppress_us is None:
            return None
        row = self.db.execute(
            "SELECT id FROM _alerts WHERE rule = ? AND per = ? AND event_time > ? "
            "AND event_time <= ? AND quiet IS NULL ORDER BY event_time DESC, number DESC LIMIT 1",
            (self.look.rule.name, per, time_us - self.look.rule.suppress_us, time_us),
        ).fetchone()
        return row[0] if row else None


def _corrections(db: Transaction, look: _Look) -> tuple[list[str], list[str]]:
    """The alerts of this version that batch should have found and has not, and those that were
    withdrawn and are there.
    """
    rows = db.execute(
        "SELECT id, row_key, position, withdrawn_at IS NULL FROM _alerts "
        "WHERE rule = ? AND version >= ?",
        (look.rule.name, look.before.version),
    ).fetchall()
    there, reached = set(read_stored(db, look.at.view).column(KEY).to_pylist()), look.at.boundary
    gone = [
        id
        for id, key, position, held in rows
        if held and key not in there and Position.parse(position) <= reached
    ]
    return gone, [id for id, key, _, held in rows if not held and key in there]
