"""The partials of views in the store, as *runs*: tables of stored rows, sorted by key.

A run belongs to a version of a view and to a layer: the generation, speed (with the group of its
epoch), or a staged build. A run is immutable. An epoch adds one; a promotion turns staged runs into
those of the generation and drops speed's; the value of a key is the merge of all runs that contain
it (serving/merge.py). So the store needs no SQL that depends on a view, and writing partials needs
no more than a run. A run has a checksum. tests/serving/test_runs.py checks it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.core.event import KEY
from headrace.core.position import Interval
from headrace.serving.checksums import check, checksum_of
from headrace.serving.database import Transaction

ROWS_MAX = 65_536  # of a run: a lookup of one key reads no more than this of each layer
COUNTED_MAX = 1_000
_COUNTED: dict[tuple[Any, ...], int] = {}  # cached numbers of keys, because every status needs them
_IN_GROUPS = "number >= ? AND number < ?"
LZ4 = pa.ipc.IpcWriteOptions(compression="lz4")


class Layer(StrEnum):
    """The layer of a run. The values behind exact distinct counts have runs of their own for each
    partial column.
    """

    GENERATION = "generation"
    SPEED = "speed"
    STAGED = "staged"
    VALUES = "values"
    STAGED_VALUES = "staged values"


@dataclass(frozen=True, slots=True)
class Run:
    """A run that is ready to be written."""

    first: str  # key; of values in windows, the start of the first window
    last: str
    count: int
    rows: bytes


@dataclass(frozen=True, slots=True)
class RunEnds:
    """What is known of a run in the store without reading its rows."""

    id: int
    first: str
    last: str
    count: int


def runs_of(rows: pa.Table) -> list[Run]:
    """Rows as as many runs as they need."""
    rows = rows.take(pc.sort_indices(rows.column(KEY)))
    return [_run(rows.slice(first, ROWS_MAX)) for first in range(0, rows.num_rows, ROWS_MAX)]


def _run(rows: pa.Table) -> Run:
    keys = rows.column(KEY)
    ends = keys[0].as_py(), keys[len(keys) - 1].as_py()
    return Run(*ends, rows.num_rows, encoded(rows, LZ4))


def add_runs(
    db: Transaction,
    version: str,
    layer: Layer,
    runs: Iterable[Run],
    group: int = 0,
    column: str = "",
) -> None:
    for run in runs:
        ends = run.first, run.last
        written = version, layer, column, group, *ends, run.count, run.rows
        db.execute(
            "INSERT INTO _runs (version, layer, part, number, first, last, count, rows, checksum) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*written, checksum_of(ends, run.rows)),
        )


def add_rows(db: Transaction, version: str, layer: Layer, rows: pa.Table, group: int = 0) -> None:
    """Add rows, in as many runs as they need."""
    add_runs(db, version, layer, runs_of(rows), group)


def read_rows(
    db: Transaction,
    version: str,
    layer: Layer,
    *,
    keys: Collection[str] | None = None,
    groups: Interval | None = None,
    column: str = "",
) -> Iterator[tuple[int, pa.Table]]:
    """The groups and rows of the runs of a layer: of all groups or some, of all keys or some."""
    where, values = "version = ? AND layer = ? AND part = ?", list[Any]((version, layer, column))
    if groups is not None:
        where, values = f"{where} AND {_IN_GROUPS}", [*values, groups.lower, groups.upper]
    if keys:
        where, values = f"{where} AND last >= ? AND first <= ?", [*values, min(keys), max(keys)]
    wanted = None if keys is None else pa.array(sorted(keys), pa.string())
    columns = "number, version, first, last, rows, checksum"
    for group, *run in db.execute(f"SELECT {columns} FROM _runs WHERE {where} ORDER BY id", values):
        table = decoded(*run)
        if wanted is not None:
            table = table.filter(pc.is_in(table.column(KEY), value_set=wanted))
        yield int(group), table


def read_run_ends(db: Transaction, version: str, layer: Layer, column: str) -> list[RunEnds]:
    sql = "SELECT id, first, last, count FROM _runs WHERE version = ? AND layer = ? AND part = ?"
    return [RunEnds(*run) for run in db.execute(f"{sql} ORDER BY id", (version, layer, column))]


def read_run(db: Transaction, id: int) -> pa.Table:
    sql = "SELECT version, first, last, rows, checksum FROM _runs WHERE id = ?"
    return decoded(*db.execute(sql, (id,)).fetchone())


def drop_runs(db: Transaction, ids: Iterable[int]) -> None:
    db.executemany("DELETE FROM _runs WHERE id = ?", [(id,) for id in ids])


def decoded(version: str, first: str, last: str, rows: bytes, checksum: int | None) -> pa.Table:
    """The rows of a run; CorruptStore if they are not those that were written."""
    check(checksum, (first, last), rows, f"a run of '{version}'")
    return pa.ipc.open_stream(rows).read_all()


def drop_rows(db: Transaction, version: str, layer: Layer, groups: Interval | None = None) -> None:
    """Drop the runs of a layer, of all groups or some."""
    where, values = "version = ? AND layer = ?", list[Any]((version, layer))
    if groups is not None:
        where, values = f"{where} AND {_IN_GROUPS}", [*values, groups.lower, groups.upper]
    db.execute(f"DELETE FROM _runs WHERE {where}", values)


def groups_to_compact(db: Transaction, version: str, before: int, most: int) -> list[int]:
    """The groups of speed before one that have more runs than `most`."""
    found = db.execute(
        "SELECT number FROM _runs WHERE version = ? AND layer = ? AND number < ? "
        "GROUP BY number HAVING count(*) > ?",
        (version, Layer.SPEED, before, most),
    )
    return [int(number) for (number,) in found]


def move_rows(db: Transaction, version: str, source: Layer, target: Layer) -> None:
    """Move the runs of a layer to another."""
    db.execute(
        "UPDATE _runs SET layer = ? WHERE version = ? AND layer = ?", (target, version, source)
    )


def count_runs(db: Transaction, version: str, layer: Layer) -> tuple[int, int]:
    """How many runs there are in a layer, and how many rows they have together."""
    sql = "SELECT count(*), coalesce(sum(count), 0) FROM _runs WHERE version = ? AND layer = ?"
    runs, rows = db.execute(sql, (version, layer)).fetchone()
    return int(runs), int(rows)


def drop_version(db: Transaction, version: str) -> None:
    db.execute("DELETE FROM _runs WHERE version = ?", (version,))


def encoded(rows: pa.Table, options: pa.ipc.IpcWriteOptions | None = None) -> bytes:
    """Rows in Arrow's format of streams."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def count_keys(db: Transaction, version: str) -> int:
    """How many keys have rows, in the generation or in speed."""
    sql = "SELECT coalesce(max(id), 0), count(*) FROM _runs WHERE version = ? AND layer IN (?, ?)"
    layers = (Layer.GENERATION, Layer.SPEED)
    known = (version, *db.execute(sql, (version, *layers)).fetchone())
    if known not in _COUNTED:
        keys = [rows.column(KEY) for layer in layers for _, rows in read_rows(db, version, layer)]
        if len(_COUNTED) >= COUNTED_MAX:
            _COUNTED.clear()
        chunks = [chunk for column in keys for chunk in column.chunks]
        _COUNTED[known] = len(pa.chunked_array(chunks, pa.string()).unique())
    return _COUNTED[known]
