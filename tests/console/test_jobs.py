"""The screen of jobs, over a server whose jobs are stand-ins: real processes, and no Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.sync_api import Browser, expect

from headrace.access.access import Access
from headrace.api.server import AppServer
from headrace.core.time import now_us
from headrace.define.settings import HttpSettings
from headrace.server.app import make_server_app
from headrace.server.database import DomainDatabase
from headrace.server.home import Home
from headrace.server.job_supervisor import SupervisorContext
from headrace.server.proxy import JobProxy
from headrace.server.resources import ServerCapacity
from headrace.server.service import ServerService
from headrace.server.settings import ServerSettings
from tests.access.users import token_of
from tests.run.waiting import wait
from tests.server.conftest import QUICK, SHOP, Site, stand_in

from .conftest import THEMES, Visit, Visiting, opened

SETTINGS = ServerSettings(http=HttpSettings(port=0))


@dataclass(frozen=True)
class Yard:
    """A server of jobs, and the tokens of one who may do everything and of one who may read."""

    url: str
    site: Site
    admin: str
    viewer: str

    def state(self, job: str) -> str:
        return self.site.snapshot(job).state


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """One job runs, one has failed, one is paused."""
    with serving_jobs(tmp_path_factory.mktemp("yard")) as yard:
        _submit_all(yard)
        yield yard


@contextmanager
def serving_jobs(folder: Path) -> Iterator[Yard]:
    line, home, access = JobProxy(), Home(folder / "home"), Access(folder / "access.db", "")
    room = ServerCapacity(8, 16 << 30, ["ssd"], {})
    site = Site(
        SupervisorContext(home, DomainDatabase(home.database), QUICK, room, stand_in, line), folder
    )
    office = ServerService(site.domain, site.supervisor, line)
    server = AppServer(make_server_app(office, SETTINGS, access), SETTINGS.http)
    server.start()
    people = token_of(access, "ada", "admin"), token_of(access, "vera", "viewer")
    try:
        yield Yard(server.url, site, *people)
    finally:
        server.stop()
        site.end()
        line.close()
        access.close()


def _submit_all(yard: Yard) -> None:
    room = msgspec.json.encode(yard.site.context.capacity).decode()
    with yard.site.context.database.write() as db:
        server = "yard", yard.url, os.getpid(), room, now_us()
        db.execute("INSERT INTO instances VALUES (?, ?, ?, ?, ?)", server)
    for name in ("shop", "bank"):
        yard.site.submit(name)
    yard.site.submit("mill", behaviour="die")
    wait(lambda: [yard.state(job) for job in ("shop", "bank", "mill")] == [
        "running", "running", "failed",
    ])  # fmt: skip
    yard.site.switch("pause", "bank")
    wait(lambda: yard.state("bank") == "paused")


@pytest.fixture
def visiting(browser: Browser, yard: Yard) -> Visiting:
    """Opens a page of the console at the root of the server."""

    def open_page(*said: Any, token: str = yard.admin, **more: Any) -> Any:
        return opened(browser, yard.url, token, *said, **more)

    return open_page


@pytest.fixture
def visit(visiting: Visiting) -> Iterator[Visit]:
    with visiting() as found:
        yield found
        assert found.complaints == []


@pytest.mark.parametrize("theme", THEMES)
def test_the_screens_are_drawn_without_a_serious_finding(visiting: Visiting, theme: str) -> None:
    with visiting(theme) as visit:
        for name, fragment, text in (
            ("jobs", "", "Cores given out"),
            ("job", "#/jobs/shop", "each as it was submitted"),
            ("job-failed", "#/jobs/mill", "mill has failed"),
        ):
            visit.go(fragment)
            visit.see(text)
            visit.page.wait_for_timeout(300)
            visit.shot(f"{name}-{theme}")
            assert visit.findings() == []
        assert visit.complaints == []


def test_narrow_screens_are_not_cut_off(visiting: Visiting) -> None:
    with visiting(width=390, height=844) as visit:
        for name, fragment, text in (
            ("jobs", "#/jobs", "press one for its log"),
            ("job-failed", "#/jobs/mill", "mill has failed"),
        ):
            visit.go(fragment)
            visit.see(text)
            visit.shot(f"{name}-narrow")
            assert visit.cut_off() == 0


def test_the_root_of_a_server_shows_its_jobs_and_no_page_of_a_project(visit: Visit) -> None:
    visit.go("")
    rows = visit.page.locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.nth(0)).to_contain_text("paused")
    expect(rows.nth(1)).to_contain_text("the process died 3 times")
    expect(rows.nth(2)).to_contain_text("running")
    expect(visit.page.locator(".nav a.item")).to_have_text(["Jobs", "Users"])
    visit.page.keyboard.press("g")
    visit.page.keyboard.press("u")
    visit.see("press one to change what they may do")


def test_all_is_well_only_while_each_job_says_so_itself(browser: Browser, tmp_path: Path) -> None:
    with serving_jobs(tmp_path) as yard, opened(browser, yard.url, yard.admin) as visit:
        site, page = yard.site, visit.page
        well, row = page.get_by_text("all well"), page.locator("tbody tr", has_text="bank")

        def not_well(badge: str, *shown: str) -> None:
            visit.see(badge)
            expect(well).to_have_count(0)
            for text in shown:
                expect(row).to_contain_text(text)

        site.submit("shop")
        site.submit("bank")
        visit.go("#/jobs")
        expect(well).to_be_visible(timeout=30_000)

        site.set_status("degraded", "every epoch fails", name="bank")
        not_well("1 failing", "degraded, 1 problem", "every epoch fails")
        visit.shot("jobs-degraded")
        assert visit.findings() == []
        row.get_by_role("link", name="bank").click()
        expect(page.get_by_role("alert")).to_contain_text("bank is degraded: 1 problem")
        visit.go("#/jobs")

        site.set_status("running", "events wait", name="bank")
        not_well("1 with warnings", "running, 1 problem", "events wait")
        site.set_status("running", name="bank")
        expect(well).to_be_visible(timeout=30_000)

        site.switch("pause", "bank")
        not_well("1 not running", "paused")
        site.set_status("starting", name="bank")
        site.switch("resume", "bank")
        not_well("1 not running", "starting")
        site.set_status("running", name="bank")
        expect(well).to_be_visible(timeout=30_000)

        (site.state("bank") / "behaviour").write_text("die")
        site.switch("restart", "bank")
        not_well("1 failing", "failed", "died 3 times")
        assert visit.complaints == []


def test_a_job_that_was_given_up_says_why_and_what_to_do(visit: Visit) -> None:
    visit.go("#/jobs/mill")
    said = visit.page.get_by_role("alert")
    expect(said).to_contain_text("mill has failed")
    expect(said).to_contain_text("exited with code 7")
    expect(said).to_contain_text("headrace apply DIR mill")
    deaths = visit.page.locator(".stat", has_text="Deaths")
    expect(deaths).to_contain_text("exited with code 7")
    assert deaths.locator("dd").evaluate("(value) => value.firstChild.textContent") == "3"


def test_commands_are_asked_about_and_then_carried_out(visit: Visit, yard: Yard) -> None:
    visit.go("#/jobs/shop")
    _tell(visit, "Pause")
    wait(lambda: yard.state("shop") == "paused")
    _tell(visit, "Resume")
    wait(lambda: yard.state("shop") == "running")
    process = yard.site.snapshot("shop").pid
    _tell(visit, "Restart")
    wait(lambda: yard.state("shop") == "running" and yard.site.snapshot("shop").pid != process)
    visit.see(str(yard.site.snapshot("shop").pid))


def _tell(visit: Visit, verb: str) -> None:
    visit.page.get_by_role("button", name=verb).click()
    asked = visit.page.get_by_role("dialog", name=f"{verb} shop?")
    visit.shot(f"job-{verb.lower()}")
    assert visit.findings() == []
    asked.get_by_role("button", name=verb).click()
    expect(asked).to_have_count(0)


def test_a_project_is_submitted_changed_and_rolled_back(
    visit: Visit, yard: Yard, tmp_path: Path
) -> None:
    page = visit.page
    broken, whole, changed = (tmp_path / f"{n}.tar.gz" for n in ("broken", "whole", "changed"))
    broken.write_bytes(yard.site.body("CREATE VIEW BROKEN"))
    whole.write_bytes(yard.site.body())
    changed.write_bytes(yard.site.body(SHOP.replace("visitors", "guests")))
    visit.go("#/jobs")
    page.get_by_role("button", name="Submit a project").click()
    visit.see("headrace submit DIR --server")
    page.get_by_label("Name").fill("fair")
    page.get_by_label("Project, as .tar.gz").set_input_files(broken)
    page.get_by_role("button", name="Submit", exact=True).click()
    visit.see("view 'v' reads 'broken'")
    visit.see("shop.sql:3")
    visit.shot("submit")
    assert visit.findings() == []
    page.get_by_label("Project, as .tar.gz").set_input_files(whole)
    page.get_by_role("button", name="Submit", exact=True).click()
    expect(page.locator("h1")).to_have_text("fair")
    page.get_by_role("button", name="New version").click()
    page.get_by_label("Project, as .tar.gz").set_input_files(changed)
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("tbody tr").first).to_contain_text("2")
    page.get_by_role("button", name="Make version 1 current").click()
    page.get_by_role("button", name="Roll back", exact=True).last.click()
    expect(page.locator("tbody tr").nth(1)).to_contain_text("current")
    _cancel(visit, yard)


def _cancel(visit: Visit, yard: Yard) -> None:
    visit.page.get_by_role("button", name="Cancel").click()
    asked = visit.page.get_by_role("dialog", name="Cancel fair?")
    asked.get_by_role("button", name="Cancel").click()
    wait(lambda: yard.state("fair") == "cancelled")


def test_whoever_may_only_read_is_told_what_commands_need(visiting: Visiting, yard: Yard) -> None:
    with visiting(token=yard.viewer) as visit:
        visit.go("#/jobs/shop")
        visit.see("You may not restart, pause, cancel it")
        assert visit.page.get_by_role("button", name="Restart").count() == 0
        assert visit.page.get_by_role("button", name="New version").count() == 0
        assert visit.complaints == []
