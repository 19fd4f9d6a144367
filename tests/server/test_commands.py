"""A command is carried out at most once, and told again as it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headrace.core.errors import BadRequest, Conflict
from headrace.server.commands import Command, check_id, execute, find
from headrace.server.database import DomainDatabase
from headrace.server.records import RUNNING, Job
from headrace.server.resources import JobResources

COMMAND = Command("restart", "shop", "ada", b"asked", "c1")
JOB = Job("shop", "ada", RUNNING, 1, 3, JobResources(), "", "")


@pytest.fixture
def database(tmp_path: Path) -> DomainDatabase:
    return DomainDatabase(tmp_path / "domain.db")


def test_sent_again_it_is_told_what_was_done_and_nothing_is_done(database: DomainDatabase) -> None:
    done = []

    def change() -> Job:
        done.append(1)
        return JOB

    with database.write() as db:
        first = execute(db, COMMAND, 1, change)
    again = DomainDatabase(database.path)
    with again.write() as db:
        assert execute(db, replace(COMMAND, user="bob"), 2, change) == first
    assert (first.command, first.job, done) == ("c1", JOB, [1])


def test_one_that_was_refused_may_be_sent_again(database: DomainDatabase) -> None:
    def refuse() -> Job:
        raise Conflict("not now")

    with pytest.raises(Conflict), database.write() as db:
        execute(db, COMMAND, 1, refuse)
    with database.write() as db:
        assert find(db, COMMAND) is None
        assert execute(db, COMMAND, 1, lambda: JOB).job == JOB


@pytest.mark.parametrize(
    "other",
    [
        replace(COMMAND, verb="pause"),
        replace(COMMAND, job="bank"),
        replace(COMMAND, payload=b"something else"),
    ],
)
def test_an_id_is_that_of_one_command(database: DomainDatabase, other: Command) -> None:
    with database.write() as db:
        execute(db, COMMAND, 1, lambda: JOB)
        with pytest.raises(Conflict) as raised:
            find(db, other)
    assert raised.value.message == "the id 'c1' was used by another command: restart shop"
    assert raised.value.hint == "each command requires a unique id."


def test_commands_without_an_id_have_different_ones() -> None:
    assert Command("pause", "shop", "ada").id != Command("pause", "shop", "ada").id


@pytest.mark.parametrize("id", ["", "a b", "x" * 101, "é", "a\n"])
def test_what_is_no_id_is_refused(id: str) -> None:
    with pytest.raises(BadRequest):
        check_id(id)
