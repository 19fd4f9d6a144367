"""Somebody may stop a query at any time."""

from __future__ import annotations

import pytest

from headrace.core.cancellation import Cancellation
from headrace.core.errors import Cancelled


def test_what_was_stopped_before_does_not_begin() -> None:
    stopping, ended = Cancellation(), list[str]()
    stopping.stop()
    with pytest.raises(Cancelled, match="was cancelled"), stopping.by(lambda: ended.append("now")):
        ended.append("begun")
    assert ended == []


def test_what_runs_is_ended_and_what_has_ended_is_not() -> None:
    stopping, ended = Cancellation(), list[str]()
    with stopping.by(lambda: ended.append("now")):
        stopping.check()
        stopping.stop()
    stopping.stop()
    assert ended == ["now"]
    with pytest.raises(Cancelled):
        stopping.check()
