"""Short forms in transcripts: timestamps, windows and events in a compact notation.

Time zero is 2026-01-01T00:00:00Z. `7s` and `-3s` are timestamps after and before it, `[0s, 10s)` is
a window, `[0s, )` one without an end, and `@7s` a timestamp among other values; ISO 8601 is
accepted wherever a timestamp is. tests/testing/test_transcript.py checks each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from headrace.core.errors import BadDefinition
from headrace.core.time import duration_us, from_iso, iso

ORIGIN_US = from_iso("2026-01-01T00:00:00Z")
GONE = "gone"
_WINDOW = re.compile(r"\[\s*(?P<start>[^,\[\]]+?)\s*,\s*(?P<end>[^,\[\]]*?)\s*\)")


def timestamp_us(text: str) -> int:
    """The microseconds of a timestamp.

    >>> iso(timestamp_us("90s")), iso(timestamp_us("-500ms"))
    ('2026-01-01T00:01:30Z', '2025-12-31T23:59:59.500000Z')
    """
    text = text.strip()
    try:
        if re.match(r"\d{4}-\d\d-\d\d", text):
            return from_iso(text)
        length = 0 if text.lstrip("+-") == "0" else duration_us(text.lstrip("+-"))
    except ValueError as problem:
        raise BadDefinition(
            f"'{text}' is not a timestamp such as 7s", detail=str(problem)
        ) from problem
    return ORIGIN_US + (-length if text.startswith("-") else length)


def expected_value(value: Any) -> Any:
    """A value as the answer carries it.

    >>> expected_value("[0s, 10s)")["end"], expected_value("@1s"), expected_value("a")
    ('2026-01-01T00:00:10Z', '2026-01-01T00:00:01Z', 'a')
    """
    if isinstance(value, list):
        return [expected_value(item) for item in value]
    if not isinstance(value, str):
        return value
    window = _WINDOW.fullmatch(value.strip())
    if window:
        return {side: _side(window[side]) for side in ("start", "end")}
    return iso(timestamp_us(value[1:])) if re.fullmatch(r"@[-+]?\d.*", value) else value


def _side(moment: str) -> str | None:
    return iso(timestamp_us(moment)) if moment else None


def record(event: Any, *, time_column: str | None, id_field: str | None) -> bytes:
    """The bytes that a producer would send for an event's short form.

    >>> record({"at": "7s", "user": "a", "id": 1}, time_column="ts", id_field="event_id")
    b'{"ts": "2026-01-01T00:00:07Z", "user": "a", "event_id": 1}'
    """
    if isinstance(event, Mapping) and "raw" in event:
        return _raw(event["raw"])
    fields = dict(event) if isinstance(event, Mapping) else {"at": event}
    names = {"at": time_column or "ts", "id": id_field or "id"}
    named = {names.get(name, name): _sent(name, value) for name, value in fields.items()}
    return json.dumps(named, ensure_ascii=False).encode()


def _raw(raw: Any) -> bytes:
    return raw if isinstance(raw, bytes) else str(raw).encode()


def _sent(name: str, value: Any) -> Any:
    if name == "at":
        return None if value is None else iso(timestamp_us(str(value)))
    return expected_value(value)
