"""Jobs, versions and names in the database."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from msgspec.structs import replace

from headrace.core.errors import Conflict, NotFound
from headrace.run.job import Names
from headrace.server.database import DomainDatabase
from headrace.server.records import (
    CANCELLED,
    PAUSED,
    RUNNING,
    CatalogName,
    Job,
    add_version,
    find_job,
    job_of,
    names,
    read_job,
    read_version,
    versions,
    write_failure,
    write_job,
)
from headrace.server.resources import JobResources

NAMES = Names(["clicks"], ["Visitors"], ["break_in"])


@pytest.fixture
def database(tmp_path: Path) -> DomainDatabase:
    return DomainDatabase(tmp_path / "domain.db")


def make(database: DomainDatabase, name: str, names: Names = NAMES) -> Job:
    with database.write() as db:
        add_version(db, name, 1, "d1", names, "ada", 1)
        return write_job(
            db, Job(name, "ada", RUNNING, 1, 0, JobResources(2, "1g"), "", ""), 1_000_000
        )


def test_a_job_is_read_as_it_was_written_and_each_change_is_a_turn(
    database: DomainDatabase,
) -> None:
    job = make(database, "shop")
    assert job == Job(
        "shop", "ada", RUNNING, 1, 1, JobResources(2, "1g"),
        "1970-01-01T00:00:01Z", "1970-01-01T00:00:01Z",
    )  # fmt: skip
    assert job.should_run
    with database.write() as db:
        later = write_job(db, replace(job, desired=PAUSED), 2_000_000)
    assert (later.turn, later.should_run, later.submitted_at) == (2, False, job.submitted_at)
    with database.read() as db:
        assert read_job(db, "shop") == later
        assert find_job(db, "bank") is None
        with pytest.raises(NotFound) as raised:
            read_job(db, "bank")
    assert (raised.value.message, raised.value.hint) == (
        "there is no job 'bank'",
        "`headrace jobs` lists them.",
    )


def test_a_failure_is_of_one_turn(database: DomainDatabase) -> None:
    job = make(database, "shop")
    with database.write() as db:
        write_failure(db, replace(job, turn=7), "it died")
        assert read_job(db, "shop").failure is None
        write_failure(db, job, "it died")
        assert not read_job(db, "shop").should_run
        assert write_job(db, job, 2).failure is None


def test_versions_are_kept_the_newest_first(database: DomainDatabase) -> None:
    make(database, "shop")
    with database.write() as db:
        add_version(db, "shop", 2, "d2", Names(), "bob", 2)
        assert [v.number for v in versions(db, "shop")] == [2, 1]
        assert read_version(db, "shop", 1).names == NAMES
        with pytest.raises(NotFound) as raised:
            read_version(db, "shop", 3)
    assert (raised.value.message, raised.value.hint) == (
        "job 'shop' has no version 3",
        "available versions: 1, 2.",
    )


def test_a_name_leads_to_its_job_whatever_its_case(database: DomainDatabase) -> None:
    make(database, "shop")
    with database.read() as db:
        assert job_of(db, "view", "visitors") == job_of(db, "stream", "CLICKS") == "shop"
        assert CatalogName("Visitors", "view", "shop") in names(db)
        with pytest.raises(NotFound, match="no job has a view 'clicks'"):
            job_of(db, "view", "clicks")


def test_a_name_of_two_jobs_is_refused_with_both_until_one_is_cancelled(
    database: DomainDatabase,
) -> None:
    shop = make(database, "shop")
    make(database, "bank")
    with database.read() as db, pytest.raises(Conflict) as raised:
        job_of(db, "view", "visitors")
    assert raised.value.message == "more than one job has a view 'visitors': 'bank' and 'shop'"
    assert raised.value.hint == "use the path of one of them: /v1/jobs/bank/api/…"
    with database.write() as db:
        write_job(db, replace(shop, desired=CANCELLED), 2)
        assert job_of(db, "view", "visitors") == "bank"


def _half(db: sqlite3.Connection) -> None:
    add_version(db, "shop", 1, "d", Names(), "ada", 1)
    read_job(db, "shop")


def test_a_transaction_that_raises_changes_nothing(database: DomainDatabase) -> None:
    with pytest.raises(NotFound), database.write() as db:
        _half(db)
    with database.read() as db:
        assert versions(db, "shop") == []
