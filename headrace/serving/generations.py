"""Promotes a generation in one transaction: its runs, its boundary, and the end of the groups it
covers.

A build is staged first (serving/staging.py), so that the promotion itself is short: staged runs
become those of the generation. After a full build they replace the old ones, after an incremental
one they are added. Before that they are compared with speed's answer for the same positions.
tests/serving/test_generations.py checks both kinds and a crash between staging and promotion.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from headrace.compile.plan import ABSORBED, ABSORBED_BY, ViewPlan
from headrace.core.aggregate import Merge
from headrace.core.event import KEY
from headrace.core.position import Interval, Position
from headrace.serving.carried import consistent_up_to, promote_states
from headrace.serving.catalog import go_live, provisional, read_tables
from headrace.serving.changes import KEYS_MAX
from headrace.serving.commits import record_changed
from headrace.serving.database import Transaction
from headrace.serving.engine import run
from headrace.serving.merge import merge_sql, windows_sql
from headrace.serving.merged_rows import SECONDS_MAX, STORED, read_stored
from headrace.serving.progress import advance, read_groups, read_stream, stored_times
from headrace.serving.runs import Layer, drop_rows, move_rows, read_rows
from headrace.serving.shed_epochs import drop_shed
from headrace.serving.staging import check_current
from headrace.serving.states import STATES
from headrace.serving.store import AuditResult, StagedBuild, StreamState, Superseded
from headrace.serving.watermark import FlowProgress

GENERATIONS_KEPT = 1_000


def promote(
    db: Transaction,
    stream: str,
    since: int,
    reached: FlowProgress,
    group: int,
    staged: Sequence[StagedBuild],
    audits: Sequence[AuditResult],
    now_us: int,
) -> int:
    """Make staged builds the new generation, inside the caller's transaction."""
    state, boundary = read_stream(db, stream), str(reached.position)
    check_current(db, state, since, [build.version for build in staged])
    _check_cut(db, state, reached.position, group)
    ahead = reached <= state.reached and reached != state.reached
    number = state.generation + 1
    for build in staged:
        record_changed(db, build.version.id, _changed(db, build, group))
        _promote_runs(db, build, group)
        if build.version.plan.carry:
            promote_states(db, build.version.plan, build.full, group, ahead)
        db.execute(
            "DELETE FROM _provisional WHERE version = ? AND number <= ?", (build.version.id, group)
        )
        go_live(db, build.version)
    # The newest group's row stays, so that numbers are never given twice.
    db.execute("UPDATE _groups SET closed = 1 WHERE stream = ? AND number <= ?", (stream, group))
    db.execute(
        "DELETE FROM _groups WHERE stream = ?1 AND number <= ?2 "
        "AND number < (SELECT max(number) FROM _groups WHERE stream = ?1)",
        (stream, group),
    )
    if not reached <= state.reached:
        # Batch is ahead of speed, so speed continues from the boundary.
        advance(db, state, reached, now_us)
    times = [stored_times(times) for times in (reached.highs, reached.marks)]
    db.execute(
        "UPDATE _streams SET boundary = ?, boundary_highs = ?, boundary_marks = ?, "
        "generation = ?, promoted_at = ? WHERE name = ?",
        (boundary, *times, number, now_us, stream),
    )
    found = msgspec.json.encode(list(audits)).decode()
    db.execute(
        "INSERT INTO _generations VALUES (?, ?, ?, ?, ?)", (stream, number, boundary, now_us, found)
    )
    _drop_shed(db, stream, reached.position)
    db.execute(
        "DELETE FROM _generations WHERE stream = ? AND number <= ?",
        (stream, number - GENERATIONS_KEPT),
    )
    return number


def _groups_up_to(group: int) -> Interval:
    return Interval(0, group + 1)


def _promote_runs(db: Transaction, build: StagedBuild, group: int) -> None:
    """Staged runs become those of the generation; speed's runs up to the group are dropped."""
    version = build.version.plan.stored_name
    layers = ((Layer.STAGED, Layer.GENERATION), (Layer.STAGED_VALUES, Layer.VALUES))
    for staged, promoted in layers:
        if build.full:
            drop_rows(db, version, promoted)
        move_rows(db, version, staged, promoted)
    drop_rows(db, version, Layer.SPEED, _groups_up_to(group))


def _changed(db: Transaction, build: StagedBuild, group: int) -> set[str] | None:
    """The keys of the rows that a promotion changes; None for all."""
    if build.full:
        return None
    found: set[str] = set()
    for layer, groups in ((Layer.STAGED, None), (Layer.SPEED, _groups_up_to(group))):
        for _, rows in read_rows(db, build.version.plan.stored_name, layer, groups=groups):
            found.update(rows.column(KEY).to_pylist())
            if len(found) > KEYS_MAX:
                return None
    return found


def _check_cut(db: Transaction, state: StreamState, boundary: Position, group: int) -> None:
    """The rows of later groups stay, so they must start where the generation ends."""
    groups = read_groups(db, state.plan.name)
    ends = {state.boundary, *(one.reached.position for one in groups if one.number == group)}
    if boundary not in ends and any(one.number > group for one in groups):
        raise Superseded(
            f"the batch build of '{state.plan.name}' up to {boundary} was discarded: the speed "
            "layer has committed since it started"
        )


def _drop_shed(db: Transaction, stream: str, boundary: Position) -> None:
    oldest = db.execute("SELECT min(number) FROM _epochs").fetchone()[0] or 0
    drop_shed(db, stream, oldest - 1, boundary)


def audit_staged(db: Transaction, build: StagedBuild, group: int, note: str = "") -> AuditResult:
    """Compare a build with speed's answer for the same positions, before it is promoted. `note` is
    a known reason for expected differences.
    """
    plan = build.version.plan
    if not build.version.live:
        return AuditResult(plan.name, build.rows, 0, note="first generation of this version")
    note = note or _expected_difference(db, build, group)
    if note and not build.full:
        return AuditResult(plan.name, build.rows, 0, note=note)
    rows = _differing(db, build, group)
    if note:
        return AuditResult(plan.name, build.rows, 0, note=note, changed=len(rows))
    return AuditResult(plan.name, build.rows, len(rows), tuple(rows[:5]), changed=len(rows))


def _expected_difference(db: Transaction, build: StagedBuild, group: int) -> str:
    """Why differences are expected; empty if they would be defects."""
    plan = build.version.plan
    if plan.carry and not consistent_up_to(db, plan.recompute, group):
        return "events had come out of order"
    if provisional(db, build.version.id, group):
        return "speed's answer was provisional"
    known, promoted_at = read_tables(db), read_stream(db, plan.stream).promoted_at or 0
    if any(known[name][1] > promoted_at for name in plan.tables if name in known):
        return "a table was reloaded in between"
    return ""


def _differing(db: Transaction, build: StagedBuild, group: int) -> list[str]:
    """The keys of rows that differ from what was served."""
    plan = build.version.plan
    layers = [Layer.GENERATION, Layer.SPEED] if build.full else [Layer.SPEED]
    served = read_stored(db, plan, layers=layers, groups=_groups_up_to(group))
    staged = read_stored(db, plan, layers=[Layer.STAGED])
    rows = merge_sql(plan, f"SELECT * FROM {STORED}")
    if plan.joins:
        rows = windows_sql(plan, rows)
    same = " AND ".join(f"a.{k.column} IS NOT DISTINCT FROM b.{k.column}" for k in plan.keys)
    differ = [c for p in plan.partials for c in _differences(p.merge, p.columns, p.storages)]
    # Without keys there is one row on each side, or none without events.
    missing = "a._there IS NULL OR b._there IS NULL" if plan.keys else "false"
    sql = (
        f"SELECT {_label(plan)} FROM (SELECT *, 1 AS _there FROM ({rows})) AS a "
        f"FULL JOIN (SELECT *, 1 AS _there FROM staged) AS b ON {same or 'true'} "
        f"WHERE {' OR '.join([missing, *differ])}"
    )
    found = run(sql, {STORED: served, "staged": staged}, SECONDS_MAX)
    return [str(label) for label in found.column(0).to_pylist()]


def _differences(merge: str, columns: Sequence[str], storages: Sequence[str]) -> list[str]:
    # Only a generation has these columns; speed leaves them NULL.
    if merge == Merge.COUNTED or columns[0] in {ABSORBED, ABSORBED_BY}:
        return []
    if Merge(merge) in STATES:
        return [f"NOT same_{merge}(a.{columns[0]}, b.{columns[0]})"]
    found = []
    for column, storage in zip(columns, storages, strict=True):
        a, b = f"a.{column}", f"b.{column}"
        other = f"{a} IS DISTINCT FROM {b}"
        if storage == "REAL":
            scale = f"greatest(abs({a}), abs({b}), {_scale(merge, columns)})"
            other = f"({other} AND NOT coalesce(abs({a} - {b}) <= 1e-9 * {scale}, false))"
        found.append(other)
    return found


def _scale(merge: str, columns: Sequence[str]) -> str:
    """The minimum scale of the relative tolerance of doubles: the rounding error of a mean near
    zero depends on the size of its values.
    """
    if merge != Merge.MOMENTS:
        return "1e-3"
    count, _, squares = columns
    return f"coalesce(sqrt(abs(b.{squares}) / nullif(b.{count}, 0)), 0), 1e-3"


def _label(plan: ViewPlan) -> str:
    keys = [f"coalesce(a.{key.column}, b.{key.column})" for key in plan.keys]
    parts = [f"coalesce(CAST({key} AS VARCHAR), 'NULL')" for key in keys]
    return " || ', ' || ".join(parts) or "'all'"
