"""The rows of tables for the kernel's tasks, which have no Spark SQL to read them with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from headrace.kernel.partials import without_zone


class BroadcastTables:
    """Tables of a session, sent to each executor once."""

    def __init__(self, spark: Any) -> None:
        self.spark = spark
        self._rows: dict[str, pa.Table] = {}
        self._sent: dict[str, Any] = {}

    def keep(self, name: str, rows: pa.Table) -> None:
        """Use these rows of a table, which were read already."""
        self.forget(name)
        self._rows[name] = rows

    def sent(self, names: Iterable[str]) -> Mapping[str, Any]:
        for name in names:
            if name not in self._sent:
                rows = self._rows.get(name)
                if rows is None:
                    rows = self.spark.table(f"`{name}`").toArrow()
                self._sent[name] = self.spark.sparkContext.broadcast(without_zone(rows))
        return {name: self._sent[name] for name in names}

    def forget(self, name: str) -> None:
        """Have a table read again, whose content has changed."""
        self._rows.pop(name, None)
        if sent := self._sent.pop(name, None):
            sent.destroy()
