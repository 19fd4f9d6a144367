"""The versions of rules, and how far each rule has been evaluated.

Every change of a rule (added, changed, disabled, enabled, removed) is a row of `_rules` with who
made it; rows are never updated. A rule that is new, changed or enabled again starts at the current
position: earlier events are history to it. tests/run/test_rule_service.py checks it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import msgspec

from headrace.compile.flow import whole
from headrace.compile.plan import Plan, RulePlan
from headrace.core.errors import NotFound
from headrace.core.position import Position
from headrace.core.time import iso
from headrace.serving.database import Transaction
from headrace.serving.progress import read_stream, read_times
from headrace.serving.watermark import Times

ENABLED, DISABLED, REMOVED = "enabled", "disabled", "removed"


class RuleVersion(msgspec.Struct, frozen=True):
    """A rule as it was from one change to the next."""

    name: str
    version: int
    text: str
    state: str  # enabled, disabled, removed
    kept: bool  # whether it was added to the running project, and is kept in the store
    changed_at: str
    changed_by: str


@dataclass(frozen=True, slots=True)
class RuleProgress:
    """How far a rule has been evaluated."""

    version: int  # since which it is evaluated
    since: Position  # events before it are history
    position: Position | None  # None: not evaluated yet
    marks: Times | None  # the watermarks of the streams at `position`
    generation: int | None


def history(db: Transaction, name: str) -> list[RuleVersion]:
    """All versions of a rule, the newest first."""
    rows = db.execute("SELECT * FROM _rules WHERE name = ? ORDER BY version DESC", (name,))
    return [_version(row) for row in rows]


def newest_versions(db: Transaction) -> dict[str, RuleVersion]:
    """The newest version of each rule that is not removed."""
    rows = db.execute(
        "SELECT * FROM _rules AS r WHERE version = "
        "(SELECT max(version) FROM _rules WHERE name = r.name) ORDER BY name"
    )
    found = [_version(row) for row in rows]
    return {rule.name: rule for rule in found if rule.state != REMOVED}


def _version(row: tuple[object, ...]) -> RuleVersion:
    name, version, text, state, kept, changed_at, changed_by = row
    return RuleVersion(
        str(name), int(str(version)), str(text), str(state), bool(kept), iso(int(str(changed_at))),
        str(changed_by),
    )  # fmt: skip


def find_rule(db: Transaction, name: str) -> RuleVersion:
    """The newest version of a rule; NotFound if there is none."""
    rules = newest_versions(db)
    found = next((rule for rule in rules.values() if rule.name.lower() == name.lower()), None)
    if found is None:
        listed = f"available rules: {', '.join(rules) or 'none'}."
        raise NotFound(f"there is no rule '{name}'", hint=listed)
    return found


def deploy_rules(
    db: Transaction,
    plan: Plan,
    kept: Collection[str],
    who: str,
    now_us: int,
    since: Mapping[str, Position] | None = None,
) -> None:
    """Record which rules are new, changed and removed, inside the caller's transaction; a new one
    starts at these positions of the streams, or at the current ones.
    """
    before = newest_versions(db)
    for rule in plan.rules:
        old = before.pop(rule.name, None)
        if old is None or old.text != rule.text or old.kept != (rule.name in kept):
            state = old.state if old else ENABLED
            add_version(db, rule.name, rule.text, state, rule.name in kept, who, now_us)
        if read_progress(db, rule.name) is None:
            start_rule(db, rule, since)
    for gone in before.values():
        add_version(db, gone.name, gone.text, REMOVED, gone.kept, who, now_us)


def keep_rules(db: Transaction, texts: Mapping[str, str], who: str, now_us: int) -> None:
    """Replace the rules that are kept in the store, inside the caller's transaction."""
    before = {rule.name: rule for rule in newest_versions(db).values() if rule.kept}
    for name, text in texts.items():
        old = before.pop(name, None)
        if old is None or old.text != text:
            add_version(db, name, text, old.state if old else ENABLED, True, who, now_us)
    for gone in before.values():
        add_version(db, gone.name, gone.text, REMOVED, True, who, now_us)


def add_version(
    db: Transaction, name: str, text: str, state: str, kept: bool, who: str, now_us: int
) -> None:
    """Add a version; the rule starts again when it is deployed next."""
    db.execute(
        "INSERT INTO _rules SELECT ?1, coalesce(max(version), 0) + 1, ?2, ?3, ?4, ?5, ?6 "
        "FROM _rules WHERE name = ?1",
        (name, text, state, int(kept), now_us, who),
    )
    db.execute("DELETE FROM _looks WHERE rule = ?", (name,))


def start_rule(
    db: Transaction, rule: RulePlan, since: Mapping[str, Position] | None = None
) -> None:
    """Start a rule at these positions, or at the current ones."""
    # The positions of the single streams, because a new join has none yet.
    streams = dict.fromkeys(rule.streams)
    position = whole(since[s] if since else read_stream(db, s).position for s in streams)
    db.execute(
        "INSERT INTO _looks SELECT name, max(version), ?, NULL, NULL, NULL FROM _rules "
        "WHERE name = ? GROUP BY name ON CONFLICT (rule) DO UPDATE SET version = excluded.version, "
        "since = excluded.since, position = NULL, marks = NULL, generation = NULL",
        (str(position), rule.name),
    )


def read_enabled_progress(db: Transaction, rule: str) -> RuleProgress | None:
    """The progress of a rule; None if it is disabled or not deployed."""
    row = db.execute(
        "SELECT state FROM _rules WHERE name = ? ORDER BY version DESC LIMIT 1", (rule,)
    ).fetchone()
    return read_progress(db, rule) if row and row[0] == ENABLED else None


def read_progress(db: Transaction, rule: str) -> RuleProgress | None:
    row = db.execute(
        "SELECT version, since, position, marks, generation FROM _looks WHERE rule = ?", (rule,)
    ).fetchone()
    if row is None:
        return None
    position = Position.parse(row[2]) if row[2] else None
    marks = read_times(row[3]) if row[3] else None
    return RuleProgress(row[0], Position.parse(row[1]), position, marks, row[4])
