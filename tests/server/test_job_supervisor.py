"""A job is brought to what it is to be, by real processes and real signals."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from run.waiting import wait

from headrace.core.time import HOUR, now_us
from headrace.define.layout import Layout
from headrace.run.lock import holder
from headrace.server import job_supervisor
from headrace.server.commands import Command
from headrace.server.deaths import read_deaths
from headrace.server.records import read_job
from headrace.server.resources import ResourceRequest

from .conftest import Site

pytestmark = pytest.mark.process


def running(site: Site, name: str = "shop") -> int:
    """The process of a job, once it runs."""
    wait(lambda: site.snapshot(name).state == "running")
    pid = site.snapshot(name).pid
    assert pid is not None
    return pid


def test_a_submitted_job_runs_in_a_session_of_its_own_with_its_place(site: Site) -> None:
    site.submit(cores=2)
    pid = running(site)
    assert os.getsid(pid) == pid
    said = Path(f"/proc/{pid}/cmdline").read_bytes()
    assert b'"master":"local[2]"' in said
    assert b'"memory":"2g"' in said
    found = holder(site.context.home.state("shop"))
    assert found is not None
    assert (found.pid, found.turn) == (pid, 1)


def test_a_job_says_itself_whether_it_is_well(site: Site) -> None:
    site.submit()
    pid = running(site)
    site.set_status("degraded", "every epoch fails", "a sink fails")
    wait(lambda: site.snapshot().state == "degraded")
    found = site.snapshot()
    assert (found.reason, found.problems) == ("every epoch fails; a sink fails", 2)
    site.set_status("running", "events wait")
    wait(lambda: site.snapshot().state == "running")
    assert (site.snapshot().reason, site.snapshot().problems) == ("events wait", 1)
    site.set_status("no such state")
    wait(lambda: site.snapshot().reason.startswith("its status is not available: "))
    assert (site.snapshot().state, site.snapshot().pid) == ("degraded", pid)


def test_a_job_is_starting_for_as_long_as_it_says_so(site: Site) -> None:
    site.set_status("starting", "Spark is starting")
    site.submit()
    wait(lambda: site.snapshot().reason == "Spark is starting")
    assert site.snapshot().state == "starting"
    site.set_status("running")
    running(site)


def test_a_job_that_cannot_be_checked_is_not_said_to_be_running(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(layout: Layout) -> None:
        raise PermissionError("this user may not read the lock")

    site.submit()
    running(site)
    monkeypatch.setattr(job_supervisor, "holder", unreadable)
    wait(lambda: "this user may not read the lock" in site.snapshot().reason)
    assert site.snapshot().state == "degraded"
    monkeypatch.undo()
    running(site)


def test_a_job_that_is_killed_comes_back_and_no_other_job_is_touched(site: Site) -> None:
    site.submit("shop")
    site.submit("bank")
    first, other = running(site), running(site, "bank")
    os.kill(first, signal.SIGKILL)
    wait(lambda: len(site.starts()) == 2 and site.snapshot().state == "running")
    assert site.snapshot().pid != first
    assert running(site, "bank") == other
    assert len(site.starts("bank")) == 1
    with site.context.database.read() as db:
        assert [death.why for death in read_deaths(db, "shop")] == ["it was killed by SIGKILL"]


def test_a_job_that_dies_at_once_is_given_up_with_its_last_sentence(site: Site) -> None:
    site.submit(behaviour="fail")
    wait(lambda: site.snapshot().state == "failed")
    log = site.context.home.log("shop")
    assert site.snapshot().reason.startswith("the process died 3 times in ")
    assert site.snapshot().reason.endswith(
        f" s, most recently because BadSetting: no such port; its log is {log}"
    )
    assert len(site.starts()) == 3


def test_each_pause_before_a_start_is_twice_the_one_before(make_site: Callable[..., Site]) -> None:
    site = make_site(pause_us=400_000, pause_max_us=9_000_000)
    site.submit(behaviour="die")
    wait(lambda: site.snapshot().state == "restarting" and "restart in" in site.snapshot().reason)
    assert site.snapshot().reason.startswith("it exited with code 7; restart in ")
    wait(lambda: site.snapshot().state == "failed")
    with site.context.database.read() as db:
        first, second, third = (death.at_us for death in read_deaths(db, "shop"))
    assert second - first >= 400_000
    assert third - second >= 800_000


def test_a_failed_job_stays_so_for_a_new_server_until_it_is_restarted(site: Site) -> None:
    site.submit(behaviour="die")
    wait(lambda: site.snapshot().state == "failed")
    assert "because it exited with code 7" in site.snapshot().reason
    site = site.again()
    site.supervisor.start()
    wait(lambda: site.snapshot().state == "failed")
    assert len(site.starts()) == 3
    (site.state() / "behaviour").write_text("serve")
    site.switch("restart")
    running(site)
    assert len(site.starts()) == 4
    with site.context.database.read() as db:
        assert read_job(db, "shop").failure is None
        assert read_deaths(db, "shop") == []


def test_a_job_that_was_healthy_before_each_death_is_never_given_up(
    make_site: Callable[..., Site],
) -> None:
    site = make_site(healthy_us=1, deaths_max=2)
    site.submit(behaviour="late")
    wait(lambda: len(site.starts()) >= 5)
    assert site.snapshot().state != "failed"


def test_a_job_that_falls_silent_is_killed_and_started_again(
    make_site: Callable[..., Site],
) -> None:
    site = make_site(silent_us=2_000_000)
    site.context.proxy._heartbeats.timeout = 0.5
    site.submit()
    first = running(site)
    (site.state() / "hang").touch()
    wait(lambda: site.snapshot().state == "silent")
    wait(lambda: len(site.starts()) == 2)
    (site.state() / "hang").unlink()
    wait(lambda: site.snapshot().state == "running")
    assert site.snapshot().pid != first
    with site.context.database.read() as db:
        assert read_deaths(db, "shop")[0].why.startswith("it had no heartbeat for ")


def test_a_job_that_is_stopped_by_the_system_is_killed_as_one_that_is_silent(
    make_site: Callable[..., Site],
) -> None:
    site = make_site(silent_us=1_000_000)
    site.context.proxy._heartbeats.timeout = 0.5
    site.submit()
    first = running(site)
    os.kill(first, signal.SIGSTOP)
    wait(lambda: len(site.starts()) == 2 and site.snapshot().state == "running")
    assert site.snapshot().pid != first


def test_a_job_that_never_announces_itself_is_killed_after_its_time(
    make_site: Callable[..., Site],
) -> None:
    site = make_site(start_us=500_000, deaths_max=2)
    site.submit(behaviour="mute")
    wait(lambda: site.snapshot().state == "failed")
    reason = r"because it (had no heartbeat for|did not start within) \d"
    assert re.search(reason, site.snapshot().reason)


def test_pausing_stops_the_process_and_resuming_starts_another(site: Site) -> None:
    site.submit()
    first = running(site)
    site.switch("pause")
    wait(lambda: site.snapshot().state == "paused")
    assert holder(site.context.home.state("shop")) is None
    site.switch("resume")
    assert running(site) != first
    site.switch("cancel")
    wait(lambda: site.snapshot().state == "cancelled")
    with site.context.database.read() as db:
        assert read_deaths(db, "shop") == [], "what was asked for is no death"


def test_a_job_that_does_not_stop_is_killed_after_its_time(site: Site) -> None:
    site.submit(behaviour="stubborn")
    running(site)
    site.switch("cancel")
    wait(lambda: site.snapshot().state == "stopping")
    assert not site.snapshot().restarts
    wait(lambda: site.snapshot().state == "cancelled")


def test_a_process_that_has_freed_its_lock_and_stays_is_killed_after_its_time(site: Site) -> None:
    site.submit(behaviour="linger")
    first = running(site)
    site.switch("restart")
    wait(lambda: len(site.starts()) == 2 and site.snapshot().state == "running")
    assert not Path(f"/proc/{first}").exists()
    with site.context.database.read() as db:
        assert read_deaths(db, "shop") == []


def test_a_job_that_cannot_be_started_says_why_until_it_can(site: Site) -> None:
    site.submit(pool="big")
    pools = site.context.capacity.pools
    first, master = running(site), pools.pop("big")
    os.kill(first, signal.SIGKILL)
    wait(lambda: "the pool 'big' is not in server.toml" in site.snapshot().reason)
    pools["big"] = master
    assert running(site) != first


def test_a_clock_that_is_set_back_makes_no_pause_longer(
    make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    site = make_site(pause_us=1_500_000)
    site.submit()
    os.kill(running(site), signal.SIGKILL)
    wait(lambda: site.snapshot().state == "restarting")
    monkeypatch.setattr(job_supervisor, "now_us", lambda: now_us() - 2 * HOUR)
    site = site.again()
    site.supervisor.start()
    wait(lambda: len(site.starts()) == 2)


def test_a_new_version_and_a_restart_are_new_turns(site: Site) -> None:
    site.submit()
    running(site)
    site.domain.apply(Command("apply", "shop", "bob"), site.body(), ResourceRequest())
    wait(lambda: len(site.starts()) == 2 and site.snapshot().state == "running")
    site.switch("restart")
    wait(lambda: len(site.starts()) == 3 and site.snapshot().state == "running")
    assert [start[1:] for start in site.starts()] == [["1", "1"], ["2", "2"], ["3", "2"]]


def test_a_new_server_finds_what_runs_and_starts_what_does_not(site: Site) -> None:
    site.submit("shop")
    site.submit("bank")
    first, gone = running(site), running(site, "bank")
    site = site.again()
    os.kill(gone, signal.SIGKILL)
    wait(lambda: holder(site.context.home.state("bank")) is None)
    site.supervisor.start()
    assert running(site) == first
    assert running(site, "bank") != gone
    assert len(site.starts()) == 1


def test_a_new_server_stops_what_was_cancelled_while_none_ran(site: Site) -> None:
    site.submit()
    running(site)
    site = site.again()
    with site.context.database.write() as db:
        db.execute("UPDATE jobs SET desired = 'cancelled', turn = turn + 1")
    site.supervisor.start()
    wait(lambda: site.snapshot().state == "cancelled")
    assert holder(site.context.home.state("shop")) is None
