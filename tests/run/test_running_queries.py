"""Queries are known by the ids of their callers while they run."""

from __future__ import annotations

import pytest

from headrace.core.errors import BadRequest
from headrace.run.running_queries import RunningQueries


def test_a_query_is_stopped_by_its_id_and_no_other() -> None:
    running = RunningQueries()
    with running.registered("a", "ann") as one, running.registered("b", "ann") as other:
        assert running.stop("a", "ann")
        assert not running.stop("c", "ann")
        assert (one.stopped, other.stopped) == (True, False)
    assert not running.stop("a", "ann")


def test_an_id_is_used_once_at_a_time() -> None:
    running = RunningQueries()
    with (
        running.registered("a", "ann"),
        pytest.raises(BadRequest, match="id 'a' is already running"),
        running.registered("a", "ann"),
    ):
        pass
    with (
        running.registered("a", "ann"),
        running.registered(None, "ann"),
        running.registered(None, "ann"),
    ):
        pass


def test_users_stop_queries_of_their_own_and_those_who_manage_all() -> None:
    running = RunningQueries()
    with running.registered("a", "ann") as of_ann, running.registered("a", "bob") as of_bob:
        assert not running.stop("a", "eve")
        assert running.stop("a", "bob")
        assert (of_ann.stopped, of_bob.stopped) == (False, True)
        assert running.stop("a", None)
        assert of_ann.stopped
