"""A step that does not end is an alarm, until it ends."""

from __future__ import annotations

import pytest

from headrace.core.problems import Problem, ProblemKey
from headrace.core.time import SECOND
from headrace.core.watchdog import JUST_US, Watchdog

SPEED, BATCH = ProblemKey("flow", "clicks", "speed"), ProblemKey("flow", "clicks", "batch")


def test_a_step_raises_an_alarm_after_its_limit_and_until_its_end() -> None:
    now = 0
    dog = Watchdog(lambda: now)
    with (
        dog.step(SPEED, "an epoch of stream 'clicks'", 60 * SECOND),
        dog.step(BATCH, "a build of stream 'clicks'", 600 * SECOND),
    ):
        now = 60 * SECOND
        assert dog.problems == []
        now += 1
        said = "an epoch of stream 'clicks' has not completed within 1m"
        alarm = Problem(*SPEED, said, since="1970-01-01T00:00:00Z")
        assert dog.problems == [alarm]
        now = 700 * SECOND
        assert dog.problems[0] == alarm
        assert [one.key for one in dog.problems] == [SPEED, BATCH]
    assert (dog.problems, dog.suspects) == ([], [])


def test_a_step_that_has_failed_is_a_suspect_for_a_while() -> None:
    now = 0
    dog = Watchdog(lambda: now)
    with pytest.raises(OSError), dog.step(BATCH, "a build of stream 'a'", 1):
        raise OSError
    with dog.step(SPEED, "an epoch of stream 'b'", 1):
        assert dog.suspects == ["a build of stream 'a'", "an epoch of stream 'b'"]
        assert dog.problems == []
    now = JUST_US + 1
    assert dog.suspects == []
