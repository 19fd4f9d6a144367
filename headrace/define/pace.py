"""The options of a stream that set its pace: trigger, size of epochs, and reaction to overload.

tests/define/test_pace.py reads each refusal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headrace.core.time import duration_us
from headrace.define.definitions import PaceDefinition
from headrace.define.settings import SpeedSettings

PACE_OPTIONS = ("trigger", "epoch_events_max", "overload", "lag_events_max")
OVERLOADS = ("slow", "shed random", "shed oldest")


def read_pace(said: Mapping[str, str]) -> PaceDefinition:
    """The pace of a stream; ValueError with a whole sentence if an option is not valid.

    >>> read_pace({"overload": "SHED oldest", "lag_events_max": "1000"}).sheds
    'oldest'
    """
    overload = " ".join(said.get("overload", "slow").lower().split())
    if overload not in OVERLOADS:
        known = ", ".join(f"'{word}'" for word in OVERLOADS)
        raise ValueError(f"overload must be one of {known}, not '{said['overload']}'")
    pace = PaceDefinition(
        _trigger(said.get("trigger")),
        _number(said, "epoch_events_max"),
        overload,
        _number(said, "lag_events_max"),
    )
    if pace.sheds and pace.lag_events_max is None:
        raise ValueError(
            f"overload = '{overload}' requires lag_events_max, the backlog above which it sheds"
        )
    return pace


def with_pace(settings: SpeedSettings, pace: PaceDefinition) -> SpeedSettings:
    """The settings of speed, with those that one stream overrides."""
    return replace(
        settings,
        trigger_us=settings.trigger_us if pace.trigger_us is None else pace.trigger_us,
        epoch_events_max=pace.epoch_events_max or settings.epoch_events_max,
    )


def _trigger(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return duration_us(text)
    except ValueError as error:
        raise ValueError(f"trigger must be a duration such as '500 ms', not '{text}'") from error


def _number(said: Mapping[str, str], name: str) -> int | None:
    text = said.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 15 and int(text) >= 1):
        raise ValueError(f"{name} must be a whole number of at least 1, not '{text}'")
    return int(text)
