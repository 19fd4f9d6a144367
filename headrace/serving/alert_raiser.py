"""Raises alerts after commits: each alert is decided once and saved with its notifications.

    evaluate(rule):  new rows of the rule  ->  alerts and outbox, in one transaction

An alert's id is a digest of the rule's name and the row: its partition, offset and values. So batch
computes the same ids as speed, and an evaluation that was killed resumes where it stopped.
Whether an alert is notified is decided here too, in the order of event times: not if it is older
than the rule (backfilled), muted, too soon after another (suppressed), or found by batch alone
(missed) by a rule without corrections. tests/serving/test_alert_raiser.py checks each, and
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
from headrace.serving.alert_candidates import (
    Candidate,
    CandidateProgress,
    candidates,
    read_candidate_progress,
)
from headrace.serving.alert_rows import left_rows
from headrace.serving.alerts import alert_document, bump_alerts_version
from headrace.serving.database import Database, Transaction
from headrace.serving.merged_rows import read_stored
from headrace.serving.mutes import Mute, active_mutes
from headrace.serving.notifications import notify
from headrace.serving.rules import RuleProgress, read_enabled_progress

BACKFILLED, MUTED, SUPPRESSED = "backfilled", "muted", "suppressed"


class AlertRaiser:
    """Raises the alerts of rules, one rule at a time."""

    def __init__(self, db: Database, clock: Clock = now_us) -> None:
        self.db, self.clock = db, clock

    def evaluate(self, rule: RulePlan) -> int:
        """Raise new alerts and withdraw those that batch does not find; returns how many."""
        with self.db.read() as db:
            before = read_enabled_progress(db, rule.name)
            at = read_candidate_progress(db, rule) if before else None
            if before is None or at is None or _unchanged(before, at):
                return 0
            promoted = before.generation != at.generation
            evaluation = _Evaluation(rule, before, at, self._version(db, rule))
            count = 0
            for part in candidates(db, rule, at, promoted):
                count += self._save(evaluation, part)
            if rule.keys is not None:
                self._mark_left(evaluation, left_rows(db, rule, at.view))
            elif promoted:
                count += self._correct(evaluation, *_corrections(db, evaluation))
        self._save_progress(evaluation)
        return count

    def _version(self, db: Transaction, rule: RulePlan) -> int:
        row = db.execute("SELECT max(version) FROM _rules WHERE name = ?", (rule.name,)).fetchone()
        return int(row[0])

    def _save(self, evaluation: _Evaluation, part: Sequence[Candidate]) -> int:
        now, notified_by_kind = self.clock(), dict[str, list[dict[str, Any]]]()
        with self.db.write() as db:
            writer = _AlertWriter(db, evaluation, now)
            for candidate in part:
                kind, document = writer.decide(candidate)
                if kind:
                    notified_by_kind.setdefault(kind, []).append(document)
            for kind, alerts in notified_by_kind.items():
                whole = evaluation.rule.coupling == Coupling.EPOCH
                for batch in [alerts] if whole else [[alert] for alert in alerts]:
                    notify(db, evaluation.rule, kind, batch, now)
            bump_alerts_version(db)
            failpoint("alerts.saving")
        failpoint("alerts.saved")
        return len(part)

    def _mark_left(self, evaluation: _Evaluation, row_keys: Sequence[str]) -> None:
        """Rows that have left the answer may be raised again when they return."""
        if row_keys:
            with self.db.write() as db:
                db.executemany(
                    "UPDATE _alerts SET left_at = ? WHERE rule = ? AND row_key = ? "
                    "AND left_at IS NULL",
                    [(self.clock(), evaluation.rule.name, row_key) for row_key in row_keys],
                )

    def _correct(self, evaluation: _Evaluation, gone: Sequence[str], back: Sequence[str]) -> int:
        """Withdraw the alerts that batch has not found, and restore withdrawn ones that it has."""
        if not gone and not back:
            return 0
        now = self.clock()
        with self.db.write() as db:
            mark = "UPDATE _alerts SET withdrawn_at = ? WHERE id = ?"
            db.executemany(mark, [(None, id) for id in back] + [(now, id) for id in gone])
            for id in gone if evaluation.rule.corrections else ():
                document = alert_document(db, id)
                if document["notified"]:
                    notify(db, evaluation.rule, WITHDRAWN, [document], now)
            bump_alerts_version(db)
        return len(gone)

    def _save_progress(self, evaluation: _Evaluation) -> None:
        with self.db.write() as db:
            db.execute(
                "UPDATE _looks SET position = ?, marks = ?, generation = ? "
                "WHERE rule = ? AND version = ?",
                (*evaluation.at.stored(), evaluation.rule.name, evaluation.before.version),
            )


@dataclass(frozen=True, slots=True)
class _Evaluation:
    """One evaluation of one rule."""

    rule: RulePlan
    before: RuleProgress
    at: CandidateProgress
    version: int

    def history(self, candidate: Candidate) -> bool:
        """Whether it is older than the rule."""
        if candidate.place is None or self.at.joined:
            return self.before.position is None and any(self.before.since.offsets)
        return _precedes(candidate.place, self.before.since)

    def missed(self, candidate: Candidate) -> bool:
        """Whether speed has processed its event and has not found it."""
        seen = self.before.position
        if candidate.fresh or seen is None or candidate.place is None:
            return False
        return (
            _precedes(candidate.place, seen)
            if self.at.decided_by_offset
            else self.at.boundary <= seen
        )


def _unchanged(before: RuleProgress, at: CandidateProgress) -> bool:
    evaluated = (before.position, before.marks, before.generation)
    return evaluated == (at.position, at.marks, at.generation)


def _precedes(place: tuple[int, int], position: Position) -> bool:
    partition, offset = place
    return offset < position.offsets[partition]


class _AlertWriter:
    """Decides and saves alerts one by one, inside a transaction."""

    def __init__(self, db: Transaction, evaluation: _Evaluation, now_us: int) -> None:
        self.db, self.evaluation, self.now = db, evaluation, now_us
        self.mutes: list[Mute] = active_mutes(db, evaluation.rule.name, now_us)

    def decide(self, candidate: Candidate) -> tuple[str | None, dict[str, Any]]:
        """Save the alert; returns the kind of its notification, or None, and the alert."""
        rule = self.evaluation.rule
        body = msgspec.json.encode(candidate.body).decode()
        id = self._id(candidate, body)
        time = candidate.time_us if candidate.time_us is not None else self.now
        per = msgspec.json.encode([candidate.body[column] for column in rule.per]).decode()
        old, missed = self.evaluation.history(candidate), self.evaluation.missed(candidate)
        leader = None if old else self._leader(per, time)
        quiet = self._quiet(candidate, old, missed, leader)
        by = "speed" if candidate.fresh else f"generation {self.evaluation.at.generation}"
        added = self.db.execute(
            "INSERT INTO _alerts (id, rule, version, row_key, severity, body, event_time, per, "
            "raised_at, raised_by, position, quiet, suppressed_by, missed, arrived_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (
                id, rule.name, self.evaluation.version, candidate.row_key, rule.severity, body,
                time, per, self.now, by, str(self.evaluation.at.position), quiet,
                leader if quiet == SUPPRESSED else None, int(missed and not old),
                candidate.arrived_us,
            ),
        ).rowcount  # fmt: skip
        document = {
            "id": id, "rule": rule.name, "severity": rule.severity, "event_time": iso(time),
            "raised_at": iso(self.now), "raised_by": by, "body": candidate.body,
        }  # fmt: skip
        if not added or quiet:
            return None, document
        return (MISSED if missed else RAISED), document

    def _id(self, candidate: Candidate, body: str) -> str:
        parts = [self.evaluation.rule.name, candidate.row_key]
        if candidate.place is None:
            # A row that has left and returns is another alert, even with the same values, and even
            # if earlier ones were removed.
            times = self.db.execute(
                "SELECT count(*) FROM _alerts WHERE rule = ? AND row_key = ?", parts
            ).fetchone()
            parts += [body, str(times[0]), str(self.now)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]

    def _quiet(
        self, candidate: Candidate, old: bool, missed: bool, leader: str | None
    ) -> str | None:
        """Why it is not notified; None if it is."""
        if old:
            return BACKFILLED
        if any(mute.covers(candidate.body) for mute in self.mutes):
            return MUTED
        if leader is not None:
            return SUPPRESSED
        return MISSED if missed and not self.evaluation.rule.corrections else None

    def _leader(self, per: str, time_us: int) -> str | None:
        """The newest notified alert before this one within the suppression interval."""
        if self.evaluation.rule.suppress_us is None:
            return None
        row = self.db.execute(
            "SELECT id FROM _alerts WHERE rule = ? AND per = ? AND event_time > ? "
            "AND event_time <= ? AND quiet IS NULL ORDER BY event_time DESC, number DESC LIMIT 1",
            (self.evaluation.rule.name, per, time_us - self.evaluation.rule.suppress_us, time_us),
        ).fetchone()
        return row[0] if row else None


def _corrections(db: Transaction, evaluation: _Evaluation) -> tuple[list[str], list[str]]:
    """The alerts of this version that batch should have found and has not, and the withdrawn ones
    that it has found.
    """
    rows = db.execute(
        "SELECT id, row_key, position, withdrawn_at IS NULL FROM _alerts "
        "WHERE rule = ? AND version >= ?",
        (evaluation.rule.name, evaluation.before.version),
    ).fetchall()
    batch_keys = set(read_stored(db, evaluation.at.view).column(KEY).to_pylist())
    boundary = evaluation.at.boundary
    gone = [
        id
        for id, key, position, held in rows
        if held and key not in batch_keys and Position.parse(position) <= boundary
    ]
    return gone, [id for id, key, _, held in rows if not held and key in batch_keys]
