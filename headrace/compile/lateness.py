"""The lateness partials of a windowed view, besides its own partials.

Every window counts its events, its late events, and by how much they were late. These are ordinary
partials, so they are merged like others in epochs, generations and windows of any kind. Two are set
when a generation is promoted: how many of the late events it includes, and its number. So for every
window
    events = on time + late,   late = absorbed by batch + only in speed.
tests/compile/test_lateness.py checks the plan, tests/transcripts/late_*.yaml the numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.compile.plan import ABSORBED, ABSORBED_BY, EVENTS, LATE, PartialPlan
from headrace.compile.split import ViewParts
from headrace.core.event import LATENESS
from headrace.define.definitions import StreamDefinition

_NOTHING = "cast(NULL as bigint)"
_PARTIALS = (
    PartialPlan("sum", (EVENTS,), ("INTEGER",), ("count(*)",)),
    PartialPlan("sum", (LATE,), ("INTEGER",), ("count(late_us)",)),
    # A double, because Spark's sum of a BIGINT wraps when it overflows.
    PartialPlan("sum", (f"{LATE}_sum",), ("REAL",), ("sum(cast(late_us as double))",)),
    PartialPlan("max", (f"{LATE}_max",), ("INTEGER",), ("max(late_us)",)),
    PartialPlan("sum", (ABSORBED,), ("INTEGER",), (_NOTHING,)),
    PartialPlan("max", (ABSORBED_BY,), ("INTEGER",), (_NOTHING,)),
)


@dataclass(frozen=True, slots=True)
class LatenessParts:
    """Items of the map step, and their partials."""

    items: tuple[str, ...] = ()
    partials: tuple[PartialPlan, ...] = ()


def lateness_of(parts: ViewParts, stream: StreamDefinition, alias: str) -> LatenessParts:
    """The lateness partials of a view; empty without a window of event time or a watermark."""
    if stream.watermark is None or not any(group.timed for group in parts.groups):
        return LatenessParts()
    return LatenessParts((f"nullif({alias}.{LATENESS}, 0) AS late_us",), _PARTIALS)
