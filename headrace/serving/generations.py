"""A generation is promoted in one transaction: its rows, its boundary, and the end of the groups
it covers.

A build is staged first, in tables beside the answer, so that promotion itself is short. A full
build replaces the generation's table by renaming; an incremental one is merged into it. Exact
distinct counts are kept by remembering which values have been counted.
tests/serving/test_generations.py checks both kinds and what a crash between the two leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from headrace.compile.plan import ABSORBED, ABSORBED_BY, LATE, ViewPlan
from headrace.compile.windows import end_column
from headrace.core.aggregate import Merge
from headrace.core.position import Position
from headrace.core.storage import without_nan
from headrace.serving.carried import fits, promote_states, stage_states
from headrace.serving.catalog import (
    go_live,
    provisional,
    read_tables,
    read_versions,
    tables_of,
)
from headrace.serving.changes import KEYS_MAX
from headrace.serving.commits import note_changed
from headrace.serving.database import Transaction
from headrace.serving.merge import (
    columns_of,
    create_tables,
    merged,
    source,
    staged_name,
    upsert,
)
from headrace.serving.progress import advance, read_groups, read_stream, stored_times
from headrace.serving.rows import stored_rows, with_key
from headrace.serving.shed import forget_shed
from headrace.serving.states import STATES
from headrace.serving.store import (
    AuditResult,
    Row,
    Staged,
    StateRow,
    StreamState,
    Superseded,
    Version,
)
from headrace.serving.watermark import Reached

GENERATIONS_KEPT = 1_000


def staged_tables(plan: ViewPlan) -> tuple[str, str]:
    generation, _, values = tables_of(plan)
    return staged_name(generation), staged_name(values)


def stage(
    db: Transaction,
    version: Version,
    full: bool,
    rows: Sequence[Row],
    values: Sequence[Row],
    states: Sequence[StateRow] = (),
) -> Staged:
    """Put a build's rows beside the answer. `values` are (column, key values…, value) rows."""
    plan = version.plan
    if plan.carry:
        stage_states(db, plan, states)
    generation, seen = staged_tables(plan)
    drop_staged(db, plan)
    unused = generation[:-1] + '_speed"'
    statements = create_tables(plan, generation, unused, seen)
    for statement in statements:
        if unused not in statement and "CREATE INDEX" not in statement:
            db.execute(statement)
    places = ", ".join("?" * (1 + len(columns_of(plan))))
    db.executemany(f"INSERT INTO {generation} VALUES ({places})", stored_rows(plan, rows))
    if plan.counted:
        encode = msgspec.json.encode
        kept = (tuple(map(without_nan, row)) for row in values)
        pairs = ((row[0], encode(row[1:-1]).decode(), row[-1]) for row in kept)
        db.executemany(f"INSERT INTO {seen} VALUES (?, ?, ?) ON CONFLICT DO NOTHING", pairs)
    return Staged(version, full, len(rows))


def drop_staged(db: Transaction, plan: ViewPlan) -> None:
    for table in staged_tables(plan):
        db.execute(f"DROP TABLE IF EXISTS {table}")


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
        _absorb(db, build.version.plan, number)
        note_changed(db, build.version.id, _changed(db, build, group))
        _take(build)(db, build.version.plan)
        _, speed, _ = tables_of(build.version.plan)
        db.execute(f"DELETE FROM {speed} WHERE _group <= ?", (group,))
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


def _changed(db: Transaction, build: Staged, group: int) -> list[str] | None:
    """The keys of the rows that a promotion changes; None for all."""
    if build.full:
        return None
    (_, speed, _), (staged, _) = tables_of(build.version.plan), staged_tables(build.version.plan)
    keys = f"SELECT _key FROM {staged} UNION SELECT _key FROM {speed} WHERE _group <= ?"
    return [key for (key,) in db.execute(f"{keys} LIMIT {KEYS_MAX + 1}", (group,))]


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


def _absorb(db: Transaction, plan: ViewPlan, number: int) -> None:
    """The late events of a build are in this generation from now on."""
    if plan.tells_lateness:
        staged, _ = staged_tables(plan)
        sets = f"{ABSORBED} = {LATE}, {ABSORBED_BY} = ?"
        db.execute(f"UPDATE {staged} SET {sets} WHERE {LATE} > 0", (number,))


def _take(build: Staged) -> Callable[[Transaction, ViewPlan], None]:
    """How the staged rows become part of the generation."""
    return _replace if build.full else _join if build.version.plan.joins else _add


def _replace(db: Transaction, plan: ViewPlan) -> None:
    generation, speed, values = tables_of(plan)
    staged, staged_values = staged_tables(plan)
    for partial in plan.counted:
        number = partial.columns[0]
        mine = f"v._column = '{number}' AND v._key = {staged}._key"
        count = f"SELECT count(*) FROM {staged_values} v WHERE {mine}"
        db.execute(f"UPDATE {staged} SET {number} = ({count})")
    db.execute(f"DROP TABLE {generation}")
    db.execute(f"ALTER TABLE {staged} RENAME TO {generation}")
    if plan.counted:
        db.execute(f"DROP TABLE {values}")
        db.execute(f"ALTER TABLE {staged_values} RENAME TO {values}")
    for statement in create_tables(plan, generation, speed, values):
        db.execute(statement)


def _add(db: Transaction, plan: ViewPlan) -> None:
    generation, _, values = tables_of(plan)
    staged, staged_values = staged_tables(plan)
    columns = ", ".join(["_key", *columns_of(plan)])
    db.execute(
        upsert(plan, generation, f"SELECT {columns} FROM {staged} WHERE true", grouped=False)
    )
    for partial in plan.counted:
        number = partial.columns[0]
        changed = f"WHERE _key IN (SELECT _key FROM {staged})"
        more = _new_values(number, generation, values, staged_values)
        db.execute(f"UPDATE {generation} SET {number} = coalesce({number}, 0) + ({more}) {changed}")
    if plan.counted:
        db.execute(
            f"INSERT INTO {values} SELECT * FROM {staged_values} WHERE true ON CONFLICT DO NOTHING"
        )
    drop_staged(db, plan)


def _join(db: Transaction, plan: ViewPlan) -> None:
    """Add staged intervals, each made one with those of the generation that it touches.

    The intervals of a side do not touch each other, so one look finds all that change.
    """
    (generation, _, _), (staged, _) = tables_of(plan), staged_tables(plan)
    changed = f"_key IN ({_touched(plan)})"
    sources = [
        source(plan, generation, group="0", where=changed),
        source(plan, staged, group="0"),
    ]
    columns = columns_of(plan)
    rows = db.execute(f"SELECT {', '.join(columns)} FROM ({merged(plan, sources)})").fetchall()
    db.execute(f"DELETE FROM {generation} WHERE {changed}")
    places = ", ".join("?" * (1 + len(columns)))
    db.executemany(f"INSERT INTO {generation} VALUES ({places})", with_key(plan, rows))
    drop_staged(db, plan)


def _touched(plan: ViewPlan) -> str:
    """The keys of the generation's intervals that a staged one touches: of those that begin no
    later than it, only the last can."""
    (generation, _, _), (staged, _) = tables_of(plan), staged_tables(plan)
    start = plan.joins or ""
    end = end_column(start)
    same = "".join(f"s.{key} IS {{0}}.{key} AND " for key in plan.plain_keys)
    before = (
        f"SELECT max(h.{start}) FROM {generation} h WHERE {same.format('h')}h.{start} <= s.{start}"
    )
    meet = f"s.{start} <= g.{end} AND g.{start} BETWEEN coalesce(({before}), s.{start}) AND s.{end}"
    return f"SELECT g._key FROM {staged} s JOIN {generation} g ON {same.format('g')}{meet}"


def _new_values(number: str, generation: str, values: str, staged_values: str) -> str:
    same = "v._column = s._column AND v._key = s._key AND v._value = s._value"
    return (
        f"SELECT count(*) FROM {staged_values} s WHERE s._column = '{number}' "
        f"AND s._key = {generation}._key AND NOT EXISTS (SELECT 1 FROM {values} v WHERE {same})"
    )


def audit_staged(db: Transaction, build: Staged, group: int, note: str = "") -> AuditResult:
    """Compare a build with what speed held for the same positions, before it is promoted. `note`
    says why a difference would be no defect, if that is known already.
    """
    plan = build.version.plan
    if build.version.state != "live":
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
    generation, speed, _ = tables_of(plan)
    staged, _ = staged_tables(plan)
    sources = [source(plan, speed, group="_group", where=f"_group <= {group}")]
    if build.full:
        sources.insert(0, source(plan, generation, group="0"))
    differ = (
        " OR ".join(c for p in plan.partials for c in _differences(p.merge, p.columns, p.storages))
        or "0"
    )
    missing = "a._group IS NULL" if plan.keys else "0"
    # Joined by one column: NULL is a key, and only an equality can be looked up in an index. With
    # IS, each row was compared with all others.
    key = " || ',' || ".join(f"quote({key.column})" for key in plan.keys) or "1"
    rows = db.execute(
        f"WITH a AS MATERIALIZED (SELECT {key} AS _id, * FROM ({merged(plan, sources)})), "
        f"b AS MATERIALIZED (SELECT {key} AS _id, *, 0 AS _group FROM {staged}) "
        f"SELECT {_label(plan, 'b')} FROM b LEFT JOIN a ON a._id = b._id "
        f"WHERE {missing} OR {differ} UNION ALL SELECT {_label(plan, 'a')} FROM a "
        "WHERE NOT EXISTS (SELECT 1 FROM b WHERE b._id = a._id)"
    ).fetchall()
    return [str(row[0]) for row in rows]


def _differences(merge: str, columns: Sequence[str], storages: Sequence[str]) -> list[str]:
    # What a generation has absorbed is known after its promotion, and speed knows nothing of it.
    if merge == Merge.COUNTED or columns[0] in {ABSORBED, ABSORBED_BY}:
        return []
    if Merge(merge) in STATES:
        return [f"NOT same_{merge}(a.{columns[0]}, b.{columns[0]})"]
    found = []
    for column, storage in zip(columns, storages, strict=True):
        a, b = f"a.{column}", f"b.{column}"
        if storage == "REAL":
            near = f"abs({a} - {b}) <= 1e-9 * max(abs({a}), abs({b}), {_scale(merge, columns)})"
            found.append(f"(({a} IS NULL) <> ({b} IS NULL) OR NOT coalesce({near}, 1))")
        else:
            found.append(f"{a} IS NOT {b}")
    return found


def _scale(merge: str, columns: Sequence[str]) -> str:
    """What a double's rounding is measured by, at least: a mean near zero is as exact as its
    values are large."""
    if merge != Merge.MOMENTS:
        return "1e-3"
    count, _, spread = columns
    return f"coalesce(sqrt(abs(b.{spread}) / nullif(b.{count}, 0)), 0), 1e-3"


def _label(plan: ViewPlan, alias: str) -> str:
    parts = [f"coalesce({alias}.{key.column}, 'NULL')" for key in plan.keys]
    return " || ', ' || ".join(parts) or "'all'"
