"""A build's rows are staged as runs beside the answer, so that their promotion is short.

Rows are merged and encoded outside of the store's transactions, because a large view takes minutes
and other flows commit epochs meanwhile:
    base = read_base(snapshot); prepared = prepare(base, rows); write_staged(transaction, prepared)
What the base has changes only with a promotion, so the write is refused as Superseded if there was
one. Exact distinct counts store which values have been counted: a build counts the new ones. The
runs of many builds are merged into one before the next. tests/serving/test_generations.py checks
builds, and a promotion in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from headrace.compile.plan import ABSORBED, ABSORBED_BY, LATE, PartialPlan, ViewPlan
from headrace.core.event import KEY
from headrace.serving.carried import stage_states
from headrace.serving.catalog import read_versions
from headrace.serving.database import Transaction
from headrace.serving.engine import run
from headrace.serving.merge import keys_of, stored_rows
from headrace.serving.merged_rows import SECONDS_MAX, grouped, merged_stored, read_stored
from headrace.serving.progress import read_stream
from headrace.serving.runs import (
    ROWS_MAX,
    Layer,
    Run,
    add_runs,
    count_runs,
    drop_rows,
    read_rows,
    runs_of,
)
from headrace.serving.store import StagedBuild, StateRow, StreamState, Superseded, Version

RUNS_MAX = 8  # of a generation, beside full ones
_VALUE = "_value"  # the column of a value behind an exact distinct count


@dataclass(frozen=True, slots=True)
class BuildBase:
    """What a build adds to: a generation, and by partial column the values that were counted; a
    full build counts all values. What has too many runs is compacted: `values`, or `rows`, those of
    the generation.
    """

    version: Version
    full: bool
    generation: int
    values: Mapping[str, Sequence[pa.Table]]
    compact_values: bool = False
    rows: pa.Table | None = None


@dataclass(frozen=True, slots=True)
class PreparedBuild:
    """The runs that a build writes, by layer and partial column; they replace those there."""

    base: BuildBase
    rows: int
    runs: Mapping[tuple[Layer, str], Sequence[Run]]


def read_base(db: Transaction, version: Version, *, full: bool) -> BuildBase:
    plan = version.plan
    generation = read_stream(db, plan.stream).generation
    if full:
        return BuildBase(version, full, generation, {})
    values = {partial.columns[0]: _values(db, plan, partial) for partial in plan.counted}
    crowded = _crowded(db, plan, Layer.GENERATION)
    rows = read_stored(db, plan, layers=[Layer.GENERATION]) if crowded else None
    compact_values = _crowded(db, plan, Layer.VALUES)
    return BuildBase(version, full, generation, values, compact_values, rows)


def _crowded(db: Transaction, plan: ViewPlan, layer: Layer) -> bool:
    """Whether a layer has the runs of many builds: every read merges them all."""
    runs, rows = count_runs(db, plan.stored_name, layer)
    return runs > RUNS_MAX * max(1, len(plan.counted)) + rows // ROWS_MAX


def _values(db: Transaction, plan: ViewPlan, partial: PartialPlan) -> list[pa.Table]:
    """The values that builds have counted, one run each."""
    found = read_rows(db, plan.stored_name, Layer.VALUES, column=partial.columns[0])
    return [values.set_column(1, _VALUE, _plain(values.column(_VALUE))) for _, values in found]


def prepare(base: BuildBase, rows: pa.Table, values: Mapping[str, pa.Table]) -> PreparedBuild:
    """Merge and encode a build's rows. `values` are the keys and values (`v`) behind each exact
    distinct count, by its partial column.
    """
    plan, runs = base.version.plan, dict[tuple[Layer, str], list[Run]]()
    if base.rows is not None:
        runs[Layer.GENERATION, ""] = runs_of(merged_stored(plan, base.rows))
    made = _one_row_a_key(plan, stored_rows(plan, rows))
    for partial in plan.counted:
        column = partial.columns[0]
        known = base.values.get(column, ())
        if base.compact_values and known:
            runs[Layer.VALUES, column] = runs_of(pa.concat_tables(known))
        fresh = _new_values(plan, values[column], known)
        runs[Layer.STAGED_VALUES, column] = runs_of(fresh)
        made = _counted(made, partial, fresh)
    runs[Layer.STAGED, ""] = runs_of(_absorbed(plan, made, base.generation + 1))
    return PreparedBuild(base, made.num_rows, runs)


def write_staged(db: Transaction, build: PreparedBuild, states: Sequence[StateRow]) -> StagedBuild:
    """Stage a prepared build, inside the caller's transaction."""
    version, full = build.base.version, build.base.full
    plan = version.plan
    check_current(db, read_stream(db, plan.stream), build.base.generation, [version])
    if plan.carry:
        stage_states(db, plan, states)
    for layer in {layer for layer, _ in build.runs}:
        drop_rows(db, plan.stored_name, layer)
    for (layer, column), runs in build.runs.items():
        add_runs(db, plan.stored_name, layer, runs, column=column)
    return StagedBuild(version, full, build.rows)


def check_current(
    db: Transaction, state: StreamState, since: int, versions: Sequence[Version]
) -> None:
    """Superseded unless these versions are deployed, and `since` is the newest generation."""
    stream = state.plan.name
    if state.generation != since:
        raise Superseded(
            f"the batch build of '{stream}' was discarded: it was built on generation {since}, "
            f"but the newest is {state.generation}"
        )
    deployed = {version.id for version in read_versions(db, stream)}
    if gone := [version.name for version in versions if version.id not in deployed]:
        raise Superseded(
            f"the batch build of '{stream}' was discarded: these views were changed or removed "
            f"while it ran: {', '.join(gone)}"
        )


def _one_row_a_key(plan: ViewPlan, rows: pa.Table) -> pa.Table:
    """Stored rows merged: a key may stand several times, and intervals may touch."""
    if not plan.joins and pc.count_distinct(rows.column(KEY)).as_py() == rows.num_rows:
        return rows
    return merged_stored(plan, grouped(rows, 0))


def _plain(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times as microseconds: Spark's have a zone, and the kernel's have none."""
    return values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values


def _new_values(plan: ViewPlan, values: pa.Table, known: Sequence[pa.Table]) -> pa.Table:
    """The distinct values that no build has counted, with the keys of their rows."""
    given = pa.table({KEY: keys_of(plan, values), _VALUE: _plain(values.column("v"))})
    tables = {"given": given, "known": pa.concat_tables([given.slice(0, 0), *known])}
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
