"""Which sessions that a subscriber knows have become a part of a longer one.

The sessions of one answer with the same other keys neither overlap nor touch, and events are only
ever added. So a session that is known and not in the answer has been merged into the row whose
window holds its own, if there is one; else it has left the answer.
tests/serving/test_panes.py checks it with the panes that follow from it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from headrace.core.subscription import Shape
from headrace.core.time import from_iso

Span = tuple[int, int]  # start and end
Sessions = list[tuple[Span, str]]  # of one subject: window, and the key of the row


def merged_sessions(
    shape: Shape, rows: Mapping[str, Mapping[str, Any]], known: Collection[str]
) -> dict[str, list[str]]:
    """For the key of a row, the known keys of the sessions that were merged into it, by window."""
    gone = [key for key in known if key not in rows]
    if not gone:
        return {}
    merged: dict[str, list[str]] = {}
    longer = _by_subject(shape, rows)
    for subject, sessions in _by_subject(shape, gone).items():
        for span, key in sessions:
            holder = _holder(longer.get(subject, []), span)
            if holder is not None:
                merged.setdefault(holder, []).append(key)
    return merged


def _by_subject(shape: Shape, keys: Iterable[str]) -> dict[bytes, Sessions]:
    """The sessions of an account's keys by the values beside the window, each in order of time."""
    place = (shape.keys or ()).index(shape.window or "")
    found: dict[bytes, Sessions] = {}
    for key in keys:
        # A row whose key is shown like that of another has a number after its key.
        values = msgspec.json.decode(key[: key.rindex("]") + 1])
        window = values.pop(place)
        span = moment_us(window["start"]), moment_us(window["end"])
        found.setdefault(msgspec.json.encode(values), []).append((span, key))
    return {subject: sorted(sessions) for subject, sessions in found.items()}


def _holder(sessions: Sessions, span: Span) -> str | None:
    """The session that holds this window: the last one that begins no later than it."""
    after = bisect_right(sessions, span[0], key=lambda session: session[0][0])
    held = after > 0 and span[1] <= sessions[after - 1][0][1]
    return sessions[after - 1][1] if held else None


@lru_cache(maxsize=10_000)
def moment_us(text: str) -> int:
    """The time that a window's edge says. Many rows have the same window."""
    return from_iso(text)
