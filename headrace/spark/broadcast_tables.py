"""The rows of tables for the kernel's tasks, which have no Spark SQL to read them with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headrace.kernel.partials import without_zone


class BroadcastTables:
    """Tables of a session, sent to each executor once."""

    def __init__(self, spark: Any) -> None:
        self.spark = spark
        self._sent: dict[str, Any] = {}

    def sent(self, names: Iterable[str]) -> Mapping[str, Any]:
        for name in names:
            if name not in self._sent:
                rows = without_zone(self.spark.table(f"`{name}`").toArrow())
                self._sent[name] = self.spark.sparkContext.broadcast(rows)
        return {name: self._sent[name] for name in names}

    def forget(self, name: str) -> None:
        """Have a table read again, whose content has changed."""
        if sent := self._sent.pop(name, None):
            sent.destroy()
