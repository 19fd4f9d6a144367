"""Finds known sessions that have become a part of a longer one.

The sessions of one answer with the same other keys neither overlap nor touch, and events are only
ever added. So a known session that is not in the answer was merged into the row whose window
contains its own, if there is one; else it has left the answer. Used by subscriptions and by rules
over views, each with its own JSON.
tests/serving/test_panes.py and tests/serving/test_alert_raiser.py check the results.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from headrace.core.subscription import ViewShape
from headrace.core.time import from_iso


class Session(NamedTuple):
    """A window of some keys."""

    start_us: int
    end_us: int
    subject: bytes  # the other keys
    key: str  # all keys


class Sessions:
    """Sessions by their other keys, each list in order of time."""

    def __init__(self, sessions: Iterable[Session]) -> None:
        self._by_subject: dict[bytes, list[Session]] = {}
        for session in sorted(sessions):
            self._by_subject.setdefault(session.subject, []).append(session)

    def containing(self, one: Session) -> Session | None:
        """The session whose window contains that of `one`; they do not overlap."""
        found = self._by_subject.get(one.subject, [])
        after = bisect_right(found, one.start_us, key=lambda session: session.start_us)
        return found[after - 1] if after and one.end_us <= found[after - 1].end_us else None

    def contained_in(self, one: Session) -> bool:
        """Whether a session lies in the window of `one`."""
        found = self._by_subject.get(one.subject, [])
        first = bisect_left(found, one.start_us, key=lambda session: session.start_us)
        return first < len(found) and found[first].end_us <= one.end_us


def merged_sessions(
    shape: ViewShape, rows: Mapping[str, Mapping[str, Any]], known: Collection[str]
) -> dict[str, list[str]]:
    """For the key of a row, the known keys of the sessions merged into it, ordered by window."""
    place = (shape.keys or ()).index(shape.window or "")
    gone = sorted(_session(key, place) for key in known if key not in rows)
    if not gone:
        return {}
    answer = Sessions(_of_subjects(shape, rows, {session.subject for session in gone}))
    merged: dict[str, list[str]] = {}
    for session in gone:
        longer = answer.containing(session)
        if longer is not None:
            merged.setdefault(longer.key, []).append(session.key)
    return merged


def _session(key: str, place: int) -> Session:
    """The session of a key; `place` is the index of its window."""
    # A row whose key equals that of another in JSON has a number after its key.
    values = msgspec.json.decode(key[: key.rindex("]") + 1])
    window = values.pop(place)
    return Session(*_edges(window), msgspec.json.encode(values), key)


def _of_subjects(
    shape: ViewShape, rows: Mapping[str, Mapping[str, Any]], subjects: Collection[bytes]
) -> Iterator[Session]:
    """The sessions of the answer that have one of these subjects."""
    window, others = shape.window or "", [n for n in shape.keys or () if n != shape.window]
    for key, row in rows.items():
        subject = msgspec.json.encode([row[name] for name in others])
        if subject in subjects:
            yield Session(*_edges(row[window]), subject, key)


def _edges(window: Mapping[str, str]) -> tuple[int, int]:
    return edge_us(window["start"]), edge_us(window["end"])


@lru_cache(maxsize=10_000)
def edge_us(text: str) -> int:
    """The time of a window's edge; cached, because many rows have the same window."""
    return from_iso(text)
