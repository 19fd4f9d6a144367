"""The sentence about keys for which the search for a pattern was given up; it is in the status and
in the graph. tests/run/test_abandoned_patterns.py reads it.
"""

from __future__ import annotations

from headrace.compile.plan import ViewPlan
from headrace.core.pattern import Pattern
from headrace.core.rule import shown_name
from headrace.core.time import iso
from headrace.serving.carried import set_aside_keys
from headrace.serving.database import Transaction


def abandoned_text(db: Transaction, plan: ViewPlan) -> str:
    """Which keys of a view's pattern are not searched any more, and why; empty if all are."""
    if not (keys := set_aside_keys(db, plan)):
        return ""
    pattern, (key, since_us) = plan.carry and plan.carry.match and plan.carry.match.pattern, keys[0]
    steps = pattern.steps_max if isinstance(pattern, Pattern) else None
    more = f" and {len(keys) - 1:,} more" if len(keys) > 1 else ""
    return (
        f"pattern matching for '{shown_name(plan.name)}' was abandoned for key "
        f"{key[:80]}{more} at {iso(since_us)}: it exceeded the limit of {steps or 0:,} steps "
        "(pattern.steps_max); events are still stored, but later matches are not detected"
    )
