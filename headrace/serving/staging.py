"""A build's rows are staged as runs beside the answer, so that their promotion is short.

Rows are merged and encoded outside of the store's transactions, because a large view takes minutes
and other flows commit epochs meanwhile:
    base = read_base(snapshot); prepared = prepare(base, rows); write_staged(transaction, prepared)
What the base has changes only with a promotion, so the write is refused as Superseded if there was
one. Exact distinct counts store which values have been counted: a build counts the new ones
(serving/counted_values.py). The runs of many builds are merged into one before the next.
tests/serving/test_generations.py checks builds, and a promotion in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.compile.plan import ABSORBED, ABSORBED_BY, LATE, ViewPlan
from headrace.core.event import KEY
from headrace.serving.carried import stage_states
from headrace.serving.catalog import read_versions
from headrace.serving.counted_values import CountedValues, by_window, packed
from headrace.serving.database import Transaction
from headrace.serving.merge import stored_rows
from headrace.serving.merged_rows import grouped, merged_stored, read_stored
from headrace.serving.progress import read_stream
from headrace.serving.runs import (
    ROWS_MAX,
    Layer,
    Run,
    RunEnds,
    add_runs,
    count_runs,
    drop_rows,
    drop_runs,
    read_run,
    read_run_ends,
    runs_of,
)
from headrace.serving.store import StagedBuild, StateRow, StreamState, Superseded, Version

RUNS_MAX = 8  # of a generation, beside full ones


@dataclass(frozen=True, slots=True)
class BuildBase:
    """What a build adds to: a generation, and by partial column the build's values that were not
    counted before; a full build counts all values. What has too many runs is compacted: `rows`,
    those of the generation, or by partial column small runs of values.
    """

    version: Version
    full: bool
    generation: int
    values: Mapping[str, CountedValues]
    small: Mapping[str, SmallRuns] = field(default_factory=dict)
    rows: pa.Table | None = None


@dataclass(frozen=True, slots=True)
class SmallRuns:
    """Runs of values that are to become fewer."""

    ends: Sequence[RunEnds]
    rows: Sequence[pa.Table]


@dataclass(frozen=True, slots=True)
class PreparedBuild:
    """The runs that a build writes, by layer and partial column; they replace those there, and
    `packed` only the small ones.
    """

    base: BuildBase
    rows: int
    runs: Mapping[tuple[Layer, str], Sequence[Run]]
    packed: Mapping[str, Sequence[Run]]


def read_base(
    db: Transaction, version: Version, values: Mapping[str, CountedValues], *, full: bool
) -> BuildBase:
    plan = version.plan
    generation = read_stream(db, plan.stream).generation
    if full:
        return BuildBase(version, full, generation, values)
    new = {column: some.new(db, plan.stored_name, column) for column, some in values.items()}
    small = {column: runs for column in values if (runs := _small_runs(db, plan, column))}
    rows = read_stored(db, plan, layers=[Layer.GENERATION]) if _crowded(db, plan) else None
    return BuildBase(version, full, generation, new, small, rows)


def _crowded(db: Transaction, plan: ViewPlan) -> bool:
    """Whether the generation has the runs of many builds: every read merges them all."""
    runs, rows = count_runs(db, plan.stored_name, Layer.GENERATION)
    return runs > RUNS_MAX + rows // ROWS_MAX


def _small_runs(db: Transaction, plan: ViewPlan, column: str) -> SmallRuns | None:
    """The runs of values that are less than half full, if there are many. No value is in two runs,
    so full ones need not be read again.
    """
    known = read_run_ends(db, plan.stored_name, Layer.VALUES, column)
    alike = [run for run in known if by_window(run) == bool(plan.windowed)]
    ends = [run for run in alike if run.count < ROWS_MAX // 2]
    if len(ends) <= RUNS_MAX:
        return None
    return SmallRuns(ends, [read_run(db, run.id) for run in ends])


def prepare(base: BuildBase, rows: pa.Table) -> PreparedBuild:
    """Merge and encode a build's rows."""
    plan, runs = base.version.plan, dict[tuple[Layer, str], list[Run]]()
    if base.rows is not None:
        runs[Layer.GENERATION, ""] = runs_of(merged_stored(plan, base.rows))
    made = _one_row_a_key(plan, stored_rows(plan, rows))
    for column, values in base.values.items():
        runs[Layer.STAGED_VALUES, column] = values.runs()
        made = _with_column(made, column, values.numbers(made.column(KEY)))
    runs[Layer.STAGED, ""] = runs_of(_absorbed(plan, made, base.generation + 1))
    small = {column: packed(runs.ends, runs.rows) for column, runs in base.small.items()}
    return PreparedBuild(base, made.num_rows, runs, small)


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
    for column, runs in build.packed.items():
        drop_runs(db, [run.id for run in build.base.small[column].ends])
        add_runs(db, plan.stored_name, Layer.VALUES, runs, column=column)
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


def _absorbed(plan: ViewPlan, rows: pa.Table, number: int) -> pa.Table:
    """The late events of a build are in this generation, once it is promoted."""
    if not plan.has_lateness:
        return rows
    late = rows.column(LATE)
    some, none = pc.greater(late, 0), pa.scalar(None, pa.int64())
    for name, value in ((ABSORBED, late), (ABSORBED_BY, pa.scalar(number, pa.int64()))):
        rows = _with_column(rows, name, pc.if_else(some, value, none))
    return rows


def _with_column(rows: pa.Table, name: str, values: Any) -> pa.Table:
    place = rows.schema.get_field_index(name)
    return rows.set_column(place, rows.schema.field(place), values)
