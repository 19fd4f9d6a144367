"""The versions of rules, and how far each rule has been looked for.

Every change of a rule (added, changed, disabled, enabled, removed) is a row of `_rules` with who
made it, and rows are never changed. A rule that begins anew, because it is new, means something
else or was enabled again, keeps the position at which it did: what is before is history to it.
tests/run/test_rule_service.py checks it.
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
    kept: bool  # whether it was added while running and is kept in the store
    changed_at: str
    changed_by: str


@dataclass(frozen=True, slots=True)
class Looked:
    """How far a rule has been looked for."""

    version: int  # at which it began
    since: Position  # what is before is history
    position: Position | None  # None: not looked yet
    marks: Times | None  # the watermarks of the streams then
    generation: int | None


def history(db: Transaction, name: str) -> list[RuleVersion]:
    """All versions of a rule, the newest first."""
    rows = db.execute("SELECT * FROM _rules WHERE name = ? ORDER BY version DESC", (name,))
    return [_version(row) for row in rows]


def newest(db: Transaction) -> dict[str, RuleVersion]:
    """The newest version of each rule that is not removed."""
    rows = db.execute("SELECT *, max(version) FROM _rules GROUP BY name ORDER BY name")
    found = [_version(row[:-1]) for row in rows]
    return {rule.name: rule for rule in found if rule.state != REMOVED}


def _version(row: tuple[object, ...]) -> RuleVersion:
    name, version, text, state, kept, changed_at, changed_by = row
    return RuleVersion(
        str(name), int(str(version)), str(text), str(state), bool(kept), iso(int(str(changed_at))),
        str(changed_by),
    )  # fmt: skip


def known(db: Transaction, name: str) -> RuleVersion:
    """The newest version of a rule that there is."""
    rules = newest(db)
    found = next((rule for rule in rules.values() if rule.name.lower() == name.lower()), None)
    if found is None:
        listed = f"there are: {', '.join(rules) or 'none'}."
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
    """Note which rules are new, changed and removed, inside the caller's transaction; a new one
    begins at these positions of the streams, or at the present ones.
    """
    before = newest(db)
    for rule in plan.rules:
        old = before.pop(rule.name, None)
        if old is None or old.text != rule.text or old.kept != (rule.name in kept):
            state = old.state if old else ENABLED
            change(db, rule.name, rule.text, state, rule.name in kept, who, now_us)
        if read_looked(db, rule.name) is None:
            begin(db, rule, since)
    for gone in before.values():
        change(db, gone.name, gone.text, REMOVED, gone.kept, who, now_us)


def keep_rules(db: Transaction, texts: Mapping[str, str], who: str, now_us: int) -> None:
    """These are the rules to keep from the next start on, inside the caller's transaction."""
    before = {rule.name: rule for rule in newest(db).values() if rule.kept}
    for name, text in texts.items():
        old = before.pop(name, None)
        if old is None or old.text != text:
            change(db, name, text, old.state if old else ENABLED, True, who, now_us)
    for gone in before.values():
        change(db, gone.name, gone.text, REMOVED, True, who, now_us)


def change(
    db: Transaction, name: str, text: str, state: str, kept: bool, who: str, now_us: int
) -> None:
    """Add a version. A rule begins anew with each, when it is deployed next."""
    db.execute(
        "INSERT INTO _rules SELECT ?1, coalesce(max(version), 0) + 1, ?2, ?3, ?4, ?5, ?6 "
        "FROM _rules WHERE name = ?1",
        (name, text, state, int(kept), now_us, who),
    )
    db.execute("DELETE FROM _looks WHERE rule = ?", (name,))


def begin(db: Transaction, rule: RulePlan, since: Mapping[str, Position] | None = None) -> None:
    """From here on, what comes is new to the rule."""
    # The streams' own positions, because a join that is new has none yet.
    streams = dict.fromkeys(rule.streams)
    position = whole(since[s] if since else read_stream(db, s).position for s in streams)
    db.execute(
        "INSERT INTO _looks SELECT name, max(version), ?, NULL, NULL, NULL FROM _rules "
        "WHERE name = ? GROUP BY name ON CONFLICT (rule) DO UPDATE SET version = excluded.version, "
        "since = excluded.since, position = NULL, marks = NULL, generation = NULL",
        (str(position), rule.name),
    )


def read_look(db: Transaction, rule: str) -> Looked | None:
    """How far the rule has come; None if it is disabled or not deployed."""
    row = db.execute(
        "SELECT state FROM _rules WHERE name = ? ORDER BY version DESC LIMIT 1", (rule,)
    ).fetchone()
    return read_looked(db, rule) if row and row[0] == ENABLED else None


def read_looked(db: Transaction, rule: str) -> Looked | None:
    row = db.execute(
        "SELECT version, since, position, marks, generation FROM _looks WHERE rule = ?", (rule,)
    ).fetchone()
    if row is None:
        return None
    position = Position.parse(row[2]) if row[2] else None
    marks = read_times(row[3]) if row[3] else None
    return Looked(row[0], Position.parse(row[1]), position, marks, row[4])
