"""The values behind exact distinct counts: which of a build's values are new.

For each key and each exact distinct count, the runs of the values have every value that builds have
counted, once. So a value that is not in them is new, and the numbers of new values of all builds
add up. Keys with windows are in the order of time, and the ends of a run are its first and last
window: a build reads only runs with windows of its own; without windows, those that may have one of
its keys. Beside its own values it holds at most CHUNK others at a time.
tests/serving/test_counted_values.py compares it with sets of Python.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.compile.plan import ViewPlan
from headrace.core.event import KEY
from headrace.serving.database import Transaction
from headrace.serving.engine import run
from headrace.serving.merge import keys_of
from headrace.serving.merged_rows import SECONDS_MAX
from headrace.serving.runs import (
    LZ4,
    ROWS_MAX,
    Layer,
    Run,
    RunEnds,
    encoded,
    read_run,
    read_run_ends,
    runs_of,
)

CHUNK = 1 << 20  # values that DuckDB has in one table
VALUE = "_value"
_PLACE = "place"  # of a value's key


@dataclass(frozen=True, slots=True)
class CountedValues:
    """Different values, each with the place of its key in `keys`. These are in the order of their
    windows, if they have any, and then of their texts.
    """

    keys: pa.Array
    windows: np.ndarray | None
    rows: pa.Table

    @staticmethod
    def of(plan: ViewPlan, values: pa.Table) -> CountedValues:
        """Those of rows with the keys of a view and a value, `v`."""
        found, places = _distinct_keys(plan, values)
        keys, windows = keys_of(plan, found), None
        order = pc.sort_indices(keys)
        if plan.windowed:
            windows = found.column(plan.windowed[0]).cast(pa.int64()).to_numpy()
            order = order.take(pa.array(np.argsort(windows[order.to_numpy()], kind="stable")))
            windows = windows[order.to_numpy()]
        rows = _table(_ranks(order)[places], values.column("v"))
        return CountedValues(keys.take(order), windows, _distinct(rows))

    def new(self, db: Transaction, version: str, column: str) -> CountedValues:
        """Those that no build has counted."""
        rows = self.rows
        for counted in _chunks(self._counted(db, version, column)):
            sql = f"SELECT given.* FROM given ANTI JOIN counted USING ({_PLACE}, {VALUE})"
            rows = run(sql, {"given": rows, "counted": counted}, SECONDS_MAX)
        return replace(self, rows=rows)

    def _counted(self, db: Transaction, version: str, column: str) -> Iterator[pa.Table]:
        """The values that builds have counted for these keys, run by run."""
        for ends in read_run_ends(db, version, Layer.VALUES, column):
            if self._meets(ends):
                yield self._placed(read_run(db, ends.id))

    def _meets(self, ends: RunEnds) -> bool:
        """Whether a run may have one of these keys."""
        if self.windows is not None:
            if not by_window(ends):
                return True
            place = int(np.searchsorted(self.windows, int(ends.first)))
            return place < len(self.windows) and self.windows[place] <= int(ends.last)
        place = bisect_left(range(len(self.keys)), ends.first, key=self._key)
        return place < len(self.keys) and self._key(place) <= ends.last

    def _key(self, place: int) -> str:
        return str(self.keys[place])

    def _placed(self, rows: pa.Table) -> pa.Table:
        """The rows of a run that have one of these keys."""
        found = rows.column(KEY).dictionary_encode().combine_chunks()
        places = pc.index_in(found.dictionary, value_set=self.keys).take(found.indices)
        return _table(places, rows.column(VALUE)).filter(pc.is_valid(places))

    def numbers(self, keys: pa.Array) -> pa.Array:
        """How many values each of these keys has."""
        places = self.rows.column(_PLACE).to_numpy()
        numbers = pa.array(np.bincount(places, minlength=len(self.keys)), pa.int64())
        found = numbers.take(pc.index_in(keys, value_set=self.keys))
        return pc.coalesce(found, pa.scalar(0, pa.int64()))

    def runs(self) -> list[Run]:
        """As runs, in the order of their keys."""
        rows = self.rows.take(pc.sort_indices(self.rows.column(_PLACE)))
        return [self._run(rows.slice(first, ROWS_MAX)) for first in range(0, len(rows), ROWS_MAX)]

    def _run(self, rows: pa.Table) -> Run:
        places = rows.column(_PLACE).to_numpy()
        first, last = int(places[0]), int(places[-1])
        keyed = pa.DictionaryArray.from_arrays(
            places - first, self.keys.slice(first, last - first + 1)
        )
        ends = self.keys if self.windows is None else self.windows
        table = pa.table({KEY: keyed, VALUE: rows.column(VALUE)})
        return Run(str(ends[first]), str(ends[last]), len(rows), encoded(table, LZ4))


def by_window(ends: RunEnds) -> bool:
    """Whether the ends of a run are windows; keys, which are JSON lists, are those of a view
    without windows, and of all runs that earlier versions wrote.
    """
    return not ends.first.startswith("[")


def packed(ends: Sequence[RunEnds], runs: Iterable[pa.Table]) -> list[Run]:
    """Small runs, which have no value in common, as few larger ones. Where the ends are windows,
    each has those of all.
    """
    keyed = pa.concat_tables(_with_texts(rows) for rows in runs)
    made = runs_of(keyed)
    if not by_window(ends[0]):
        return made
    windows = [int(end) for run in ends for end in (run.first, run.last)]
    return [replace(run, first=str(min(windows)), last=str(max(windows))) for run in made]


def _distinct_keys(plan: ViewPlan, rows: pa.Table) -> tuple[pa.Table, np.ndarray]:
    """The different keys of rows, and the place of each row's key among them. There are many rows
    and few keys, so the columns are encoded as numbers, and only different keys become texts.
    """
    found, places = pa.table({"": [0]}), np.zeros(len(rows), np.int64)
    for key in plan.keys:
        column = rows.column(key.column).dictionary_encode("encode").combine_chunks()
        size = max(1, len(column.dictionary))
        pairs = pa.array(places * size + column.indices.to_numpy()).dictionary_encode()
        before, value = np.divmod(pairs.dictionary.to_numpy(), size)
        found = found.take(before).append_column(key.column, column.dictionary.take(value))
        places = pairs.indices.to_numpy().astype(np.int64)
    return found, places


def _ranks(order: pa.Array) -> np.ndarray:
    """The place of each key in this order."""
    ranks = np.empty(len(order), np.int32)
    ranks[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
    return ranks


def _table(places: Any, values: pa.ChunkedArray) -> pa.Table:
    """Values are stored as one type, whichever engine has computed them."""
    return pa.table({_PLACE: places, VALUE: values.cast(_stored_type(values.type))})


def _stored_type(type: pa.DataType) -> pa.DataType:
    if pa.types.is_floating(type):
        return pa.float64()
    return type if pa.types.is_string(type) or pa.types.is_binary(type) else pa.int64()


def _with_texts(rows: pa.Table) -> pa.Table:
    """A run whose keys are plain texts, because each run has a dictionary of its own."""
    values = rows.column(VALUE)
    return pa.table({KEY: rows.column(KEY).cast(pa.string()), VALUE: values})


def _distinct(rows: pa.Table) -> pa.Table:
    """Each row once. Equal rows have one hash, so that the rows can be taken part by part."""
    parts = len(rows) // CHUNK + 1
    sql = f"SELECT DISTINCT * FROM given WHERE hash({_PLACE}, {VALUE}) % {parts} = "
    found = [run(f"{sql}{part}", {"given": rows}, SECONDS_MAX) for part in range(parts)]
    return pa.concat_tables(found)


def _chunks(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Tables of about CHUNK rows."""
    found: list[pa.Table] = []
    for table in tables:
        found.append(table)
        if sum(map(len, found)) >= CHUNK:
            yield pa.concat_tables(found)
            found = []
    if found:
        yield pa.concat_tables(found)
