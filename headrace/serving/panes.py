"""The engine of panes: what was told, what the answer is now, and therefore what is said next.

    look(asked, shape, account, seen) = panes, and the account after them

It is a function: no clock, no store, no thread. A row is told when it differs from what was last
told of it and its trigger is due, so a promotion that changes no value says nothing. Doubles that
differ by a billionth are the same value, since that is what summing in another order costs.

A window is early while the watermark is before its end, on time in the look in which the watermark
passes it, and late after. The look in which the watermark passes end + allowed lateness gives the
window's last pane, whether or not it changed; changes after it are counted and not told. The
watermark of an account never goes back. The panes of one look come by window, then by key.
tests/serving/test_panes.py checks each rule, and transcripts `emit_*` play them on every engine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from headrace.core.subscription import Every, Form, Mode, Shape, Subscription
from headrace.core.time import from_iso
from headrace.serving.account import Account, Look, Pane, Seen, Told

Row = Mapping[str, Any]
EARLY, ON_TIME, LATE = "early", "on_time", "late"
INSERT, DELETE = "insert", "delete"
_SAME = 1e-9


def look(asked: Subscription, shape: Shape, account: Account, seen: Seen) -> Look:
    """Compare the answer with what was told."""
    return _Looking(asked, shape, account, seen).look()


class _Looking:
    def __init__(self, asked: Subscription, shape: Shape, account: Account, seen: Seen) -> None:
        self.asked, self.shape, self.account, self.now = asked, shape, account, seen.now_us
        self.before = account.watermark_us
        self.watermark = _later(account.watermark_us, seen.watermark_us)
        self.rows = dict((_relation if self.whole else _keyed)(shape, seen.rows))
        self.panes: list[Pane] = []
        self.changed: dict[str, Told | None] = {}
        self.sequence, self.dropped = account.sequence, account.dropped

    @property
    def whole(self) -> bool:
        return self.asked.form is Form.RELATION

    def look(self) -> Look:
        # A set would give another order in each process, so the keys are put in order.
        moved = filter(self._moved, {*self.rows, *self.account.rows})
        for key in sorted(moved, key=self._place):
            self._row(key, self.account.rows.get(key, Told()), self.rows.get(key))
        return Look(self.panes, self.changed, self.sequence, self.watermark, self.dropped)

    def _moved(self, key: str) -> bool:
        """Whether there may be something to say: most rows of a look are as they were told."""
        told, row = self.account.rows.get(key), self.rows.get(key)
        if told is None or row is None or told.row != row or told.since_us is not None:
            return True
        end = _end(self._window(row)) if self.asked.timed else None
        return end is not None and any(
            _reached(moment, self.watermark) and not _reached(moment, self.before)
            for moment in (end, _plus(end, self.asked.lateness_us))
        )

    def _place(self, key: str) -> tuple[str, str]:
        window = self._window(self.rows.get(key) or self.account.rows[key].row) or {}
        return window.get("start") or "", key

    def _window(self, row: Row | None) -> dict[str, Any] | None:
        return row.get(self.shape.window) if row and self.shape.window and not self.whole else None

    def _row(self, key: str, told: Told, row: dict[str, Any] | None) -> None:
        if row is None and told.row is None and told.ignored is None:
            self.changed[key] = None
            return
        end = _end(self._window(row or told.row or told.ignored))
        closes = None if end is None else _plus(end, self.asked.lateness_us)
        if _reached(closes, self.before):
            self._ignore(key, told, row)
            return
        timing = _timing(end, self.before, self.watermark)
        changed = not same(row, told.row)
        last = _reached(closes, self.watermark)
        on_time = timing == ON_TIME and self.asked.on_time
        every = self.asked.early if timing == EARLY else self.asked.late
        if last or on_time or (changed and self._due(every, told, row)):
            self._tell(key, told, row, timing, last)
        elif changed != (told.since_us is not None):
            waiting = self.now if changed else None
            self.changed[key] = msgspec.structs.replace(told, since_us=waiting)

    def _ignore(self, key: str, told: Told, row: dict[str, Any] | None) -> None:
        if not same(row, told.ignored or told.row):
            self.dropped += 1
            self.changed[key] = msgspec.structs.replace(told, ignored=row) if row else None

    def _due(self, every: Every | None, told: Told, row: Row | None) -> bool:
        if every is None:
            return False
        if every.interval_us is not None:
            return told.since_us is not None and self.now - told.since_us >= every.interval_us
        if every.events is not None and row is not None:
            return self._events(row) - self._events(told.row) >= every.events
        return True

    def _events(self, row: Row | None) -> int:
        return int(row[self.shape.count or ""]) if row else 0

    def _tell(
        self, key: str, told: Told, row: dict[str, Any] | None, timing: str, last: bool
    ) -> None:
        said = list(self._said(told.row, row))
        for number, (op, shown) in enumerate(said, start=1):
            self.sequence += 1
            self.panes.append(self._pane(op, shown, told, timing, last and number == len(said)))
        kept = row is not None or last
        self.changed[key] = Told(row, told.panes + bool(said)) if kept else None

    def _said(
        self, old: dict[str, Any] | None, new: dict[str, Any] | None
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """The records of one pane: operation and row."""
        asked = self.asked
        if asked.mode is Mode.DISCARDING:
            yield INSERT, difference(self.shape, old, new)
            return
        withdrawn = asked.mode is Mode.RETRACTING or new is None or asked.form is Form.DELETES
        if old is not None and withdrawn and asked.form is not Form.INSERTS:
            yield DELETE, old
        if new is not None and asked.form is not Form.DELETES:
            yield INSERT, new

    def _pane(self, op: str, row: dict[str, Any], told: Told, timing: str, last: bool) -> Pane:
        keys = () if self.whole else self.shape.keys or ()
        key = {name: row[name] for name in keys if name != self.shape.window}
        window = self._window(row)
        return Pane(self.sequence, self.shape.view, op, key, window, told.panes, timing, last, row)


def difference(
    shape: Shape, old: dict[str, Any] | None, new: dict[str, Any] | None
) -> dict[str, Any]:
    """What came to counts and sums since `old`; keys stay."""
    some, keys = new or old or {}, set(shape.keys or ())
    return {
        name: value if name in keys else _less((new or {}).get(name), (old or {}).get(name))
        for name, value in some.items()
    }


def _less(new: Any, old: Any) -> Any:
    if new is None and old is None:
        return None
    return (new or 0) - (old or 0)


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same to a subscriber.

    >>> same({"n": 0.1 + 0.2}, {"n": 0.3}), same({"n": 1}, {"n": 2}), same(None, {})
    (True, False, False)
    """
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        near = math.isclose(one, other, rel_tol=_SAME)
        return near or (math.isnan(one) and math.isnan(other))
    return type(one) is type(other) and bool(one == other)


def _keyed(shape: Shape, rows: Iterable[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each row by its key; a row without one by its values, and equal rows by their number."""
    repeats: dict[str, int] = {}
    for row in rows:
        values = list(row.values()) if shape.keys is None else [row[name] for name in shape.keys]
        key = msgspec.json.encode(values).decode()
        repeats[key] = repeats.get(key, 0) + 1
        yield key if repeats[key] == 1 else f"{key}#{repeats[key]}", row


def _relation(shape: Shape, rows: Iterable[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The whole answer as one row, in its order or in one that does not depend on the reading."""
    yield "", {"rows": list(rows) if shape.ordered else sorted(rows, key=msgspec.json.encode)}


def _end(window: Mapping[str, Any] | None) -> int | None:
    end = window.get("end") if window else None
    return _moment(end) if end else None


@lru_cache(maxsize=10_000)
def _moment(text: str) -> int:
    """Many rows have the same window."""
    return from_iso(text)


def _plus(end: int, lateness: int | None) -> int | None:
    return None if lateness is None else end + lateness


def _later(before: int | None, now: int | None) -> int | None:
    return max((moment for moment in (before, now) if moment is not None), default=None)


def _reached(moment: int | None, watermark: int | None) -> bool:
    return moment is not None and watermark is not None and watermark >= moment


def _timing(end: int | None, before: int | None, watermark: int | None) -> str:
    if not _reached(end, watermark):
        return EARLY
    return LATE if _reached(end, before) else ON_TIME
