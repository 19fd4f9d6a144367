"""Finished rows of a view in memory, of one commit: looked up by key, or read as one table.

`base` is sorted by key and shared by many commits; rows that changed since are in `recent`, until
they are an eighth of the base. An object is immutable, so a reader keeps the rows of one commit
while newer ones are made. tests/serving/test_cached_rows.py compares it with a plain dictionary.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from headrace.core.event import KEY

RECENT_MIN, RECENT_SHARE, CHUNKS_MAX = 4_096, 8, 64


class CachedRows:
    """The rows of one commit."""

    def __init__(
        self, base: pa.Table, recent: pa.Table, newer: Mapping[str, int | None], *, read: bool
    ) -> None:
        self.base, self.recent = base, recent
        self.newer = newer  # key -> its index in `recent`; None: it has no row any more
        keyed = base.num_rows and KEY in base.column_names
        self._keys = base.column(KEY).chunk(0) if keyed else pa.array([], pa.string())
        self._read = read
        if read:
            self.whole  # noqa: B018  (computed now, so that no reader waits for it)

    @staticmethod
    def of(table: pa.Table, *, read: bool = False) -> CachedRows:
        """These rows, with unique keys. Rows that are merged on read have no key and cannot be
        changed.
        """
        if KEY in table.column_names:
            table = table.take(pc.sort_indices(table.column(KEY)))
        base = table.combine_chunks()
        return CachedRows(base, base.slice(0, 0), {}, read=read)

    def changed(self, keys: Collection[str], rows: pa.Table) -> CachedRows:
        """The rows of the next commit: these keys have changed, and now have these rows or none."""
        first = self.recent.num_rows
        newer = {**self.newer, **dict.fromkeys(keys)}
        newer |= {key: first + n for n, key in enumerate(rows.column(KEY).to_pylist())}
        recent = pa.concat_tables([self.recent, rows])
        # Rows are counted and not keys: a key that changes with every commit has a row for each.
        if first + len(keys) > max(RECENT_MIN, self.base.num_rows // RECENT_SHARE):
            return CachedRows.of(
                CachedRows(self.base, recent, newer, read=False).whole, read=self.read
            )
        if recent.column(KEY).num_chunks > CHUNKS_MAX:
            recent = recent.combine_chunks()
        return CachedRows(self.base, recent, newer, read=self.read)

    @property
    def read(self) -> bool:
        """Whether all rows have been read."""
        return self._read or "whole" in self.__dict__

    def find(self, key: str) -> pa.Table:
        """The row of a key, or none."""
        if key in self.newer:
            place = self.newer[key]
            return self.recent.slice(place or 0, 0 if place is None else 1)
        keys = self._keys
        place = bisect_left(range(len(keys)), key, key=lambda n: keys[n].as_py())
        found = place < len(keys) and keys[place].as_py() == key
        return self.base.slice(place, 1 if found else 0)

    @cached_property
    def whole(self) -> pa.Table:
        """All rows."""
        if not self.newer:
            return self.base
        old = pc.is_in(self.base.column(KEY), value_set=pa.array(list(self.newer), pa.string()))
        places = [place for place in self.newer.values() if place is not None]
        recent = self.recent.take(pa.array(places, pa.int64()))
        return pa.concat_tables([self.base.filter(pc.invert(old)), recent])

    @property
    def count(self) -> int:
        """About how many rows there are."""
        return int(self.base.num_rows + self.recent.num_rows)

    @property
    def bytes(self) -> int:
        return int(self.base.nbytes + self.recent.nbytes)
