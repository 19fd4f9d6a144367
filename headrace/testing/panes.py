"""What a subscription must say, decided by looking at its whole past each time.

This is the specification of panes and shares no code with the engine: it keeps every answer that
was looked at and tells the story of each row from the first look on. What is new in the last look
is what the subscriber hears. Slow, and simple enough to be believed.
tests/testing/test_panes.py checks it by hand, and the transcripts `emit_*` compare the engines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from headrace.core.time import duration_us, from_iso
from headrace.testing.compare import same
from headrace.testing.declared import Declared, Query, Watch, split

Row = dict[str, Any]
_SUBSCRIBE = re.compile(
    r"\s*SUBSCRIBE\s+TO\s+(?P<view>\w+)(?:\s+WHERE\s+(?P<where>.+?))?"
    r"(?:\s+EMIT\s+(?P<emit>.+?))?(?:\s+(?P<mode>ACCUMULATING|DISCARDING|RETRACTING))?\s*;?\s*",
    re.I | re.S,
)
_FORMS = ("INSERTS", "DELETES", "RELATION")


@dataclass(frozen=True, slots=True)
class Moment:
    """One look: the answer, the watermark and the time."""

    rows: list[Row]
    watermark: int | None
    now: int


@dataclass
class Subscriber:
    """Hears one subscription; `keys`, `window` and `count` name the view's columns."""

    text: str
    keys: tuple[str, ...]
    window: str | None
    count: str | None
    past: list[Moment] = field(default_factory=list)

    def __post_init__(self) -> None:
        match = _SUBSCRIBE.fullmatch(self.text)
        assert match, f"the reference cannot read: {self.text}"
        self.view, self.mode = match["view"], (match["mode"] or "ACCUMULATING").upper()
        self.where = dict(re.findall(r"(\w+)\s*=\s*'?([^' ]*)'?", match["where"] or ""))
        self.emit = " ".join((match["emit"] or "CHANGES").upper().replace(",", " ").split())

    def hears(self, rows: list[Row], watermark: int | None, now: int) -> list[Row]:
        """The panes of one more look."""
        kept = [r for r in rows if all(str(r[k]) == v for k, v in self.where.items())]
        before = self.past[-1].watermark if self.past else None
        known = [mark for mark in (before, watermark) if mark is not None]
        self.past.append(Moment(kept, max(known) if known else None, now))
        names = dict.fromkeys(name for moment in self.past for name in self._by_name(moment))
        told = [pane for name in names for pane in self._story(name)]
        return [pane for _, pane in sorted(told, key=lambda pair: pair[0])]

    # One row's story

    def _by_name(self, moment: Moment) -> dict[str, Row]:
        if self.emit == "RELATION":
            return {"": {"rows": sorted(moment.rows, key=repr)}}
        return {repr([row[key] for key in self.keys]): row for row in moment.rows}

    def _story(self, name: str) -> Iterator[tuple[tuple[str, str], Row]]:
        """What is said of a row in the last look, with its place among the panes."""
        told: Row | None = None
        number, since, mark = 0, None, None
        for moment in self.past:
            row = self._by_name(moment).get(name)
            some = row or told
            end = self._end(some)
            changed = not _alike(row, told)
            since = (since if since is not None else moment.now) if changed else None
            said: list[Row] = []
            if some is not None and not self._over(end, mark):
                timing = self._timing(end, mark, moment.watermark)
                last = self._over(end, moment.watermark)
                wanted = last or (timing == "on_time" and "ON TIME" in self.emit)
                if wanted or (changed and self._due(timing, row, told, moment.now, since)):
                    said = self._said(row, told, number, timing, last)
                    told, since = row, None
                    number = number + bool(said) if row is not None else 0
            mark = moment.watermark
        place = ((some or {}).get(self.window or "") or {}).get("start", "")
        return iter([((place, name), pane) for pane in said])

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
        speaks_of_ends = "ON TIME" in self.emit or allowed is not None
        endless = not allowed and (not speaks_of_ends or "LATE EVERY" in self.emit)
        return not endless and end is not None and mark is not None and mark >= end + lateness

    def _due(
        self, timing: str, row: Row | None, told: Row | None, now: int, since: int | None
    ) -> bool:
        if self.emit in (*_FORMS, "CHANGES"):
            return True
        both = "ON TIME" not in self.emit and "LATE" not in self.emit
        word = "EARLY" if timing == "early" or both else "LATE"
        every = re.search(rf"{word} EVERY (INTERVAL )?(\S+ \S+)", self.emit)
        if every is None:
            return False
        if every[1]:
            return since is not None and now - since >= duration_us(every[2].replace("'", ""))
        counts = [(r or {}).get(self.count or "", 0) for r in (row, told)]
        return row is None or counts[0] - counts[1] >= int(every[2].split()[0])

    def _said(
        self, row: Row | None, told: Row | None, number: int, timing: str, last: bool
    ) -> list[Row]:
        if self.mode == "DISCARDING":
            rows = [("insert", self._difference(row, told))]
        else:
            withdraw = self.mode == "RETRACTING" or row is None or self.emit == "DELETES"
            rows = [("delete", told)] if told and withdraw and self.emit != "INSERTS" else []
            rows += [("insert", row)] if row and self.emit != "DELETES" else []
        panes = [
            {"op": op, "pane": number, "timing": timing, "last": False, **(shown or {})}
            for op, shown in rows
        ]
        if panes:
            panes[-1]["last"] = last
        return panes

    def _difference(self, row: Row | None, told: Row | None) -> Row:
        new, old = row or {}, told or {}
        return {
            name: value if name in self.keys else (new.get(name) or 0) - (old.get(name) or 0)
            for name, value in (row or told or {}).items()
        }


def _alike(one: Row | None, other: Row | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)


def subscriber_of(declared: Declared, columns: tuple[str, ...], text: str) -> Subscriber:
    """The subscriber of a text, with what the definition's own words say of its columns."""
    bare = Subscriber(text, (), None, None)
    query = next(q for q in declared.queries if q.name.lower() == bare.view.lower())
    listed = re.match(r"\s*SELECT\s+(.+?)\s+FROM\s", query.text, re.I | re.S)
    items = [item.strip() for item in split(listed[1] if listed else "", ",")]
    named = dict(zip(columns, items, strict=True))
    plain = re.compile(r"[\w.]+(\s+AS\s+\w+)?|(\w+_)?window\(.*", re.I | re.S)
    keys = tuple(name for name, item in named.items() if plain.fullmatch(item))
    over_views = any(q.kind == "view" for q in _behind(declared, query.text))
    window = next((n for n, item in named.items() if "window(" in item.lower()), None)
    count = next((n for n, item in named.items() if item.lower().startswith("count(*)")), None)
    return Subscriber(text, columns if over_views else keys, window, count)


def streams_behind(declared: Declared, name: str) -> list[str]:
    """The streams that take in what a view or watch reads."""
    queries: tuple[Query | Watch, ...] = (*declared.queries, *declared.watches)
    query = next(q for q in queries if q.name.lower() == name.lower())
    found = [s.name for s in declared.streams if re.search(rf"\b{s.name}\b", query.text, re.I)]
    for inner in _behind(declared, query.text):
        found += streams_behind(declared, inner.name)
    return list(dict.fromkeys(found))


def _behind(declared: Declared, text: str) -> list[Query]:
    read = re.findall(r"(?:\b(?:FROM|JOIN)|^ON)\s+(\w+)", text, re.I)
    return [q for q in declared.queries if q.name.lower() in {name.lower() for name in read}]
