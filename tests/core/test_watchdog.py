"""A step that does not end is an alarm, until it ends."""

from __future__ import annotations

import pytest

from headrace.core.time import SECOND
from headrace.core.watchdog import JUST_US, Watchdog


def test_a_step_raises_an_alarm_after_its_limit_and_until_its_end() -> None:
    now = 0
    dog = Watchdog(lambda: now)
    with (
        dog.step("speed clicks", "an epoch of stream 'clicks'", 60 * SECOND),
        dog.step("batch clicks", "a build of stream 'clicks'", 600 * SECOND),
    ):
        now = 60 * SECOND
        assert dog.problems == {}
        now += 1
        alarm = "an epoch of stream 'clicks' has not ended within 1m"
        assert dog.problems == {"speed clicks": alarm}
        now = 700 * SECOND
        assert dog.problems["speed clicks"] == alarm
        assert list(dog.problems) == ["speed clicks", "batch clicks"]
    assert (dog.problems, dog.suspects) == ({}, [])


def test_a_step_that_has_failed_is_a_suspect_for_a_while() -> None:
    now = 0
    dog = Watchdog(lambda: now)
    with pytest.raises(OSError), dog.step("batch a", "a build of stream 'a'", 1):
        raise OSError
    with dog.step("speed b", "an epoch of stream 'b'", 1):
        assert dog.suspects == ["a build of stream 'a'", "an epoch of stream 'b'"]
        assert dog.problems == {}
    now = JUST_US + 1
    assert dog.suspects == []
