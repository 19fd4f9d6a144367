"""Computes panes: compares the rows of a view with what was emitted before.

    next_panes(subscription, shape, state, answer) = panes, and the changes to the state

It is a pure function: no clock, no store, no thread. A row is emitted when it differs from its last
emitted version and its trigger is due, so a promotion that changes no value emits nothing. Doubles
that differ by a billionth are equal, because summing in another order causes such differences.

A window is early while the watermark is before its end, on time in the call in which the watermark
passes the end, and late after. The call in which the watermark passes end + allowed lateness emits
the window's last pane, whether or not it changed; later changes are counted and not emitted. The
watermark of a state never goes back. The panes of one call are ordered by window, then by key.

A session continues all sessions of the same other keys that were emitted and lie inside its window,
also closed ones. Its pane first retracts each of them by a delete of the emitted row (DISCARDING:
an insert of its negative), and then inserts its own row. Until that pane is due they stay as
emitted, so a subscriber never has two sessions that overlap, or an event twice. EVERY n EVENTS
counts from the sum of their emitted counts, EVERY INTERVAL from the oldest waiting change in any of
them, and `pane` from the highest of theirs (serving/sessions.py finds them).
tests/serving/test_panes.py checks each rule, and transcripts `emit_*` play them on every engine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from headrace.core.subscription import Every, Form, Mode, Subscription, ViewShape
from headrace.serving.emit_state import Emission, EmitState, EmittedRow, Pane, ViewAnswer
from headrace.serving.sessions import edge_us, merged_sessions

Row = Mapping[str, Any]
EARLY, ON_TIME, LATE = "early", "on_time", "late"
INSERT, DELETE = "insert", "delete"
_SAME = 1e-9


def next_panes(
    subscription: Subscription, shape: ViewShape, state: EmitState, answer: ViewAnswer
) -> Emission:
    """The panes that the answer adds to what was emitted."""
    return _PaneBuilder(subscription, shape, state, answer).emission()


@dataclass(frozen=True, slots=True)
class _RowHistory:
    """What was emitted of a row: of its own window, and of the sessions merged into it."""

    own: EmittedRow
    merged: Mapping[str, EmittedRow]  # by the key of the state, in the order of their windows

    @property
    def merged_rows(self) -> list[dict[str, Any]]:
        return [entry.row for entry in self.merged.values() if entry.row is not None]

    @property
    def panes(self) -> int:
        return max(entry.panes for entry in (self.own, *self.merged.values()))

    @property
    def since_us(self) -> int | None:
        waits = (entry.since_us for entry in (self.own, *self.merged.values()))
        return min((since for since in waits if since is not None), default=None)


class _PaneBuilder:
    def __init__(
        self, subscription: Subscription, shape: ViewShape, state: EmitState, answer: ViewAnswer
    ) -> None:
        self.subscription, self.shape, self.state = subscription, shape, state
        self.now, self.before = answer.now_us, state.watermark_us
        self.watermark = _later(state.watermark_us, answer.watermark_us)
        self.rows = dict((_relation if self.whole else _keyed)(shape, answer.rows))
        self.merged = merged_sessions(shape, self.rows, state.rows) if self.sessions else {}
        self.panes: list[Pane] = []
        self.changed: dict[str, EmittedRow | None] = {}
        self.sequence, self.dropped = state.sequence, state.dropped

    @property
    def whole(self) -> bool:
        return self.subscription.form is Form.RELATION

    @property
    def sessions(self) -> bool:
        return self.shape.sessions and not self.whole

    def emission(self) -> Emission:
        inside = {key for keys in self.merged.values() for key in keys}
        # A set would give another order in each process, so the keys are put in order.
        changed = filter(self._may_emit, {*self.rows, *self.state.rows} - inside)
        for key in sorted(changed, key=self._order):
            self._row(key, self._history(key), self.rows.get(key))
        return Emission(self.panes, self.changed, self.sequence, self.watermark, self.dropped)

    def _history(self, key: str) -> _RowHistory:
        rows = self.state.rows
        merged = {merged: rows[merged] for merged in self.merged.get(key, ())}
        return _RowHistory(rows.get(key, EmittedRow()), merged)

    def _may_emit(self, key: str) -> bool:
        """Whether the row may have a pane: most rows are as they were emitted."""
        entry, row = self.state.rows.get(key), self.rows.get(key)
        if entry is None or row is None or entry.row != row or entry.since_us is not None:
            return True
        if key in self.merged:
            return True
        end = _end(self._window(row)) if self.subscription.timed else None
        return end is not None and any(
            _reached(time, self.watermark) and not _reached(time, self.before)
            for time in (end, _plus(end, self.subscription.lateness_us))
        )

    def _order(self, key: str) -> tuple[str, str]:
        window = self._window(self.rows.get(key) or self.state.rows[key].row) or {}
        return window.get("start") or "", key

    def _window(self, row: Row | None) -> dict[str, Any] | None:
        return row.get(self.shape.window) if row and self.shape.window and not self.whole else None

    def _row(self, key: str, history: _RowHistory, row: dict[str, Any] | None) -> None:
        entry = history.own
        if row is None and entry.row is None and entry.ignored is None:
            self.changed[key] = None
            return
        end = _end(self._window(row or entry.row or entry.ignored))
        closes = None if end is None else _plus(end, self.subscription.lateness_us)
        if _reached(closes, self.before):
            self._ignore(key, history, row)
            return
        timing = _timing(end, self.before, self.watermark)
        changed = bool(history.merged_rows) or not same(row, entry.row)
        last = _reached(closes, self.watermark)
        on_time = timing == ON_TIME and self.subscription.on_time
        every = self.subscription.early if timing == EARLY else self.subscription.late
        if last or on_time or (changed and self._due(every, history, row)):
            self._emit(key, history, row, timing, last)
        else:
            self._wait(key, history, changed)

    def _ignore(self, key: str, history: _RowHistory, row: dict[str, Any] | None) -> None:
        entry = history.own
        # A row that has left the answer compares as empty.
        newest = entry.row if entry.ignored is None else entry.ignored
        if same(row or {}, newest or {}):
            return
        self.dropped += 1
        # An emitted session may have to be retracted later, even if it is not in the answer now.
        kept = row is not None or (self.sessions and entry.row is not None)
        self.changed[key] = msgspec.structs.replace(entry, ignored=row or {}) if kept else None
        self._remove_unsent(history)

    def _wait(self, key: str, history: _RowHistory, changed: bool) -> None:
        since = history.since_us if history.since_us is not None else self.now
        waiting = since if changed else None
        if waiting != history.own.since_us:
            self.changed[key] = msgspec.structs.replace(history.own, since_us=waiting)
        self._remove_unsent(history)

    def _remove_unsent(self, history: _RowHistory) -> None:
        """The longer session replaces the waiting ones that were never emitted."""
        unsent = (key for key, entry in history.merged.items() if entry.row is None)
        self.changed.update(dict.fromkeys(unsent))

    def _due(self, every: Every | None, history: _RowHistory, row: Row | None) -> bool:
        if every is None:
            return False
        if every.interval_us is not None:
            since = history.since_us
            return since is not None and self.now - since >= every.interval_us
        if every.events is not None and row is not None:
            sent = sum(map(self._events, (history.own.row, *history.merged_rows)))
            return self._events(row) - sent >= every.events
        return True

    def _events(self, row: Row | None) -> int:
        return int(row[self.shape.count or ""]) if row else 0

    def _emit(
        self, key: str, history: _RowHistory, row: dict[str, Any] | None, timing: str, last: bool
    ) -> None:
        changes = list(self._changes(history, row))
        for number, (op, shown) in enumerate(changes, start=1):
            self.sequence += 1
            ends = last and number == len(changes)
            self.panes.append(self._pane(op, shown, history.panes, timing, ends))
        self.changed.update(dict.fromkeys(history.merged))
        self.changed[key] = (
            EmittedRow(row, history.panes + bool(changes)) if row is not None else None
        )

    def _changes(
        self, history: _RowHistory, new: dict[str, Any] | None
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """The records of one pane: operation and row."""
        subscription, old = self.subscription, history.own.row
        if subscription.mode is Mode.DISCARDING:
            for row in history.merged_rows:
                yield INSERT, difference(self.shape, row, None)
            yield INSERT, difference(self.shape, old, new)
            return
        replaced = (
            subscription.mode is Mode.RETRACTING or new is None or subscription.form is Form.DELETES
        )
        own = [old] if old is not None and replaced else []
        if subscription.form is not Form.INSERTS:
            yield from ((DELETE, row) for row in (*history.merged_rows, *own))
        if new is not None and subscription.form is not Form.DELETES:
            yield INSERT, new

    def _pane(self, op: str, row: dict[str, Any], number: int, timing: str, last: bool) -> Pane:
        keys = () if self.whole else self.shape.keys or ()
        key = {name: row[name] for name in keys if name != self.shape.window}
        window = self._window(row)
        return Pane(self.sequence, self.shape.view, op, key, window, number, timing, last, row)


def difference(
    shape: ViewShape, old: dict[str, Any] | None, new: dict[str, Any] | None
) -> dict[str, Any]:
    """The difference of counts and sums between two versions; keys stay."""
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
    """Whether two values are equal for a subscriber.

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


def _keyed(
    shape: ViewShape, rows: Iterable[dict[str, Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each row by its key; a row without one by its values, and equal rows by their number."""
    repeats: dict[str, int] = {}
    for row in rows:
        values = list(row.values()) if shape.keys is None else [row[name] for name in shape.keys]
        key = msgspec.json.encode(values).decode()
        repeats[key] = repeats.get(key, 0) + 1
        yield key if repeats[key] == 1 else f"{key}#{repeats[key]}", row


def _relation(
    shape: ViewShape, rows: Iterable[dict[str, Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The whole answer as one row: in the order of the view, or sorted if it has none."""
    yield "", {"rows": list(rows) if shape.ordered else sorted(rows, key=msgspec.json.encode)}


def _end(window: Mapping[str, Any] | None) -> int | None:
    end = window.get("end") if window else None
    return edge_us(end) if end else None


def _plus(end: int, lateness: int | None) -> int | None:
    return None if lateness is None else end + lateness


def _later(before: int | None, now: int | None) -> int | None:
    return max((time for time in (before, now) if time is not None), default=None)


def _reached(time: int | None, watermark: int | None) -> bool:
    return time is not None and watermark is not None and watermark >= time


def _timing(end: int | None, before: int | None, watermark: int | None) -> str:
    if not _reached(end, watermark):
        return EARLY
    return LATE if _reached(end, before) else ON_TIME
