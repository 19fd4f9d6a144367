"""A generation is promoted in one transaction: its runs, its boundary, and the end of the groups it
covers.

A build is staged first, as runs beside the answer (serving/runs.py), so that promotion itself is
short: staged runs become those of the generation, in place of the old ones after a full build and
beside them after an incremental one. Exact distinct counts are kept by remembering which values
have been counted: a build counts those that are new. Runs of many builds are made one before the
next.
tests/serving/test_generations.py checks both kinds and what a crash between the two leaves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from headrace.compile.plan import ABSORBED, ABSORBED_BY, LATE, PartialPlan, ViewPlan
from headrace.core.aggregate import Merge
from headrace.core.event import KEY
from headrace.core.position import Interval, Position
from headrace.serving.carried import fits, promote_states, stage_states
from headrace.serving.catalog import go_live, provisional, read_tables, read_versions
from headrace.serving.changes import KEYS_MAX
from headrace.serving.commits import note_changed
from headrace.serving.database import Transaction
from headrace.serving.engine import run
from headrace.serving.merge import in_windows, merged
from headrace.serving.merged import SECONDS_MAX, STORED, merged_stored, read_stored
from headrace.serving.progress import advance, read_groups, read_stream, stored_times
from headrace.serving.rows import keys_of, stored_rows
from headrace.serving.runs import (
    ROWS_MAX,
    Layer,
    add_rows,
    count_runs,
    drop_rows,
    move_rows,
    read_rows,
)
from headrace.serving.shed import forget_shed
from headrace.serving.states import STATES
from headrace.serving.store import (
    AuditResult,
    Staged,
    StateRow,
    StreamState,
    Superseded,
    Version,
)
from headrace.serving.watermark import Reached

GENERATIONS_KEPT = 1_000
RUNS_MAX = 8  # of a generation, beside those that are full


def stage(
    db: Transaction,
    version: Version,
    full: bool,
    rows: pa.Table,
    values: Mapping[str, pa.Table],
    states: Sequence[StateRow] = (),
) -> Staged:
    """Put a build's rows beside the answer. `values` are the keys and values (`v`) behind each
    exact distinct count, by its partial column.
    """
    plan = version.plan
    if plan.carry:
        stage_states(db, plan, states)
    for layer in (Layer.STAGED, Layer.STAGED_VALUES):
        drop_rows(db, plan.stored_name, layer)
    if not full:
        _compact(db, plan)
    made = stored_rows(plan, rows)
    for partial in plan.counted:
        fresh = _new_values(db, plan, partial, values[partial.columns[0]], full)
        add_rows(db, plan.stored_name, Layer.STAGED_VALUES, fresh, column=partial.columns[0])
        made = _counted(made, partial, fresh)
    number = read_stream(db, plan.stream).generation + 1
    add_rows(db, plan.stored_name, Layer.STAGED, _absorbed(plan, made, number))
    return Staged(version, full, made.num_rows)


def _compact(db: Transaction, plan: ViewPlan) -> None:
    """Make one run of those of many builds, because every read merges them all."""
    if _crowded(db, plan, Layer.GENERATION):
        whole = merged_stored(plan, read_stored(db, plan, layers=[Layer.GENERATION]))
        drop_rows(db, plan.stored_name, Layer.GENERATION)
        add_rows(db, plan.stored_name, Layer.GENERATION, whole)
    if _crowded(db, plan, Layer.VALUES):
        values = {partial.columns[0]: _values(db, plan, partial) for partial in plan.counted}
        drop_rows(db, plan.stored_name, Layer.VALUES)
        for column, known in values.items():
            add_rows(db, plan.stored_name, Layer.VALUES, pa.concat_tables(known), column=column)


def _crowded(db: Transaction, plan: ViewPlan, layer: Layer) -> bool:
    runs, rows = count_runs(db, plan.stored_name, layer)
    return runs > RUNS_MAX * max(1, len(plan.counted)) + rows // ROWS_MAX


def _values(db: Transaction, plan: ViewPlan, partial: PartialPlan) -> list[pa.Table]:
    """The values that builds have counted, which are in one run each."""
    found = read_rows(db, plan.stored_name, Layer.VALUES, column=partial.columns[0])
    return [values for _, values in found]


def _new_values(
    db: Transaction, plan: ViewPlan, partial: PartialPlan, values: pa.Table, full: bool
) -> pa.Table:
    """The values that no build has counted, each once, with the keys of their rows."""
    given = pa.table({KEY: keys_of(plan, values), "_value": values.column("v")})
    known = [given.slice(0, 0)]
    if not full:
        known += _values(db, plan, partial)
    tables = {"given": given, "known": pa.concat_tables(known)}
    return run("SELECT * FROM given EXCEPT SELECT * FROM known", tables, SECONDS_MAX)


def _counted(rows: pa.Table, partial: PartialPlan, values: pa.Table) -> pa.Table:
    """Stored rows with the number of their new values."""
    counts = f"SELECT {KEY}, count(*) AS n FROM counted GROUP BY {KEY}"
    sql = (
        f"SELECT given.* REPLACE (coalesce(n, 0) AS {partial.columns[0]}) "
        f"FROM given LEFT JOIN ({counts}) AS counts ON counts.{KEY} = given.{KEY}"
    )
    made = run(sql, {"given": rows, "counted": values}, SECONDS_MAX)
    return made.select(rows.column_names).cast(rows.schema)


def _absorbed(plan: ViewPlan, rows: pa.Table, number: int) -> pa.Table:
    """The late events of a build are in this generation, once it is promoted."""
    if not plan.has_lateness:
        return rows
    late = rows.column(LATE)
    some, none = pc.greater(late, 0), pa.scalar(None, pa.int64())
    for name, value in ((ABSORBED, late), (ABSORBED_BY, pa.scalar(number, pa.int64()))):
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, rows.schema.field(place), pc.if_else(some, value, none))
    return rows


def promote(
    db: Transaction,
    stream: str,
    since: int,
    reached: Reached,
    group: int,
    staged: Sequence[Staged],
    audits: Sequence[AuditResult],
    now_us: int,
) -> int:
    """Make staged builds the answer up to there, inside the caller's transaction."""
    state, boundary = read_stream(db, stream), str(reached.position)
    _check_current(db, state, since, staged)
    _check_cut(db, state, reached.position, group)
    ahead = reached <= state.reached and reached != state.reached
    number = state.generation + 1
    for build in staged:
        note_changed(db, build.version.id, _changed(db, build, group))
        _take(db, build, group)
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
        # Batch has gone past speed, which goes on from the boundary.
        advance(db, state, reached, now_us)
    times = [stored_times(times) for times in (reached.highs, reached.marks)]
    db.execute(
        "UPDATE _streams SET boundary = ?, boundary_highs = ?, boundary_marks = ?, "
        "generation = ?, promoted_at = ? WHERE name = ?",
        (boundary, *times, number, now_us, stream),
    )
    found = msgspec.json.encode(list(audits)).decode()
    db.execute(
        "INSERT INTO _generations VALUES (?, ?, ?, ?, ?)",
        (stream, number, boundary, now_us, found),
    )
    _forget_shed(db, stream, reached.position)
    db.execute(
        "DELETE FROM _generations WHERE stream = ? AND number <= ?",
        (stream, number - GENERATIONS_KEPT),
    )
    return number


def _upto(group: int) -> Interval:
    return Interval(0, group + 1)


def _take(db: Transaction, build: Staged, group: int) -> None:
    """Staged runs become those of the generation, and speed's up to the group go."""
    version = build.version.plan.stored_name
    layers = ((Layer.STAGED, Layer.GENERATION), (Layer.STAGED_VALUES, Layer.VALUES))
    for staged, taken in layers:
        if build.full:
            drop_rows(db, version, taken)
        move_rows(db, version, staged, taken)
    drop_rows(db, version, Layer.SPEED, _upto(group))


def _changed(db: Transaction, build: Staged, group: int) -> set[str] | None:
    """The keys of the rows that a promotion changes; None for all."""
    if build.full:
        return None
    found: set[str] = set()
    for layer, groups in ((Layer.STAGED, None), (Layer.SPEED, _upto(group))):
        for _, rows in read_rows(db, build.version.plan.stored_name, layer, groups=groups):
            found.update(rows.column(KEY).to_pylist())
            if len(found) > KEYS_MAX:
                return None
    return found


def _check_current(
    db: Transaction, state: StreamState, since: int, staged: Sequence[Staged]
) -> None:
    stream = state.plan.name
    if state.generation != since:
        raise Superseded(f"{stream}: built on generation {since}, the newest is {state.generation}")
    deployed = {version.id for version in read_versions(db, stream)}
    if gone := [build.version.name for build in staged if build.version.id not in deployed]:
        raise Superseded(f"{stream}: built for versions that are not deployed any more: {gone}")


def _check_cut(db: Transaction, state: StreamState, boundary: Position, group: int) -> None:
    """The rows of later groups stay beside the generation, so they must begin where it ends."""
    groups = read_groups(db, state.plan.name)
    ends = {state.boundary, *(one.reached.position for one in groups if one.number == group)}
    if boundary not in ends and any(one.number > group for one in groups):
        raise Superseded(
            f"{state.plan.name}: built to {boundary} without speed, which has moved on since"
        )


def _forget_shed(db: Transaction, stream: str, boundary: Position) -> None:
    oldest = db.execute("SELECT min(number) FROM _epochs").fetchone()[0] or 0
    forget_shed(db, stream, oldest - 1, boundary)


def audit_staged(db: Transaction, build: Staged, group: int, note: str = "") -> AuditResult:
    """Compare a build with what speed held for the same positions, before it is promoted. `note`
    says why a difference would be no defect, if that is known already.
    """
    plan = build.version.plan
    if not build.version.live:
        return AuditResult(plan.name, build.rows, 0, note="first generation of this version")
    note = note or _expected(db, build, group)
    if note and not build.full:
        return AuditResult(plan.name, build.rows, 0, note=note)
    rows = _differing(db, build, group)
    if note:
        return AuditResult(plan.name, build.rows, 0, note=note, changed=len(rows))
    return AuditResult(plan.name, build.rows, len(rows), tuple(rows[:5]), changed=len(rows))


def _expected(db: Transaction, build: Staged, group: int) -> str:
    """Why a difference would be no defect; empty if it would be one."""
    plan = build.version.plan
    if plan.carry and not fits(db, plan.recompute, group):
        return "events had come out of order"
    if provisional(db, build.version.id, group):
        return "speed's answer was provisional"
    known, promoted_at = read_tables(db), read_stream(db, plan.stream).promoted_at or 0
    if any(known[name][1] > promoted_at for name in plan.tables if name in known):
        return "a table was reloaded in between"
    return ""


def _differing(db: Transaction, build: Staged, group: int) -> list[str]:
    """The keys of rows that are not what was served."""
    plan = build.version.plan
    layers = [Layer.GENERATION, Layer.SPEED] if build.full else [Layer.SPEED]
    served = read_stored(db, plan, layers=layers, groups=_upto(group))
    staged = read_stored(db, plan, layers=[Layer.STAGED])
    rows = merged(plan, f"SELECT * FROM {STORED}")
    if plan.joins:
        rows = in_windows(plan, rows)
    same = " AND ".join(f"a.{k.column} IS NOT DISTINCT FROM b.{k.column}" for k in plan.keys)
    differ = [c for p in plan.partials for c in _differences(p.merge, p.columns, p.storages)]
    # Without keys there is one row on each side, or none where nothing came.
    missing = "a._there IS NULL OR b._there IS NULL" if plan.keys else "false"
    sql = (
        f"SELECT {_label(plan)} FROM (SELECT *, 1 AS _there FROM ({rows})) AS a "
        f"FULL JOIN (SELECT *, 1 AS _there FROM staged) AS b ON {same or 'true'} "
        f"WHERE {' OR '.join([missing, *differ])}"
    )
    found = run(sql, {STORED: served, "staged": staged}, SECONDS_MAX)
    return [str(label) for label in found.column(0).to_pylist()]


def _differences(merge: str, columns: Sequence[str], storages: Sequence[str]) -> list[str]:
    # What a generation has absorbed is known after its promotion, and speed knows nothing of it.
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
    """What a double's rounding is measured by, at least: a mean near zero is as exact as its
    values are large."""
    if merge != Merge.MOMENTS:
        return "1e-3"
    count, _, squares = columns
    return f"coalesce(sqrt(abs(b.{squares}) / nullif(b.{count}, 0)), 0), 1e-3"


def _label(plan: ViewPlan) -> str:
    keys = [f"coalesce(a.{key.column}, b.{key.column})" for key in plan.keys]
    parts = [f"coalesce(CAST({key} AS VARCHAR), 'NULL')" for key in keys]
    return " || ', ' || ".join(parts) or "'all'"
