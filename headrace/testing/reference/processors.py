"""`SELECT * FROM proc(TABLE(stream) PARTITION BY key)`: the rows that a user's class makes.

Each key has a state, which `init` makes, and at most one timer. Its events come in ORDER. A timer
fires, once, before the next event of the key that is dated at or after it, or when the stream's
watermark has reached it. What `on_event` and `on_timer` yield are rows, which have the place in the
log of the key's last event. The state is kept as JSON between calls, so nothing else survives.
tests/testing/test_processors.py checks it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from headrace.core.errors import BadDefinition, UnknownColumn
from headrace.testing.reference.names import key_column
from headrace.testing.reference.order import EVENT_TIME, by_key, event_time, in_order
from headrace.testing.reference.relations import Table
from headrace.testing.reference.sources import aliased
from headrace.testing.reference.values import Row, Timestamp, Value

_NAMES = r"`?\w+`?(?:\s*,\s*`?\w+`?)*"
_CALL = re.compile(
    r"\s*SELECT\s+\*\s+FROM\s+`?(?P<name>\w+)`?\s*\(\s*TABLE\s*\(\s*`?(?P<stream>\w+)`?\s*\)"
    rf"\s*PARTITION\s+BY\s+\(?\s*(?P<keys>{_NAMES})\s*\)?\s*\)\s*",
    re.I,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class ProcessorInvocation:
    """Which processor reads which stream, and what its keys are."""

    name: str
    stream: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReferenceProcessor:
    """The columns of its rows, and what makes an object with init, on_event and on_timer."""

    columns: tuple[str, ...]
    make: Callable[[], Any]


def call_of(text: str) -> ProcessorInvocation | None:
    """The call of a processor that the query is, if it is one.

    >>> call_of("SELECT * FROM visits(TABLE(clicks) PARTITION BY user)")
    ProcessorInvocation(name='visits', stream='clicks', keys=('user',))
    """
    match = _CALL.fullmatch(text)
    if match is None:
        return None
    keys = tuple(key.strip(" `\n").lower() for key in match["keys"].split(","))
    return ProcessorInvocation(match["name"], match["stream"], keys)


def run_processor(call: ProcessorInvocation, processor: ReferenceProcessor, table: Table) -> Table:
    """The stream that a processor makes of another."""
    for key in call.keys:
        if key not in map(str.lower, table.names):
            raise UnknownColumn(f"'{call.stream}' has no column '{key}' to partition by")
    keys = [key_column(("", key)) for key in call.keys]
    watermark_us = table.clock.watermark_us if table.clock else None
    rows: list[dict[str, Value]] = []
    for events in by_key(keys, aliased(table, "").rows):
        rows += _Key(processor, table.names).rows(in_order(events), watermark_us)
    return Table(processor.columns, rows)


@dataclass
class _Timers:
    """The key's single timer, as passed to `on_event` and `on_timer`."""

    moment_us: int | None = None

    def at(self, moment: int | datetime) -> None:
        self.moment_us = moment if isinstance(moment, int) else _us(moment)

    def clear(self) -> None:
        self.moment_us = None


@dataclass
class _Key:
    """The run of a processor over one key."""

    processor: ReferenceProcessor
    names: tuple[str, ...]
    timers: _Timers = field(default_factory=_Timers)
    last: Row = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.object = self.processor.make()
        self.state = _kept(self.object.init())

    def rows(self, events: list[Row], watermark_us: int | None) -> Iterator[dict[str, Value]]:
        for event in events:
            time = event_time(event)
            yield from self._fired(None if time is None else time.us)
            self.last = event
            made = self.object.on_event(self.state, self._shown(event), self.timers)
            yield from self._made(made, time)
        yield from self._fired(watermark_us)

    def _fired(self, until_us: int | None) -> Iterator[dict[str, Value]]:
        while until_us is not None and (us := self.timers.moment_us) is not None and us <= until_us:
            self.timers.clear()
            made = self.object.on_timer(self.state, _moment(us), self.timers)
            yield from self._made(made, Timestamp(us))
            if self.timers.moment_us is not None and self.timers.moment_us <= us:
                raise BadDefinition("a timer set in on_timer must be later than the one that fired")

    def _made(
        self, made: Iterable[tuple[Any, ...]] | None, time: Timestamp | None
    ) -> Iterator[dict[str, Value]]:
        columns = [name.lower() for name in self.processor.columns]
        place = {name: self.last.get(("", name)) for name in ("_offset", "_partition")}
        for row in made or ():
            if len(row) != len(columns):
                raise BadDefinition(
                    f"a processor must return rows of {len(columns)} values, got {row!r}"
                )
            values = dict(zip(columns, map(_value, row), strict=True))
            yield values | place | ({} if time is None else {EVENT_TIME: time})
        self.state = _kept(self.state)

    def _shown(self, event: Row) -> SimpleNamespace:
        return SimpleNamespace(**{n: _plain(event.get(("", n.lower()))) for n in self.names})


def _kept(state: Any) -> Any:
    return json.loads(json.dumps(state))


def _plain(value: Value) -> Any:
    return _moment(value.us) if isinstance(value, Timestamp) else value


def _value(plain: Any) -> Value:
    return Timestamp(_us(plain)) if isinstance(plain, datetime) else plain


def _moment(us: int) -> datetime:
    return _EPOCH + us * _MICROSECOND


def _us(moment: datetime) -> int:
    """A timestamp without a zone is in UTC."""
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND
