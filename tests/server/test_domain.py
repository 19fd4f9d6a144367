"""Each command, what it leaves behind, and each refusal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from run.waiting import wait

from headrace.core.errors import BadRequest, Conflict, NotFound, UnknownName
from headrace.server.commands import Command
from headrace.server.records import jobs, names, read_job, versions
from headrace.server.resources import JobResources, ResourceRequest, ServerCapacity

from .conftest import SHOP, Site

pytestmark = pytest.mark.process

BANK = SHOP.replace("visitors", "accounts")


def apply(site: Site, sql: str = BANK, **wish: int) -> int:
    command = Command("apply", "shop", "bob")
    return site.domain.apply(command, site.body(sql), ResourceRequest(**wish)).job.version


def known(site: Site) -> list[str]:
    with site.context.database.read() as db:
        return [f"{name.kind} {name.name}" for name in names(db)]


def files(site: Site, number: int) -> str:
    return (site.context.home.version("shop", number) / "shop.sql").read_text()


def test_a_submission_is_a_job_of_its_sender_with_a_version_and_its_names(site: Site) -> None:
    done = site.submit(cores=2)
    assert (done.verb, done.job.owner, done.job.version, done.job.desired) == (
        "submit", "ada", 1, "running",
    )  # fmt: skip
    assert done.job.place == JobResources(2, "2g")
    assert files(site, 1) == SHOP
    assert known(site) == ["stream clicks", "view visitors"]
    assert list(site.context.home.incoming.iterdir()) == []


def test_a_name_in_use_is_refused_and_that_of_a_cancelled_job_goes_on(site: Site) -> None:
    site.submit()
    with pytest.raises(Conflict) as raised:
        site.submit()
    assert raised.value.message == "job 'shop' is running"
    site.switch("cancel")
    assert known(site) == []
    assert site.submit().job.version == 2


def test_apply_makes_the_next_version_and_rollback_the_one_before(site: Site) -> None:
    site.submit(cores=2)
    assert apply(site) == 2
    assert known(site) == ["view accounts", "stream clicks"]
    done = site.domain.rollback(Command("rollback", "shop", "bob"), None)
    assert (done.job.version, done.job.place.cores, done.job.owner) == (1, 2, "ada")
    assert known(site) == ["stream clicks", "view visitors"]
    assert site.domain.rollback(Command("rollback", "shop", "bob"), 2).job.version == 2
    assert apply(site, SHOP, cores=1) == 3
    assert [files(site, number) for number in (1, 2, 3)] == [SHOP, BANK, SHOP]
    with site.context.database.read() as db:
        assert [v.submitted_by for v in versions(db, "shop")] == ["bob", "bob", "ada"]
        assert read_job(db, "shop").place.cores == 1


def test_a_version_that_does_not_compile_is_refused_with_its_origin_and_changes_nothing(
    site: Site,
) -> None:
    site.submit()
    wait(lambda: site.snapshot().state == "running")
    with pytest.raises(UnknownName) as raised:
        apply(site, "CREATE VIEW BROKEN")
    assert (raised.value.message, raised.value.origin) == ("view 'v' reads 'broken'", "shop.sql:3")
    with site.context.database.read() as db:
        assert (read_job(db, "shop").version, read_job(db, "shop").turn) == (1, 1)
    assert not site.context.home.version("shop", 2).exists()
    assert len(site.starts()) == 1


def test_what_a_crash_left_of_a_version_is_replaced(site: Site) -> None:
    site.submit()
    left = site.context.home.version("shop", 2)
    left.mkdir(parents=True)
    (left / "half.sql").write_text("CREATE")
    apply(site)
    assert sorted(path.name for path in left.iterdir()) == ["headrace.toml", "shop.sql"]


def test_a_command_with_an_id_is_carried_out_once(site: Site) -> None:
    body = site.body()
    command = Command("submit", "shop", "ada", b"", "c1")
    first = site.domain.submit(command, body, ResourceRequest())
    site.switch("cancel")
    assert site.domain.submit(command, body, ResourceRequest()) == first
    with site.context.database.read() as db:
        assert read_job(db, "shop").desired == "cancelled"
        assert len(versions(db, "shop")) == 1
    back = Command("rollback", "shop", "ada", b"", "c2")
    site.submit()
    assert site.domain.rollback(back, None).job.version == 1
    assert site.domain.rollback(back, None).job.turn == 4


@pytest.mark.parametrize(
    ("before", "verb", "message", "hint"),
    [
        ([], "resume", "job 'shop' is running",
         "`headrace job restart shop` restarts it; `headrace apply DIR shop` changes it."),
        (["pause"], "restart", "job 'shop' is paused",
         "`headrace job resume shop` resumes it."),
        (["pause"], "pause", "job 'shop' is paused", None),
        (["cancel"], "cancel", "job 'shop' is cancelled",
         "`headrace submit DIR --name shop` starts it again with its state."),
    ],
)  # fmt: skip
def test_a_command_for_another_state_is_refused(
    site: Site, before: list[str], verb: str, message: str, hint: str | None
) -> None:
    site.submit()
    for each in before:
        site.switch(each)
    with pytest.raises(Conflict) as raised:
        site.switch(verb)
    assert raised.value.message == message
    assert hint is None or raised.value.hint == hint


def test_commands_of_no_job_and_of_a_cancelled_one_are_refused(site: Site) -> None:
    with pytest.raises(NotFound, match="there is no job 'shop'"):
        apply(site)
    site.submit()
    with pytest.raises(NotFound, match="job 'shop' has no version before version 1"):
        site.domain.rollback(Command("rollback", "shop", "ada"), None)
    with pytest.raises(NotFound, match="job 'shop' has no version 9"):
        site.domain.rollback(Command("rollback", "shop", "ada"), 9)
    site.switch("cancel")
    with pytest.raises(Conflict, match="job 'shop' is cancelled"):
        apply(site)


def test_a_job_that_does_not_fit_is_refused_before_it_is_checked(
    make_site: Callable[..., Site],
) -> None:
    site = make_site(ServerCapacity(3, 8 << 30))
    site.submit(cores=2)
    with pytest.raises(
        Conflict, match=r"the job requests 2 cores and 2\.0 GiB, but only 1 core and 6\.0 GiB"
    ):
        site.submit("bank", cores=2)
    with pytest.raises(Conflict, match="the job requests 4 cores"):
        apply(site, "CREATE VIEW BROKEN", cores=4)
    site.switch("pause")
    site.submit("bank", cores=2)
    with pytest.raises(Conflict, match="the job requests 2 cores"):
        site.switch("resume")
    with site.context.database.read() as db:
        assert [(job.name, job.desired) for job in jobs(db)] == [
            ("bank", "running"),
            ("shop", "paused"),
        ]


def test_a_paused_job_stays_paused_with_its_new_version(site: Site) -> None:
    site.submit()
    site.switch("pause")
    apply(site)
    with site.context.database.read() as db:
        assert (read_job(db, "shop").desired, read_job(db, "shop").version) == ("paused", 2)


def test_a_bad_name_makes_no_folder(site: Site, tmp_path: Path) -> None:
    with pytest.raises(BadRequest):
        site.submit("../shop")
    assert not (site.context.home.folder / "jobs").exists()
