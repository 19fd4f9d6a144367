"""A server that is away is said to be, everywhere and at once, and nothing old looks present.

The server is a real one, which a test stops while the page is open.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from .conftest import Visit, opened
from .desk import served

SCREENS = {
    "topology": "Topology", "views": "Views", "alerts": "Alerts", "quality": "Data quality",
    "runs": "Runs", "system": "System", "views/visitors": "visitors",
}  # fmt: skip
LIVE_WORDS = ("coming in", "all well", "fresh", "exact", "every 2 s")


@pytest.mark.parametrize("width", [1440, 390], ids=["wide", "narrow"])
def test_a_server_that_ended_is_not_connected_on_every_screen(
    browser: Browser, tmp_path: Path, width: int
) -> None:
    with (
        served(tmp_path) as desk,
        opened(browser, desk.server.url, desk.token, width=width) as visit,
    ):
        visit.go("")
        visit.see("coming in")
        # A screen that was never visited could not be fetched any more.
        for screen in SCREENS:
            _show(visit, screen)
        visit.see("fresh")
        banner = visit.page.locator(".away-banner")
        expect(banner).to_have_count(0)
        desk.server.stop()
        expect(banner).to_contain_text("Not connected for", timeout=3000)
        for screen in reversed(SCREENS):
            _show(visit, screen)
            expect(banner).to_be_in_viewport()
            expect(visit.page.locator(".badge.ok, .dot.ok")).to_have_count(0)
            text = visit.page.locator("body").inner_text()
            assert [word for word in LIVE_WORDS if word in text] == [], screen
        expect(visit.page.locator(".nav .brand .state")).to_have_text("not connected")
        assert visit.page.title().startswith("Not connected")
        visit.page.locator(".node.idle").first.wait_for()
        visit.shot(f"away-{'wide' if width > 820 else 'narrow'}")
        assert visit.findings() == []
        assert visit.cut_off() == 0


def _show(visit: Visit, screen: str) -> None:
    visit.page.evaluate(f"location.hash = '#/{screen}'")
    expect(visit.page.locator("h1")).to_have_text(SCREENS[screen])
