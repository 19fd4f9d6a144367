"""The engine of panes: what was told, what the answer is now, and therefore what is said next.

    look(asked, shape, account, seen) = panes, and the account after them

It is a function: no clock, no store, no thread. A row is told when it differs from what was last
told of it and its trigger is due, so a promotion that changes no value says nothing. Doubles that
differ by a billionth are the same value, since that is what summing in another order costs.

A window is early while the watermark is before its end, on time in the look in which the watermark
passes it, and late after. The look in which the watermark passes end + allowed lateness gives the
window's last pane, whether or not it changed; changes after it are counted and not told. The
watermark of an account never goes back. The panes of one look come by window, then by key.

A session continues all sessions of the same other keys that were sent and lie inside its window,
also closed ones. Its pane first takes each of them back, by a delete of what was sent (DISCARDING:
an insert of its negative), and then gives its own row. Until that pane is due they stand as they
were sent, so at no time does a subscriber have two sessions that overlap, or an event twice. EVERY
n EVENTS counts from the sum of what was sent of them, EVERY INTERVAL from the first change that
waits in any of them, and `pane` from the highest of theirs (serving/sessions.py finds them).
tests/serving/test_panes.py checks each rule, and transcripts `emit_*` play them on every engine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from headrace.core.subscription import Every, Form, Mode, Subscription, ViewShape
from headrace.serving.account import Account, Look, Pane, Seen, Told
from headrace.serving.sessions import merged_sessions, moment_us

Row = Mapping[str, Any]
EARLY, ON_TIME, LATE = "early", "on_time", "late"
INSERT, DELETE = "insert", "delete"
_SAME = 1e-9


def look(asked: Subscription, shape: ViewShape, account: Account, seen: Seen) -> Look:
    """Compare the answer with what was told."""
    return _Looking(asked, shape, account, seen).look()


@dataclass(frozen=True, slots=True)
class _Known:
    """What the subscriber knows of a row: of its own window, and of the sessions merged into it."""

    own: Told
    merged: Mapping[str, Told]  # by the account's key, in the order of their windows

    @property
    def merged_rows(self) -> list[dict[str, Any]]:
        return [told.row for told in self.merged.values() if told.row is not None]

    @property
    def panes(self) -> int:
        return max(told.panes for told in (self.own, *self.merged.values()))

    @property
    def since_us(self) -> int | None:
        waits = (told.since_us for told in (self.own, *self.merged.values()))
        return min((since for since in waits if since is not None), default=None)


class _Looking:
    def __init__(self, asked: Subscription, shape: ViewShape, account: Account, seen: Seen) -> None:
        self.asked, self.shape, self.account, self.now = asked, shape, account, seen.now_us
        self.before = account.watermark_us
        self.watermark = _later(account.watermark_us, seen.watermark_us)
        self.rows = dict((_relation if self.whole else _keyed)(shape, seen.rows))
        self.merged = merged_sessions(shape, self.rows, account.rows) if self.sessions else {}
        self.panes: list[Pane] = []
        self.changed: dict[str, Told | None] = {}
        self.sequence, self.dropped = account.sequence, account.dropped

    @property
    def whole(self) -> bool:
        return self.asked.form is Form.RELATION

    @property
    def sessions(self) -> bool:
        return self.shape.sessions and not self.whole

    def look(self) -> Look:
        inside = {key for keys in self.merged.values() for key in keys}
        # A set would give another order in each process, so the keys are put in order.
        moved = filter(self._moved, {*self.rows, *self.account.rows} - inside)
        for key in sorted(moved, key=self._place):
            self._row(key, self._known(key), self.rows.get(key))
        return Look(self.panes, self.changed, self.sequence, self.watermark, self.dropped)

    def _known(self, key: str) -> _Known:
        told = self.account.rows
        return _Known(told.get(key, Told()), {k: told[k] for k in self.merged.get(key, ())})

    def _moved(self, key: str) -> bool:
        """Whether there may be something to say: most rows of a look are as they were told."""
        told, row = self.account.rows.get(key), self.rows.get(key)
        if told is None or row is None or told.row != row or told.since_us is not None:
            return True
        if key in self.merged:
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

    def _row(self, key: str, known: _Known, row: dict[str, Any] | None) -> None:
        told = known.own
        if row is None and told.row is None and told.ignored is None:
            self.changed[key] = None
            return
        end = _end(self._window(row or told.row or told.ignored))
        closes = None if end is None else _plus(end, self.asked.lateness_us)
        if _reached(closes, self.before):
            self._ignore(key, known, row)
            return
        timing = _timing(end, self.before, self.watermark)
        changed = bool(known.merged_rows) or not same(row, told.row)
        last = _reached(closes, self.watermark)
        on_time = timing == ON_TIME and self.asked.on_time
        every = self.asked.early if timing == EARLY else self.asked.late
        if last or on_time or (changed and self._due(every, known, row)):
            self._tell(key, known, row, timing, last)
        else:
            self._wait(key, known, changed)

    def _ignore(self, key: str, known: _Known, row: dict[str, Any] | None) -> None:
        told = known.own
        # Nothing stands for a row that has left the answer.
        newest = told.row if told.ignored is None else told.ignored
        if same(row or {}, newest or {}):
            return
        self.dropped += 1
        # A session that was sent may have to be taken back later, also if it is not in the answer.
        kept = row is not None or (self.sessions and told.row is not None)
        self.changed[key] = msgspec.structs.replace(told, ignored=row or {}) if kept else None
        self._forget_unsent(known)

    def _wait(self, key: str, known: _Known, changed: bool) -> None:
        since = known.since_us if known.since_us is not None else self.now
        waiting = since if changed else None
        if waiting != known.own.since_us:
            self.changed[key] = msgspec.structs.replace(known.own, since_us=waiting)
        self._forget_unsent(known)

    def _forget_unsent(self, known: _Known) -> None:
        """The longer session waits from now on for those of which nothing was sent."""
        unsent = (key for key, told in known.merged.items() if told.row is None)
        self.changed.update(dict.fromkeys(unsent))

    def _due(self, every: Every | None, known: _Known, row: Row | None) -> bool:
        if every is None:
            return False
        if every.interval_us is not None:
            since = known.since_us
            return since is not None and self.now - since >= every.interval_us
        if every.events is not None and row is not None:
            sent = sum(map(self._events, (known.own.row, *known.merged_rows)))
            return self._events(row) - sent >= every.events
        return True

    def _events(self, row: Row | None) -> int:
        return int(row[self.shape.count or ""]) if row else 0

    def _tell(
        self, key: str, known: _Known, row: dict[str, Any] | None, timing: str, last: bool
    ) -> None:
        said = list(self._said(known, row))
        for number, (op, shown) in enumerate(said, start=1):
            self.sequence += 1
            ends = last and number == len(said)
            self.panes.append(self._pane(op, shown, known.panes, timing, ends))
        self.changed.update(dict.fromkeys(known.merged))
        self.changed[key] = Told(row, known.panes + bool(said)) if row is not None else None

    def _said(
        self, known: _Known, new: dict[str, Any] | None
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """The records of one pane: operation and row."""
        asked, old = self.asked, known.own.row
        if asked.mode is Mode.DISCARDING:
            for row in known.merged_rows:
                yield INSERT, difference(self.shape, row, None)
            yield INSERT, difference(self.shape, old, new)
            return
        replaced = asked.mode is Mode.RETRACTING or new is None or asked.form is Form.DELETES
        own = [old] if old is not None and replaced else []
        if asked.form is not Form.INSERTS:
            yield from ((DELETE, row) for row in (*known.merged_rows, *own))
        if new is not None and asked.form is not Form.DELETES:
            yield INSERT, new

    def _pane(self, op: str, row: dict[str, Any], number: int, timing: str, last: bool) -> Pane:
        keys = () if self.whole else self.shape.keys or ()
        key = {name: row[name] for name in keys if name != self.shape.window}
        window = self._window(row)
        return Pane(self.sequence, self.shape.view, op, key, window, number, timing, last, row)


def difference(
    shape: ViewShape, old: dict[str, Any] | None, new: dict[str, Any] | None
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
    """The whole answer as one row, in its order or in one that does not depend on the reading."""
    yield "", {"rows": list(rows) if shape.ordered else sorted(rows, key=msgspec.json.encode)}


def _end(window: Mapping[str, Any] | None) -> int | None:
    end = window.get("end") if window else None
    return moment_us(end) if end else None


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
