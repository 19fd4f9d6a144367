"""The row at the end of each key of a fold: state, timer, and whether events were out of order."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from headrace.core.event import CUT, DISORDERED, KEY, SEQ, STATE, TIME, TIMER

COLUMNS = (KEY, TIME, SEQ, STATE, TIMER, DISORDERED, CUT)
KeyEnd = tuple[str, int, int, bytes, int | None, bool, int | None]


class KeyEndRows:
    """Rows that end keys, collected as columns."""

    def __init__(self) -> None:
        self.rows: list[KeyEnd] = []

    def __len__(self) -> int:
        return len(self.rows)

    def add(
        self,
        key: str,
        last: tuple[int, int],
        state: bytes,
        timer: int | None,
        disordered: bool,
        cut: int | None,
    ) -> None:
        self.rows.append((key, *last, state, timer, disordered, cut))

    def extend(self, rows: Iterable[KeyEnd]) -> None:
        self.rows += rows

    def batch(self, schema: pa.Schema) -> pa.RecordBatch:
        values = zip(*self.rows, strict=True) if self.rows else ([] for _ in COLUMNS)
        columns = dict(zip(COLUMNS, values, strict=True))
        arrays = [
            pa.array(columns[f.name], f.type)
            if f.name in columns
            else pa.nulls(len(self.rows), f.type)
            for f in schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
