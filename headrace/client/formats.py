"""Values as text for a terminal: windows, timestamps, ages, numbers, the balance.

All timestamps are in UTC. JSON documents do not use this module.
tests/client/test_formats.py reads each form.
"""

from __future__ import annotations

from typing import Any

from headrace.api.resources.balance import Balance


def timestamp(text: str) -> str:
    """An ISO timestamp, without seconds if they are zero.

    >>> timestamp("2026-11-15T19:00:00Z"), timestamp("2026-11-15T19:00:03.500000Z")
    ('2026-11-15 19:00', '2026-11-15 19:00:03.5')
    """
    day, _, clock = text.removesuffix("Z").partition("T")
    if "." in clock:
        clock = clock.rstrip("0").rstrip(".")
    return f"{day} {clock.removesuffix(':00') if clock.count(':') == 2 else clock}".strip()


def timestamp_to_second(text: str) -> str:
    """An ISO timestamp to the second.

    >>> timestamp_to_second("2026-11-15T19:00:03.500000Z")
    '2026-11-15 19:00:03'
    """
    return timestamp(text.removesuffix("Z").partition(".")[0])


def window(value: dict[str, str | None]) -> str:
    """A window; its date is repeated only if it ends on another day.

    >>> window({"start": "2026-11-15T19:00:00Z", "end": "2026-11-15T20:00:00Z"})
    '2026-11-15 19:00 – 20:00'
    >>> window({"start": "2026-01-01T00:00:00Z", "end": None})
    'from 2026-01-01 00:00 on'
    """
    start = timestamp(value["start"] or "")
    if value["end"] is None:
        return f"from {start} on"
    end = timestamp(value["end"])
    same_day = start.partition(" ")[0] == end.partition(" ")[0]
    return f"{start} – {end.partition(' ')[2] if same_day else end}"


def cell(value: Any, type: str) -> str:
    """One value of an answer.

    >>> cell(None, "STRING"), cell(True, "BOOLEAN"), cell(2.0, "DOUBLE"), cell(0.00012345, "DOUBLE")
    ('null', 'true', '2.0', '0.00012345')
    >>> cell([{"item": "/home", "count": 3}], "ARRAY"), cell({"below": 0, "bins": [1, 2]}, "STRUCT")
    ('/home (3)', 'below 0, bins 1, 2')
    >>> cell([{"sku": "hat", "n": 1}, {"sku": "coat", "n": 2}], "array<struct<sku:string,n:int>>")
    '(sku hat, n 1), (sku coat, n 2)'
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict) and value.get("start") and "end" in value:
        return window(value)
    if isinstance(value, float):
        return str(round(value, 3)) if abs(value) >= 1 or value == 0 else f"{value:.6g}"
    if isinstance(value, dict) and set(value) == {"item", "count"}:
        return f"{cell(value['item'], type)} ({value['count']})"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_inner(part, type)}" for name, part in value.items())
    if isinstance(value, list):
        return ", ".join(_inner(item, type) for item in value)
    # Types of a view are in upper case, those of Spark in lower case.
    return (
        timestamp(value) if type.upper() == "TIMESTAMP" and isinstance(value, str) else str(value)
    )


def _inner(value: Any, type: str) -> str:
    """A part of a value; an object is in parentheses, so that its end is visible."""
    text = cell(value, type)
    named = isinstance(value, dict) and set(value) not in ({"item", "count"}, {"start", "end"})
    return f"({text})" if named else text


def age(ms: int | None) -> str:
    """The age of an answer.

    >>> age(430), age(95_000), age(None)
    ('0.4 s old', '1.6 min old', 'age unknown')
    """
    if ms is None:
        return "age unknown"
    for size, unit in ((86_400_000, "days"), (3_600_000, "h"), (60_000, "min")):
        if ms >= size:
            return f"{ms / size:.1f} {unit} old"
    return f"{ms / 1000:.1f} s old"


def size(many: float) -> str:
    """Bytes.

    >>> size(512), size(3 << 30)
    ('512 B', '3.0 GiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if many < 1024:
            return f"{many:.0f} B" if unit == "B" else f"{many:.1f} {unit}"
        many /= 1024
    return f"{many:.1f} TiB"


def plural(many: int, one: str) -> str:
    """A number with its noun.

    >>> plural(1, "view"), plural(1_203, "epoch"), plural(2, "watch")
    ('1 view', '1,203 epochs', '2 watches')
    """
    many_of = f"{one}es" if one.endswith("tch") else f"{one}s"
    return f"{many:,} {one}" if many == 1 else f"{many:,} {many_of}"


def balance_equation(balance: Balance) -> str:
    """The balance as an equation.

    >>> balance_equation(Balance(1203, 1180, 12, 11, 0))
    'accepted 1,203 = events 1,180 + duplicates 12 + dead letters 11 + in log 0 (off by 0)'
    """
    return (
        f"accepted {balance.accepted:,} = events {balance.events:,} + "
        f"duplicates {balance.duplicates:,} + dead letters {balance.dead_letters:,} + "
        f"in log {balance.in_log:,} (off by {balance.off:,})"
    )
