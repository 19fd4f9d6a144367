"""Queries are known by the ids of their callers while they run."""

from __future__ import annotations

import pytest

from headrace.core.errors import BadRequest
from headrace.run.running import Running


def test_a_query_is_stopped_by_its_id_and_no_other() -> None:
    running = Running()
    with running.entered("a") as one, running.entered("b") as other:
        assert running.stop("a")
        assert not running.stop("c")
        assert (one.stopped, other.stopped) == (True, False)
    assert not running.stop("a")


def test_an_id_is_used_once_at_a_time() -> None:
    running = Running()
    with (
        running.entered("a"),
        pytest.raises(BadRequest, match="id 'a' is running"),
        running.entered("a"),
    ):
        pass
    with running.entered("a"), running.entered(None), running.entered(None):
        pass
