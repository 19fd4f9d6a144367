"""The panes of a subscription, computed from all snapshots so far at each step.

This is the specification of panes and shares no code with the engine: it keeps every snapshot of
the view and replays the history of each row from the first one on. The new panes are those of the
last snapshot. It is slow, but simple.

A row of a window has the history of its keys. A session grows and merges, so all sessions of the
other keys have one history: a session continues those inside its window. Its pane deletes the ones
that were sent (DISCARDING: their negatives) before its own row; events and intervals of triggers
count from what was sent and has waited inside it. tests/testing/test_panes.py checks it by hand,
and the transcripts `emit_*` compare the engines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from headrace.core.time import duration_us, from_iso
from headrace.testing.compare import same
from headrace.testing.declarations import Declarations, QueryDeclaration, WatchDeclaration, split

Row = dict[str, Any]
_SUBSCRIBE = re.compile(
    r"\s*SUBSCRIBE\s+TO\s+(?P<view>\w+)(?:\s+WHERE\s+(?P<where>.+?))?"
    r"(?:\s+EMIT\s+(?P<emit>.+?))?(?:\s+(?P<mode>ACCUMULATING|DISCARDING|RETRACTING))?\s*;?\s*",
    re.I | re.S,
)
_FORMS = ("INSERTS", "DELETES", "RELATION")


@dataclass(frozen=True, slots=True)
class ViewSnapshot:
    """A snapshot of a view: the answer, the watermark and the time."""

    rows: list[Row]
    watermark: int | None
    now: int


@dataclass(frozen=True, slots=True)
class RowState:
    """The state of one row: its newest version, the version that was sent, and since when a change
    waits.
    """

    seen: Row
    sent: Row | None
    number: int
    since: int | None


@dataclass
class ReferenceSubscriber:
    """One subscription; `keys`, `window` and `count` name the view's columns, and `sessions` says
    that the windows are sessions.
    """

    text: str
    keys: tuple[str, ...]
    window: str | None
    count: str | None
    sessions: bool = False
    past: list[ViewSnapshot] = field(default_factory=list)

    def __post_init__(self) -> None:
        match = _SUBSCRIBE.fullmatch(self.text)
        assert match, f"the reference interpreter cannot parse: {self.text}"
        self.view, self.mode = match["view"], (match["mode"] or "ACCUMULATING").upper()
        self.where = dict(re.findall(r"(\w+)\s*=\s*'?([^' ]*)'?", match["where"] or ""))
        self.emit = " ".join((match["emit"] or "CHANGES").upper().replace(",", " ").split())

    def observe(self, rows: list[Row], watermark: int | None, now: int) -> list[Row]:
        """The panes after one more snapshot."""
        kept = [r for r in rows if all(str(r[k]) == v for k, v in self.where.items())]
        before = self.past[-1].watermark if self.past else None
        known = [mark for mark in (before, watermark) if mark is not None]
        self.past.append(ViewSnapshot(kept, max(known) if known else None, now))
        subjects = dict.fromkeys(self._subject(r) for m in self.past for r in self._rows(m))
        panes = [pane for subject in subjects for pane in self._history(subject)]
        return [pane for _, pane in sorted(panes, key=lambda pair: pair[0])]

    # The history of a row, or of the sessions that may become one

    def _rows(self, snapshot: ViewSnapshot) -> list[Row]:
        whole = self.emit == "RELATION"
        return [{"rows": sorted(snapshot.rows, key=repr)}] if whole else snapshot.rows

    def _name(self, row: Row) -> str:
        return "" if self.emit == "RELATION" else repr([row[key] for key in self.keys])

    def _subject(self, row: Row) -> str:
        """The key of rows that may merge."""
        if not self.sessions or self.emit == "RELATION":
            return self._name(row)
        return repr([row[key] for key in self.keys if key != self.window])

    def _history(self, subject: str) -> list[tuple[tuple[str, str], Row]]:
        """The panes of a subject in the last snapshot, each with its sort key."""
        known: dict[str, RowState] = {}
        said: list[tuple[tuple[str, str], Row]] = []
        mark = None
        for snapshot in self.past:
            rows = {self._name(r): r for r in self._rows(snapshot) if self._subject(r) == subject}
            heirs = {n: self._inside(r, known) for n, r in rows.items()}
            inherited = {n for inside in heirs.values() for n in inside}
            heirs |= {n: {n: old} for n, old in known.items() if n not in inherited}
            said, known = [], {}
            for name, inside in heirs.items():
                panes, left = self._step(name, rows.get(name), inside, mark, snapshot)
                place = self._place(rows.get(name) or inside[name].seen)
                said += [((place, name), pane) for pane in panes]
                known |= left
            mark = snapshot.watermark
        return said

    def _inside(self, row: Row, known: dict[str, RowState]) -> dict[str, RowState]:
        """The state of the row, or of the sessions that have merged into it."""
        if not self.sessions or self.emit == "RELATION":
            return {n: old for n, old in known.items() if n == self._name(row)}
        start, end = self._span(row)
        spans = {n: self._span(old.seen) for n, old in known.items()}
        inside = [n for n, (first, last) in spans.items() if start <= first and last <= end]
        return {n: known[n] for n in sorted(inside, key=lambda n: spans[n])}

    def _span(self, row: Row) -> tuple[int, int]:
        window = row[self.window or ""]
        return from_iso(window["start"]), from_iso(window["end"])

    def _place(self, row: Row) -> str:
        return str((row.get(self.window or "") or {}).get("start", ""))

    def _step(
        self,
        name: str,
        row: Row | None,
        inside: dict[str, RowState],
        mark: int | None,
        at: ViewSnapshot,
    ) -> tuple[list[Row], dict[str, RowState]]:
        """The panes of a row in one snapshot, and its state afterwards."""
        sent = {n: old.sent for n, old in inside.items() if old.sent is not None}
        standing = {n: inside[n] for n in sent}
        if row is None and not sent:
            return [], {}
        end = self._end(row or sent[name])
        if self._over(end, mark):
            return [], standing
        own = sent.pop(name, None)
        changed = bool(sent) or not _alike(row, own)
        waiting = [old.since for old in inside.values() if old.since is not None]
        since = min([*waiting, at.now]) if changed else None
        number = max((old.number for old in inside.values()), default=0)
        timing, last = self._timing(end, mark, at.watermark), self._over(end, at.watermark)
        wanted = last or (timing == "on_time" and "ON TIME" in self.emit)
        events = self._events(row) - sum(map(self._events, (own, *sent.values())))
        if wanted or (changed and self._due(timing, row is None, events, at.now, since)):
            panes = self._said(row, own, list(sent.values()), number, timing, last)
            if row is None:
                return panes, {}
            return panes, {name: RowState(row, row, number + bool(panes), None)}
        number = inside[name].number if name in inside else 0
        return [], standing | {name: RowState(row or own or {}, own, number, since)}

    def _end(self, row: Row | None) -> int | None:
        window = (row or {}).get(self.window or "") or {}
        return from_iso(window["end"]) if window.get("end") else None

    def _timing(self, end: int | None, before: int | None, mark: int | None) -> str:
        if end is None or mark is None or mark < end:
            return "early"
        return "on_time" if before is None or before < end else "late"

    def _over(self, end: int | None, mark: int | None) -> bool:
        """Whether the window is closed at this watermark."""
        allowed = re.search(r"ALLOWED LATENESS INTERVAL (.+?)(?= EARLY| ON | LATE |$)", self.emit)
        lateness = duration_us(allowed[1].replace("'", "")) if allowed else 0
        has_ends = "ON TIME" in self.emit or allowed is not None
        endless = not allowed and (not has_ends or "LATE EVERY" in self.emit)
        return not endless and end is not None and mark is not None and mark >= end + lateness

    def _events(self, row: Row | None) -> int:
        return int((row or {}).get(self.count or "", 0))

    def _due(self, timing: str, gone: bool, events: int, now: int, since: int | None) -> bool:
        if self.emit in (*_FORMS, "CHANGES"):
            return True
        both = "ON TIME" not in self.emit and "LATE" not in self.emit
        word = "EARLY" if timing == "early" or both else "LATE"
        every = re.search(rf"{word} EVERY (INTERVAL )?(\S+ \S+)", self.emit)
        if every is None:
            return False
        if every[1]:
            return since is not None and now - since >= duration_us(every[2].replace("'", ""))
        return gone or events >= int(every[2].split()[0])

    def _said(
        self,
        row: Row | None,
        own: Row | None,
        merged: list[Row],
        number: int,
        timing: str,
        last: bool,
    ) -> list[Row]:
        """The records of a pane: what has been merged is taken back before the row is given."""
        rows: list[tuple[str, Row]]
        if self.mode == "DISCARDING":
            rows = [("insert", self._difference(None, old)) for old in merged]
            rows += [("insert", self._difference(row, own))]
        else:
            withdraw = self.mode == "RETRACTING" or row is None or self.emit == "DELETES"
            gone = [*merged, *([own] if own and withdraw else [])]
            rows = [("delete", old) for old in gone if self.emit != "INSERTS"]
            rows += [("insert", row)] if row and self.emit != "DELETES" else []
        panes = [
            {"op": op, "pane": number, "timing": timing, "last": False, **shown}
            for op, shown in rows
        ]
        if panes:
            panes[-1]["last"] = last
        return panes

    def _difference(self, row: Row | None, sent: Row | None) -> Row:
        new, old = row or {}, sent or {}
        return {
            name: value if name in self.keys else (new.get(name) or 0) - (old.get(name) or 0)
            for name, value in (row or sent or {}).items()
        }


def _alike(one: Row | None, other: Row | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)


def subscriber_of(
    declared: Declarations, columns: tuple[str, ...], text: str
) -> ReferenceSubscriber:
    """The subscriber of a text, with the columns that its definition names."""
    bare = ReferenceSubscriber(text, (), None, None)
    query = next(q for q in declared.queries if q.name.lower() == bare.view.lower())
    listed = re.match(r"\s*SELECT\s+(.+?)\s+FROM\s", query.text, re.I | re.S)
    items = [item.strip() for item in split(listed[1] if listed else "", ",")]
    named = dict(zip(columns, items, strict=True))
    plain = re.compile(r"[\w.]+(\s+AS\s+\w+)?|(\w+_)?window\(.*", re.I | re.S)
    keys = tuple(name for name, item in named.items() if plain.fullmatch(item))
    over_views = any(q.kind == "view" for q in _behind(declared, query.text))
    window = next((n for n, item in named.items() if "window(" in item.lower()), None)
    count = next((n for n, item in named.items() if item.lower().startswith("count(*)")), None)
    sessions = window is not None and named[window].lower().startswith("session_window(")
    return ReferenceSubscriber(
        text, columns if over_views else keys, window, count, sessions and not over_views
    )


def streams_behind(declared: Declarations, name: str) -> list[str]:
    """The streams that take in what a view or watch reads."""
    queries: tuple[QueryDeclaration | WatchDeclaration, ...] = (
        *declared.queries,
        *declared.watches,
    )
    query = next(q for q in queries if q.name.lower() == name.lower())
    found = [s.name for s in declared.streams if re.search(rf"\b{s.name}\b", query.text, re.I)]
    for inner in _behind(declared, query.text):
        found += streams_behind(declared, inner.name)
    return list(dict.fromkeys(found))


def _behind(declared: Declarations, text: str) -> list[QueryDeclaration]:
    read = re.findall(r"(?:\b(?:FROM|JOIN)|^ON)\s+(\w+)", text, re.I)
    return [q for q in declared.queries if q.name.lower() in {name.lower() for name in read}]
