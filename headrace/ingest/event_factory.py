"""Values for the columns of a generated event.

A column's values are made for many events at once. Frequencies fall as in Zipf's law: the first
value is twice as frequent as the second, and so on. An event's time is now, or earlier if it is
late. tests/ingest/test_generator.py checks each type.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from decimal import Decimal
from itertools import accumulate
from random import Random
from typing import Any

from headrace.core.json_path import JsonPath
from headrace.core.schema import Column, Type
from headrace.core.time import iso
from headrace.core.time_format import TimeFormat
from headrace.define.definitions import StreamDefinition
from headrace.ingest.generator_options import GeneratorOptions, column_values, numbered

Event = dict[str, Any]
_Make = Callable[[list[int]], list[Any]]  # timestamps -> one value each
_Value = Callable[[Random, int], Any]
_CARDINALITY = 50
_MU, _SIGMA = 4.0, 1.0  # of log-normal numbers: their median is 55, one in a hundred is above 560


class EventFactory:
    """Makes valid events."""

    def __init__(
        self, definition: StreamDefinition, rng: Random, run: str, options: GeneratorOptions
    ) -> None:
        self._definition, self._rng, self._run, self._options = definition, rng, run, options
        listed = column_values(definition) if definition.source == "generator" else {}
        self._makers = [
            (_path(c), self._maker(c, listed)) for c in definition.schema.stored.columns
        ]
        self._ever = 0

    def events(self, n: int, now_us: int) -> list[Event]:
        """The next `n`, each a microsecond after the one before, the last one now."""
        moments = [now_us - back - self._lateness() for back in range(n - 1, -1, -1)]
        paths = [path for path, _ in self._makers]
        columns = [make(moments) for _, make in self._makers]
        rows = zip(*columns, strict=True) if columns else ((),) * n
        if all(len(path.steps) == 1 for path in paths):
            names = [path.field for path in paths]
            events = [dict(zip(names, row, strict=True)) for row in rows]
        else:
            events = [_placed(paths, row) for row in rows]
        self._number(events)
        return events

    def _lateness(self) -> int:
        if self._rng.random() >= self._options.out_of_order:
            return 0
        return self._rng.randint(1, self._options.late_by)

    def _number(self, events: list[Event]) -> None:
        """Give each event an id that is unique among processes."""
        name, definition = self._definition.id, self._definition
        if name is None:
            return
        column = definition.schema.stored.find(name)
        path = _path(column) if column else JsonPath((name,))
        for number, event in enumerate(events, self._ever):
            if column and column.type.numeric:
                path.put(event, int(self._run, 36) + number)
            else:
                path.put(event, f"{definition.name}-{self._run}-{number}")
        self._ever += len(events)

    def _maker(self, column: Column, listed: dict[str, list[Any]]) -> _Make:
        if column.name in listed:
            return self._chosen(listed[column.name])
        if column.format:
            write = TimeFormat.parse(column.format).write
            return lambda moments: [write(moment) for moment in moments]
        if column.type.name == "STRING":
            return self._chosen(numbered(column, _CARDINALITY))
        return self._of_type(column.type)

    def _of_type(self, type: Type) -> _Make:
        """Values of a type, nested ones with two items."""
        parts = [(field.name, self._of_type(field.type)) for field in type.fields]
        match type.name:
            case "ARRAY":
                (_, make), *_ = parts
                return lambda moments: _pairs(make(moments), make(moments))
            case "MAP":
                parts = [("a", parts[1][1]), ("b", parts[1][1])]
        if parts:
            return lambda moments: _objects(dict(parts), moments)
        value = _SCALARS.get(type.name, _text) if type.name != "DECIMAL" else _decimal(type)
        return lambda moments: [value(self._rng, moment) for moment in moments]

    def _chosen(self, values: list[Any]) -> _Make:
        weights = list(accumulate(1 / rank for rank in range(1, len(values) + 1)))
        return lambda moments: self._rng.choices(values, cum_weights=weights, k=len(moments))


def _path(column: Column) -> JsonPath:
    return JsonPath.parse(column.path) if column.path else JsonPath((column.name,))


def _pairs(first: list[Any], second: list[Any]) -> list[Any]:
    return [list(pair) for pair in zip(first, second, strict=True)]


def _objects(makers: dict[str, _Make], moments: list[int]) -> list[Any]:
    columns = [make(moments) for make in makers.values()]
    return [dict(zip(makers, values, strict=True)) for values in zip(*columns, strict=True)]


def _placed(paths: list[JsonPath], values: Iterable[Any]) -> Event:
    event: Event = {}
    for path, value in zip(paths, values, strict=True):
        path.put(event, value)
    return event


def _whole(most: float) -> _Value:
    return lambda rng, _: int(min(most, 1 + int(rng.lognormvariate(_MU, _SIGMA))))


def _number(rng: Random, moment: int) -> float:
    return round(rng.lognormvariate(_MU, _SIGMA), 3)


def _decimal(type: Type) -> _Value:
    precision, scale = type.size or (10, 0)
    least = 10 ** min(precision, scale + 3)
    return lambda rng, _: str(Decimal(rng.randrange(least)).scaleb(-scale))


def _text(rng: Random, moment: int) -> str:
    return f"text-{rng.randrange(_CARDINALITY)}"


_SCALARS: dict[str, _Value] = {
    "BOOLEAN": lambda rng, _: rng.random() < 0.5,
    "TINYINT": _whole(2**7 - 1),
    "SMALLINT": _whole(2**15 - 1),
    "INT": _whole(2**31 - 1),
    "BIGINT": _whole(2**63 - 1),
    "FLOAT": _number,
    "DOUBLE": _number,
    "TIMESTAMP": lambda _, moment: iso(moment),
    "TIMESTAMP_NTZ": lambda _, moment: iso(moment).removesuffix("Z"),
    "DATE": lambda _, moment: iso(moment)[:10],
    "BINARY": lambda rng, _: base64.b64encode(rng.randbytes(6)).decode(),
    "VARIANT": lambda rng, _: {"n": rng.randrange(_CARDINALITY)},
}
