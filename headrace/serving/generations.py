"""Promotes a generation in one transaction: its runs, its boundary, and the end of the groups it
covers.

A build is staged first, as runs beside the answer (serving/runs.py), so that the promotion itself
is short: staged runs become those of the generation. After a full build they replace the old ones,
after an incremental one they are added. Exact distinct counts store which values have been counted:
a build counts the new ones. The runs of many builds are merged into one before the next.
tests/serving/test_generations.py checks both kinds and a crash between staging and promotion.
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
from headrace.serving.carried import consistent_up_to, promote_states, stage_states
from headrace.serving.catalog import go_live, provisional, read_tables, read_versions
from headrace.serving.changes import KEYS_MAX
from headrace.serving.commits import record_changed
from headrace.serving.database import Transaction
from headrace.serving.engine import run
from headrace.serving.merge import keys_of, merge_sql, stored_rows, windows_sql
from headrace.serving.merged_rows import (
    SECONDS_MAX,
    STORED,
    grouped,
    merged_stored,
    read_stored,
)
from headrace.serving.progress import advance, read_groups, read_stream, stored_times
from headrace.serving.runs import (
    ROWS_MAX,
    Layer,
    add_rows,
    count_runs,
    drop_rows,
    move_rows,
    read_rows,
)
from headrace.serving.shed_epochs import drop_shed
from headrace.serving.states import STATES
from headrace.serving.store import (
    AuditResult,
    StagedBuild,
    StateRow,
    StreamState,
    Superseded,
    Version,
)
from headrace.serving.watermark import FlowProgress

GENERATIONS_KEPT = 1_000
RUNS_MAX = 8  # of a generation, beside full ones
_VALUE = "_value"  # the column of a value behind an exact distinct count


def stage(
    db: Transaction,
    version: Version,
    full: bool,
    rows: pa.Table,
    values: Mapping[str, pa.Table],
    states: Sequence[StateRow] = (),
) -> StagedBuild:
    """Stage a build's rows. `values` are the keys and values (`v`) behind each exact distinct
    count, by its partial column.
    """
    plan = version.plan
    if plan.carry:
        stage_states(db, plan, states)
    for layer in (Layer.STAGED, Layer.STAGED_VALUES):
        drop_rows(db, plan.stored_name, layer)
    if not full:
        _compact(db, plan)
    made = _one_row_a_key(plan, stored_rows(plan, rows))
    for partial in plan.counted:
        fresh = _new_values(db, plan, partial, values[partial.columns[0]], full)
        add_rows(db, plan.stored_name, Layer.STAGED_VALUES, fresh, column=partial.columns[0])
        made = _counted(made, partial, fresh)
    number = read_stream(db, plan.stream).generation + 1
    add_rows(db, plan.stored_name, Layer.STAGED, _absorbed(plan, made, number))
    return StagedBuild(version, full, made.num_rows)


def _one_row_a_key(plan: ViewPlan, rows: pa.Table) -> pa.Table:
    """Stored rows merged: a key may stand several times, and intervals may touch."""
    if not plan.joins and pc.count_distinct(rows.column(KEY)).as_py() == rows.num_rows:
        return rows
    return merged_stored(plan, grouped(rows, 0))


def _compact(db: Transaction, plan: ViewPlan) -> None:
    """Merge the runs of many builds into one, because every read merges them all."""
    if _needs_compaction(db, plan, Layer.GENERATION):
        whole = merged_stored(plan, read_stored(db, plan, layers=[Layer.GENERATION]))
        drop_rows(db, plan.stored_name, Layer.GENERATION)
        add_rows(db, plan.stored_name, Layer.GENERATION, whole)
    if _needs_compaction(db, plan, Layer.VALUES):
        values = {partial.columns[0]: _values(db, plan, partial) for partial in plan.counted}
        drop_rows(db, plan.stored_name, Layer.VALUES)
        for column, known in values.items():
            add_rows(db, plan.stored_name, Layer.VALUES, pa.concat_tables(known), column=column)


def _needs_compaction(db: Transaction, plan: ViewPlan, layer: Layer) -> bool:
    runs, rows = count_runs(db, plan.stored_name, layer)
    return runs > RUNS_MAX * max(1, len(plan.counted)) + rows // ROWS_MAX


def _values(db: Transaction, plan: ViewPlan, partial: PartialPlan) -> list[pa.Table]:
    """The values that builds have counted, one run each."""
    found = read_rows(db, plan.stored_name, Layer.VALUES, column=partial.columns[0])
    return [values.set_column(1, _VALUE, _plain(values.column(_VALUE))) for _, values in found]


def _plain(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times as microseconds: Spark's have a zone, and the kernel's have none."""
    return values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values


def _new_values(
    db: Transaction, plan: ViewPlan, partial: PartialPlan, values: pa.Table, full: bool
) -> pa.Table:
    """The distinct values that no build has counted, with the keys of their rows."""
    given = pa.table({KEY: keys_of(plan, values), _VALUE: _plain(values.column("v"))})
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
    reached: FlowProgress,
    group: int,
    staged: Sequence[StagedBuild],
    audits: Sequence[AuditResult],
    now_us: int,
) -> int:
    """Make staged builds the new generation, inside the caller's transaction."""
    state, boundary = read_stream(db, stream), str(reached.position)
    _check_current(db, state, since, staged)
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


def _check_current(
    db: Transaction, state: StreamState, since: int, staged: Sequence[StagedBuild]
) -> None:
    stream = state.plan.name
    if state.generation != since:
        raise Superseded(f"{stream}: built on generation {since}, the newest is {state.generation}")
    deployed = {version.id for version in read_versions(db, stream)}
    if gone := [build.version.name for build in staged if build.version.id not in deployed]:
        raise Superseded(f"{stream}: built for versions that are not deployed any more: {gone}")


def _check_cut(db: Transaction, state: StreamState, boundary: Position, group: int) -> None:
    """The rows of later groups stay, so they must start where the generation ends."""
    groups = read_groups(db, state.plan.name)
    ends = {state.boundary, *(one.reached.position for one in groups if one.number == group)}
    if boundary not in ends and any(one.number > group for one in groups):
        raise Superseded(
            f"{state.plan.name}: built to {boundary} without speed, which has committed since"
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
