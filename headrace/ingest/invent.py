"""Values for the columns of a generated event.

A column's values are made for many events at once. Frequencies fall as in Zipf's law: the first
value is twice as frequent as the second, and so on. An event's moment is now, or earlier if it is
late.
tests/ingest/test_generator.py checks each type.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from random import Random
from typing import Any

from headrace.core.schema import Column
from headrace.core.time import iso
from headrace.define.definitions import StreamDefinition
from headrace.ingest.generator_options import GeneratorOptions, column_values, numbered

Event = dict[str, Any]
_Make = Callable[[list[int]], list[Any]]  # moments -> one value each
_CARDINALITY = 50
_MU, _SIGMA = 4.0, 1.0  # of log-normal numbers: their median is 55, one in a hundred is above 560


class Inventor:
    """Makes whole and well-formed events."""

    def __init__(
        self, definition: StreamDefinition, rng: Random, run: str, options: GeneratorOptions
    ) -> None:
        self._definition, self._rng, self._run, self._options = definition, rng, run, options
        listed = column_values(definition) if definition.source == "generator" else {}
        self._makers = [(c.name, self._maker(c, listed)) for c in definition.schema.columns]
        self._ever = 0

    def events(self, n: int, now_us: int) -> list[Event]:
        """The next `n`, each a microsecond after the one before, the last one now."""
        moments = [now_us - back - self._lateness() for back in range(n - 1, -1, -1)]
        names = [name for name, _ in self._makers]
        columns = [make(moments) for _, make in self._makers]
        rows = zip(*columns, strict=True) if columns else ((),) * n
        events = [dict(zip(names, row, strict=True)) for row in rows]
        self._number(events)
        return events

    def _lateness(self) -> int:
        if self._rng.random() >= self._options.out_of_order:
            return 0
        return self._rng.randint(1, self._options.late_by)

    def _number(self, events: list[Event]) -> None:
        """Give each event its id, which no other process will give."""
        name, definition = self._definition.id, self._definition
        if name is None:
            return
        column = definition.schema.find(name)
        for number, event in enumerate(events, self._ever):
            if column and column.type.numeric:
                event[column.name] = int(self._run, 36) + number
            else:
                event[column.name if column else name] = f"{definition.name}-{self._run}-{number}"
        self._ever += len(events)

    def _maker(self, column: Column, listed: dict[str, list[Any]]) -> _Make:
        if column.name in listed:
            return self._chosen(listed[column.name])
        make = self._by_type(column)
        if not column.type.array:
            return make
        return lambda moments: [list(pair) for pair in zip(*(make(moments),) * 2, strict=True)]

    def _by_type(self, column: Column) -> _Make:
        rng = self._rng
        by_type: dict[str, _Make] = {
            "BOOLEAN": lambda moments: [rng.random() < 0.5 for _ in moments],
            "INT": lambda moments: [1 + int(rng.lognormvariate(_MU, _SIGMA)) for _ in moments],
            "BIGINT": lambda moments: [1 + int(rng.lognormvariate(_MU, _SIGMA)) for _ in moments],
            "DOUBLE": lambda moments: [round(rng.lognormvariate(_MU, _SIGMA), 3) for _ in moments],
            "TIMESTAMP": lambda moments: [iso(moment) for moment in moments],
            "DATE": lambda moments: [iso(moment)[:10] for moment in moments],
        }
        return by_type.get(column.type.name) or self._chosen(numbered(column, _CARDINALITY))

    def _chosen(self, values: list[Any]) -> _Make:
        weights = list(accumulate(1 / rank for rank in range(1, len(values) + 1)))
        return lambda moments: self._rng.choices(values, cum_weights=weights, k=len(moments))
