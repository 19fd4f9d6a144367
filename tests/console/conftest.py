"""One project that runs, and one browser, for all tests of the console."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
from chance import PROVE, drawn
from playwright.sync_api import Browser, Page, TimeoutError, sync_playwright

from headrace.define.layout import Layout
from headrace.run.lock import running_token
from tests.access.users import bearer
from tests.run.process import Running
from tests.run.waiting import wait

ROOT = Path(__file__).parents[2]
ARTEFACTS = ROOT / "artefacts" / "console"
AXE = ROOT / "console" / "node_modules" / "axe-core" / "axe.min.js"
# Chromium's own requests would be refused on a machine without a network, many at a time.
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip

# Every screen is looked at in one of them, and in `make prove` in both.
THEMES = ("light", "dark") if PROVE else (drawn("theme").choice(("light", "dark")),)


@dataclass(frozen=True)
class Harbour:
    """A project that runs, the token of one who may do everything there, and the link that it has
    printed, which is good once.
    """

    url: str
    token: str
    login: str | None = None


@pytest.fixture(scope="package")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harbour]:
    """A project in which each screen has something to show.

    CONSOLE_URL names one that runs already, which is quicker while one works on the console, and
    HEADRACE_TOKEN a token of it.
    """
    if given := os.environ.get("CONSOLE_URL"):
        yield Harbour(given, os.environ["HEADRACE_TOKEN"])
        return
    folder = tmp_path_factory.mktemp("console") / "harbour"
    shutil.copytree(Path(__file__).parent / "project", folder)
    running = Running(folder)
    try:
        said = running.wait_for("serving")
        token = running_token(Layout(folder / ".headrace")) or ""
        running.wait_for("ready", 240)
        with httpx.Client(base_url=said["url"], headers=bearer(token), trust_env=False) as client:
            wait(lambda: len(client.get("/v1/views/busiest").json()["rows"]) == 3, 180)
        yield Harbour(said["url"], token, said["login"])
    finally:
        running.process.terminate()
        running.process.wait(120)
        running._close()


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if not found:
        pytest.fail("the console is tested in Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield launched
        launched.close()


@dataclass
class Visit:
    """A page of the console. `complaints` are errors that the browser has told."""

    page: Page
    url: str
    token: str
    complaints: list[str] = field(default_factory=list)

    def go(self, fragment: str) -> None:
        self.page.goto(f"{self.url}/{fragment}")

    def see(self, text: str, seconds: float = 30) -> None:
        shown = self.page.get_by_text(text).locator("visible=true").first
        try:
            shown.wait_for(timeout=seconds * 1000)
        except TimeoutError:
            said = self.page.locator("body").inner_text()
            pytest.fail(f"{text!r} was not seen in {seconds:g} s on {self.page.url}, but:\n{said}")

    def shot(self, name: str) -> None:
        ARTEFACTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=ARTEFACTS / f"{name}.png")

    def cut_off(self) -> int:
        """How many pixels of the page lie beyond the screen's width."""
        hidden = "(main) => main.scrollWidth - main.clientWidth"
        return int(self.page.locator("#main").evaluate(hidden))

    def findings(self) -> list[str]:
        """What axe-core finds that is serious or critical."""
        # Evaluated by the browser's own tools, which the page's policy does not bind.
        self.page.evaluate(AXE.read_text())
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{one['id']}: {node['target']} {node['failureSummary']}"
            for one in found["violations"]
            if one["impact"] in {"serious", "critical"}
            for node in one["nodes"]
        ]


Visiting = Callable[..., Any]


@contextmanager
def opened(
    browser: Browser,
    url: str,
    token: str,
    theme: Literal["light", "dark"] = "light",
    width: int = 1440,
    height: int = 900,
    *,
    signed_in: bool = True,
) -> Iterator[Visit]:
    """A page of the console at an address, of one who has signed in there with a token."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=theme,
        reduced_motion="reduce",
        service_workers="block",
    )
    if signed_in:
        assert context.request.post(f"{url}/v1/session", data={"token": token}).ok
    visit = Visit(context.new_page(), url, token)
    visit.page.on("console", lambda said: _note(visit, said.type, said.text))
    visit.page.on("pageerror", lambda error: visit.complaints.append(str(error)))
    yield visit
    context.close()


@pytest.fixture
def visiting(browser: Browser, harbour: Harbour) -> Visiting:
    """Opens a page: `with visiting("dark", width=390) as visit`; with the project's token if no
    other is given.
    """

    def open_page(*said: Any, token: str = harbour.token, **more: Any) -> Any:
        return opened(browser, harbour.url, token, *said, **more)

    return open_page


def _note(visit: Visit, kind: str, text: str) -> None:
    # An answer that is no success is shown on the page; the browser's own line says no more.
    if kind == "error" and not text.startswith("Failed to load resource"):
        visit.complaints.append(text)


@pytest.fixture
def visit(visiting: Visiting) -> Iterator[Visit]:
    with visiting() as opened:
        yield opened
        assert opened.complaints == []
