"""What a windowed view keeps beside its own partials, to say how late its events were.

Every window counts all of its events, the late ones, and by how much they were late. These are
ordinary partials, so the same merge carries them through epochs, generations and windows of any
kind. Two are filled in when a generation is promoted: how many of the late events it holds, and
its number. So for every window
    events = on time + late,   late = absorbed by batch + only in speed.
tests/compile/test_lateness.py checks the plan, tests/transcripts/late_*.yaml the numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.compile.plan import ABSORBED, ABSORBED_BY, EVENTS, LATE, PartialPlan
from headrace.compile.split import Split
from headrace.core.event import LATENESS
from headrace.define.definitions import StreamDefinition

_NOTHING = "cast(NULL as bigint)"
_PARTIALS = (
    PartialPlan("sum", (EVENTS,), ("INTEGER",), ("count(*)",)),
    PartialPlan("sum", (LATE,), ("INTEGER",), ("count(late_us)",)),
    # A double, because SQLite's sum of whole numbers fails where it overflows.
    PartialPlan("sum", (f"{LATE}_sum",), ("REAL",), ("sum(cast(late_us as double))",)),
    PartialPlan("max", (f"{LATE}_max",), ("INTEGER",), ("max(late_us)",)),
    PartialPlan("sum", (ABSORBED,), ("INTEGER",), (_NOTHING,)),
    PartialPlan("max", (ABSORBED_BY,), ("INTEGER",), (_NOTHING,)),
)


@dataclass(frozen=True, slots=True)
class LatenessParts:
    """Items of the map step, and the partials made of them."""

    items: tuple[str, ...] = ()
    partials: tuple[PartialPlan, ...] = ()


def lateness_of(parts: Split, stream: StreamDefinition, alias: str) -> LatenessParts:
    """What a view with these parts keeps; nothing without a window of time or a watermark."""
    if stream.watermark is None or not any(group.timed for group in parts.groups):
        return LatenessParts()
    return LatenessParts((f"nullif({alias}.{LATENESS}, 0) AS late_us",), _PARTIALS)
