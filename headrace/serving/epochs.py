"""Commits an epoch in one transaction: its partials, and the position up to which they count.

The position is the progress. An epoch is identified by its position range: one that starts before
the stored position was committed before and is skipped; one that starts after it would leave a gap
and is refused. One without events is identified by its watermark. An epoch that was computed for an
older generation is refused, because the states it started from are gone, and so is one without rows
for a version that was deployed meanwhile.
tests/serving/test_epochs.py, tests/laws/test_interleavings.py and the kill tests check this.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from headrace.compile.plan import ViewPlan
from headrace.core.errors import EngineFailed
from headrace.core.event import CUT, KEY
from headrace.core.position import Interval
from headrace.serving.carried import commit_states
from headrace.serving.catalog import read_versions
from headrace.serving.commits import record_changed
from headrace.serving.database import Transaction
from headrace.serving.merge import stored_rows
from headrace.serving.merged_rows import merged_stored, read_stored
from headrace.serving.progress import advance, read_stream, stored_times
from headrace.serving.runs import Layer, add_rows, drop_rows, groups_to_compact
from headrace.serving.shed_epochs import record_shed
from headrace.serving.store import NOW, Epoch, Superseded, Version

EPOCHS_KEPT = 1_000
RUNS_MAX = 4  # of a closed group


def commit_epoch(db: Transaction, epoch: Epoch, group_us: int, now_us: int) -> bool:
    """Add an epoch inside the caller's transaction; False when it was committed before."""
    state = read_stream(db, epoch.stream)
    if epoch.reached.position <= state.position and (
        len(epoch.range) or epoch.reached <= state.reached
    ):
        return False
    if epoch.lower != state.position:
        raise EngineFailed(
            f"an epoch of stream '{epoch.stream}' starts at {epoch.lower}, "
            f"but the store has committed up to {state.position}"
        )
    versions = read_versions(db, epoch.stream)
    _check_current(epoch, state.generation, versions)
    group = _group(db, epoch, group_us, now_us)
    for version in versions:
        _compact(db, version.plan, group)
        if version.id in epoch.carried:
            _add_carried(db, version.plan, epoch, group)
        elif version.id in epoch.rows:
            _add_rows(db, version.plan, epoch.rows[version.id], group)
        if count := epoch.provisional.get(version.id):
            db.execute(
                "INSERT INTO _provisional VALUES (?, ?, ?) "
                "ON CONFLICT (version, number) DO UPDATE "
                "SET count = _provisional.count + excluded.count",
                (version.id, group, count),
            )
    # Its events count as received now, so that the time of the epoch is not idle time.
    advance(db, state, epoch.reached, now_us)
    _record(db, epoch, now_us)
    return True


def _compact(db: Transaction, plan: ViewPlan, group: int) -> None:
    """Merge the runs of each closed group into one, because every read merges them all."""
    for number in groups_to_compact(db, plan.stored_name, group, RUNS_MAX):
        epochs = Interval(number, number + 1)
        rows = merged_stored(plan, read_stored(db, plan, layers=[Layer.SPEED], groups=epochs))
        drop_rows(db, plan.stored_name, Layer.SPEED, epochs)
        add_rows(db, plan.stored_name, Layer.SPEED, rows, number)


def _check_current(epoch: Epoch, generation: int, versions: Sequence[Version]) -> None:
    if epoch.generation != generation:
        raise Superseded(
            f"an epoch of '{epoch.stream}' was discarded: it was computed for generation "
            f"{epoch.generation}, but the newest is {generation}"
        )
    if missing := [version.name for version in versions if version.id not in epoch.rows]:
        raise Superseded(
            f"an epoch of '{epoch.stream}' was discarded: it was computed before these views were "
            f"deployed: {', '.join(missing)}"
        )


def _group(db: Transaction, epoch: Epoch, group_us: int, now_us: int) -> int:
    """The open group, or a new one if it has been open for `group_us`."""
    number, opened_at, closed = db.execute(
        "SELECT number, opened_at, closed FROM _groups WHERE stream = ? "
        "ORDER BY number DESC LIMIT 1",
        (epoch.stream,),
    ).fetchone() or (0, 0, 1)
    times = [stored_times(times) for times in (epoch.reached.highs, epoch.reached.marks)]
    if not closed and now_us - opened_at < group_us:
        db.execute(
            "UPDATE _groups SET upper = ?, highs = ?, marks = ? WHERE stream = ? AND number = ?",
            (str(epoch.reached.position), *times, epoch.stream, number),
        )
        return int(number)
    db.execute("UPDATE _groups SET closed = 1 WHERE stream = ? AND closed = 0", (epoch.stream,))
    db.execute(
        "INSERT INTO _groups VALUES (?, ?, ?, ?, 0, ?, ?)",
        (epoch.stream, number + 1, str(epoch.reached.position), now_us, *times),
    )
    return int(number) + 1


def _add_carried(db: Transaction, plan: ViewPlan, epoch: Epoch, group: int) -> None:
    """Add the rows of a carried view to the groups in their CUT column, and its states."""
    carried = epoch.carried[plan.recompute]
    if carried.rebased:
        drop_rows(db, plan.stored_name, Layer.SPEED)
        record_changed(db, plan.recompute, None)
    rows = epoch.rows[plan.recompute]
    for number in pc.unique(rows.column(CUT)).to_pylist() if rows.num_rows else ():
        part = rows.filter(pc.equal(rows.column(CUT), number))
        _add_rows(db, plan, part, group if number == NOW else number)
    commit_states(db, plan, carried, group)


def _add_rows(db: Transaction, plan: ViewPlan, lifted: pa.Table, group: int) -> None:
    rows = stored_rows(plan, lifted)
    record_changed(db, plan.recompute, rows.column(KEY).to_pylist())
    add_rows(db, plan.stored_name, Layer.SPEED, rows, group)


def _record(db: Transaction, epoch: Epoch, now_us: int) -> None:
    counts = epoch.counts
    db.execute(
        "UPDATE _streams SET committed_at = ?, late = late + ? WHERE name = ?",
        (now_us, counts["late"], epoch.stream),
    )
    (number,) = db.execute(
        "INSERT INTO _epochs (stream, lower, upper, events, late, duplicates, dead_letters, "
        "started_at, committed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING number",
        (
            epoch.stream,
            str(epoch.range.lower),
            str(epoch.range.upper),
            *(counts[name] for name in ("events", "late", "duplicates", "dead_letters")),
            epoch.started_at,
            now_us,
        ),
    ).fetchone()
    record_shed(db, epoch, number)
    db.execute("DELETE FROM _epochs WHERE number <= ?", (number - EPOCHS_KEPT,))
