"""An epoch is committed in one transaction: its partials, and the position they bring the view to.

That position is the progress. An epoch is recognised by its position range: one that begins
before the stored position was committed before and is skipped; one that begins after it would
leave a gap and is refused. tests/serving/test_epochs.py and the kill tests check this.
"""

from __future__ import annotations

import sqlite3

from headrace.compile.plan import ViewPlan
from headrace.core.errors import EngineFailed
from headrace.serving.catalog import read_stream, read_versions, tables_of
from headrace.serving.merge import columns_of, upsert
from headrace.serving.rows import sketch_columns, stored_rows
from headrace.serving.sketches import estimate
from headrace.serving.store import Epoch

EPOCHS_KEPT = 1_000


def commit_epoch(db: sqlite3.Connection, epoch: Epoch, group_us: int, now_us: int) -> bool:
    """Add an epoch inside the caller's transaction; False when it was there already."""
    state = read_stream(db, epoch.stream)
    if epoch.range.upper <= state.position:
        return False
    if epoch.range.lower != state.position:
        raise EngineFailed(
            f"an epoch of stream '{epoch.stream}' begins at {epoch.range.lower}, "
            f"but the store is at {state.position}"
        )
    group = _group(db, epoch, group_us, now_us)
    for version in read_versions(db, epoch.stream):
        if version.id in epoch.rows:
            _add_rows(db, version.plan, epoch, group)
        if count := epoch.provisional.get(version.id):
            db.execute(
                "INSERT INTO _provisional VALUES (?, ?, ?) "
                "ON CONFLICT DO UPDATE SET count = count + excluded.count",
                (version.id, group, count),
            )
    _advance(db, epoch, now_us)
    return True


def _group(db: sqlite3.Connection, epoch: Epoch, group_us: int, now_us: int) -> int:
    """The open group, or a new one when it has been open long enough."""
    number, opened_at, closed = db.execute(
        "SELECT number, opened_at, closed FROM _groups WHERE stream = ? "
        "ORDER BY number DESC LIMIT 1",
        (epoch.stream,),
    ).fetchone() or (0, 0, 1)
    if not closed and now_us - opened_at < group_us:
        db.execute(
            "UPDATE _groups SET upper = ? WHERE stream = ? AND number = ?",
            (str(epoch.range.upper), epoch.stream, number),
        )
        return int(number)
    db.execute("UPDATE _groups SET closed = 1 WHERE stream = ? AND closed = 0", (epoch.stream,))
    db.execute(
        "INSERT INTO _groups VALUES (?, ?, ?, ?, 0)",
        (epoch.stream, number + 1, str(epoch.range.upper), now_us),
    )
    return int(number) + 1


def _add_rows(db: sqlite3.Connection, plan: ViewPlan, epoch: Epoch, group: int) -> None:
    _, speed, _ = tables_of(plan)
    rows = list(stored_rows(plan, epoch.rows[plan.recompute], group))
    places = ", ".join("?" * (2 + len(columns_of(plan))))
    db.executemany(upsert(plan, speed, f"VALUES ({places})", grouped=True), rows)
    if sketch_columns(plan):
        _refresh_estimates(db, plan, [row[0] for row in rows], group)


def _refresh_estimates(db: sqlite3.Connection, plan: ViewPlan, keys: list[str], group: int) -> None:
    """The number of a key's sketch is of all its events so far, so that reading merges no
    sketches.
    """
    generation, speed, _ = tables_of(plan)
    for sketch, number, _ in sketch_columns(plan):
        both = (f"SELECT {sketch} FROM {table} WHERE _key = ?" for table in (generation, speed))
        read = " UNION ALL ".join(both)
        updates = [
            (estimate(row[0] for row in db.execute(read, (key, key))), key, group) for key in keys
        ]
        db.executemany(f"UPDATE {speed} SET {number} = ? WHERE _key = ? AND _group = ?", updates)


def _advance(db: sqlite3.Connection, epoch: Epoch, now_us: int) -> None:
    for partition, (offset, high) in enumerate(
        zip(epoch.range.upper.offsets, epoch.highs, strict=True)
    ):
        db.execute(
            "UPDATE _progress SET next_offset = ?, high_us = ? WHERE stream = ? AND partition = ?",
            (offset, high, epoch.stream, partition),
        )
    counts = epoch.counts
    db.execute(
        "UPDATE _streams SET committed_at = ?, late = late + ? WHERE name = ?",
        (now_us, counts["late"], epoch.stream),
    )
    cursor = db.execute(
        "INSERT INTO _epochs VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            epoch.stream,
            str(epoch.range.lower),
            str(epoch.range.upper),
            *(counts[name] for name in ("events", "late", "duplicates", "dead_letters")),
            epoch.started_at,
            now_us,
        ),
    )
    db.execute("DELETE FROM _epochs WHERE number <= ?", ((cursor.lastrowid or 0) - EPOCHS_KEPT,))
