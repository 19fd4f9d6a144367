"""What screens show of answers that no small project gives: outages, nine thousand keys, numbers
beyond 2⁵³, noisy rules, many nodes. The server is a real one over a canned project.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from playwright.sync_api import Browser, Request, expect

from tests.api.conftest import ALERT

from . import synthetic
from .conftest import Visit, opened
from .desk import Desk, served

BEGUN = datetime(2026, 11, 16, 6, tzinfo=UTC)
LARGE = 2**53 + 1
KEY = {"type": "BIGINT", "exact": True, "key": True}
NUMBER = {"type": "BIGINT", "exact": True}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with served(tmp_path_factory.mktemp("desk")) as made:
        yield made


@pytest.fixture
def visit(browser: Browser, desk: Desk) -> Iterator[Visit]:
    with opened(browser, desk.server.url, desk.token) as made:
        yield made
        assert made.complaints == []


def _answer(rows: list[dict[str, Any]], columns: dict[str, Any], **more: Any) -> dict[str, Any]:
    as_of = {
        "generation": 1, "boundary": [0], "position": [9], "committed_at": None, "age_ms": 300,
        "watermark": (BEGUN + timedelta(minutes=60)).isoformat(),
    }  # fmt: skip
    said = {"rows": rows, "columns": columns, "as_of": {"clicks": as_of}, "truncated": False}
    return said | {"total": len(rows), "windows": None} | more


def _outage() -> dict[str, Any]:
    """A view of minutes in which nothing came from minute 5 to 50."""
    rows = [
        {
            "w": {
                "start": (BEGUN + timedelta(minutes=minute)).isoformat(),
                "end": (BEGUN + timedelta(minutes=minute + 1)).isoformat(),
            },
            "hits": 40 + minute % 7,
            "ms": 50.0,
        }
        for minute in (*range(5), *range(51, 60))
    ]
    window = {"type": "WINDOW", "exact": True, "key": True}
    columns = {"w": window, "hits": NUMBER, "ms": {"type": "DOUBLE", "exact": True}}
    return _answer(rows, columns, windows={"every_ms": 60_000, "empty": {"hits": 0}})


def _painted(visit: Visit) -> list[int]:
    """How many pixels of the first series' colour each column of the chart has."""
    return visit.page.locator(".chart canvas").first.evaluate(
        """(canvas) => {
            const { width, height } = canvas;
            const style = getComputedStyle(document.documentElement);
            const probe = document.createElement("canvas").getContext("2d");
            probe.fillStyle = style.getPropertyValue("--series-1").trim();
            probe.fillRect(0, 0, 1, 1);
            const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
            const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
            const near = (at) => Math.abs(data[at] - r) + Math.abs(data[at + 1] - g)
                + Math.abs(data[at + 2] - b) < 60 && data[at + 3] > 200;
            return Array.from({ length: width }, (_, x) =>
                Array.from({ length: height }, (_, y) => near(4 * (y * width + x)))
                    .filter(Boolean).length);
        }"""
    )


def _middle(columns: list[int]) -> list[int]:
    """The columns of the outage, which is in the middle of the hour."""
    return columns[len(columns) * 4 // 10 : len(columns) * 6 // 10]


@pytest.mark.parametrize(("measure", "drawn"), [("hits", True), ("ms", False)])
def test_no_line_crosses_an_outage_and_a_count_is_zero_there(
    visit: Visit, desk: Desk, measure: str, drawn: bool
) -> None:
    desk.say(visit.page, {"views/visitors?*": _outage()})
    visit.go(f"#/views/visitors?measure={measure}")
    visit.page.locator(".chart canvas").first.wait_for()
    visit.page.wait_for_timeout(300)
    visit.shot(f"outage-{measure}")
    columns = _painted(visit)
    assert any(columns), "the line is drawn somewhere"
    assert any(_middle(columns)) == drawn


@pytest.mark.parametrize("width", [1440, 390], ids=["wide", "narrow"])
def test_an_answer_is_not_called_exact_while_events_wait(
    browser: Browser, desk: Desk, width: int
) -> None:
    answer = _answer([{"shop": 1, "hits": 1}], {"shop": KEY, "hits": NUMBER})
    with opened(browser, desk.server.url, desk.token, width=width) as visit:
        desk.say(visit.page, {"views/visitors?*": answer, "sql": answer})
        for fragment in ("#/views/visitors", "#/query?sql=SELECT%20*%20FROM%20visitors"):
            for behind, said in ((0, "exact"), (21, "21 behind")):
                answer["as_of"]["clicks"]["behind"] = behind
                visit.go("#/system")
                visit.go(fragment)
                if "query" in fragment:
                    visit.page.get_by_role("button", name="Run").click()
                badge = visit.page.locator(".badge", has_text="exact").or_(
                    visit.page.locator(".badge", has_text="behind")
                )
                expect(badge).to_have_text(said)
                expect(badge).to_be_visible()
        visit.shot(f"behind-{width}")
        assert visit.findings() == []
        assert visit.cut_off() == 0
        assert visit.complaints == []


PROBLEM = {
    "kind": "part", "name": "health", "what": "worker", "message": "a part failed", "since": None,
    "about": "health",
}  # fmt: skip


@pytest.mark.parametrize(
    ("state", "level", "well"),
    [
        ("running", None, True),
        ("running", "warn", False),
        ("degraded", "bad", False),
        ("starting", None, False),
        ("paused", None, False),
    ],
)
def test_all_is_well_only_in_a_project_that_is_running_without_a_problem(
    visit: Visit, desk: Desk, state: str, level: str | None, well: bool
) -> None:
    nodes = [synthetic.node("log", "clicks"), synthetic.node("view", "visitors")]
    synthetic.show(visit.page, {"at": "2026-01-01T00:00:00Z", "nodes": nodes, "edges": []})
    status = visit.page.request.get(f"{desk.server.url}/v1/status").json()
    problems = [PROBLEM | {"level": level}] if level else []
    desk.say(visit.page, {"status": status | {"state": state, "problems": problems}})
    visit.go("#/topology")
    expect(visit.page.locator(".nav .brand .state")).to_have_text(state)
    visit.see("coming in")
    expect(visit.page.get_by_text("all well")).to_have_count(int(well))
    if level:
        visit.see("a part failed")
    if state != "running":
        expect(visit.page.locator(".nav .brand .dot.ok")).to_have_count(0)


def test_a_view_whose_stream_fails_is_not_green(visit: Visit) -> None:
    synthetic.show(visit.page, synthetic.ill())
    visit.go("#/views")
    visit.see("visitors")
    expect(visit.page.locator("tbody .dot.bad")).to_have_count(1)
    expect(visit.page.locator("tbody .dot.ok")).to_have_count(0)


def test_a_full_disk_does_not_last(visit: Visit, desk: Desk) -> None:
    visit.page.route("**/v1/live?*", lambda route: route.fulfill(status=503, body="{}"))
    status = visit.page.request.get(f"{desk.server.url}/v1/status").json()
    full = PROBLEM | {"name": "disk", "about": "disk", "what": "full", "level": "bad"}
    desk.say(visit.page, {"status": status | {"state": "degraded", "problems": [full]}})
    visit.go("#/system")
    lasts = visit.page.locator(".stat", has_text="Disk lasts").locator("dd")
    expect(lasts).to_have_class("bad")
    expect(lasts).to_contain_text("full")


def test_the_largest_of_nine_thousand_rows_are_drawn_and_a_large_key_is_found(
    visit: Visit, desk: Desk
) -> None:
    def view(request: Request) -> dict[str, Any]:
        if "order=-hits" not in request.url:
            return _answer([{"shop": 1, "hits": 1}], {"shop": KEY, "hits": NUMBER}, total=None)
        rows = [{"shop": LARGE - n, "hits": 9000 - n} for n in range(200)]
        return _answer(rows, {"shop": KEY, "hits": NUMBER}, total=9000)

    desk.say(visit.page, {"views/visitors?*": view})
    visit.go("#/views/visitors")
    visit.see("the 12 largest of 9,000")
    visit.see("200 of 9,000 rows, the largest hits first")
    visit.see(f"{LARGE:,}")
    visit.shot("largest")
    assert visit.findings() == []
    with visit.page.expect_request(lambda request: f"/why?shop={LARGE}" in request.url):
        visit.page.locator("tr.press").first.click()
    visit.page.locator("dialog[open]").wait_for()


def test_a_noisy_rule_hides_no_grave_one(visit: Visit, desk: Desk) -> None:
    def alert(rule: str, severity: str, number: int) -> dict[str, Any]:
        changed = msgspec.structs.replace(
            ALERT, id=f"{number:032x}", rule=rule, severity=severity, number=number
        )
        return dict(msgspec.to_builtins(changed))

    def alerts(request: Request) -> dict[str, Any]:
        newest = 544 if "before=" in request.url else 564
        noisy = [alert("noisy", "low", newest - n) for n in range(20)]
        grave = [alert("break_in", "critical", n) for n in (3, 2, 1)]
        at = ALERT.raised_at
        groups = [
            {"rule": "break_in", "severity": "critical", "alerts": 3, "newest_at": at},
            {"rule": "noisy", "severity": "low", "alerts": 560, "newest_at": at},
        ]
        found = noisy if "rule=noisy" in request.url else grave + noisy
        return {"alerts": found, "total": 563, "groups": groups}

    status = visit.page.request.get(f"{desk.server.url}/v1/status").json()
    rules = visit.page.request.get(f"{desk.server.url}/v1/rules").json()["rules"]
    visit.page.route("**/v1/live?*", lambda route: route.fulfill(status=503, body="{}"))
    desk.say(visit.page, {"alerts?*": alerts, "status": status | {"rules": rules}})
    visit.go("#/alerts")
    first = visit.page.locator(".panel").first
    expect(first).to_contain_text("break_in")
    expect(first).to_contain_text("critical, 3 of 3 alerts")
    visit.see("low, 20 of 560 alerts")
    visit.shot("alerts-noisy")
    assert visit.findings() == []
    visit.page.get_by_role("button", name="Older").click()
    visit.see("low, 40 of 560 alerts")


def test_a_link_to_a_query_is_followed_at_any_time_and_edits_stay(visit: Visit) -> None:
    def shown() -> str:
        return visit.page.locator(".cm-content").inner_text().strip()

    visit.go("#/query?sql=SELECT%201")
    visit.page.locator(".cm-content").wait_for()
    assert shown() == "SELECT 1"
    visit.page.evaluate("location.hash = '#/query?sql=SELECT%202'")
    expect(visit.page.locator(".cm-content")).to_have_text("SELECT 2")
    visit.page.locator(".cm-content").click()
    visit.page.keyboard.press("End")
    visit.page.keyboard.type(" + 40")
    visit.page.reload()
    visit.page.locator(".cm-content").wait_for()
    assert shown() == "SELECT 2 + 40"


def test_columns_are_completed_without_an_alias(visit: Visit) -> None:
    visit.go("#/query?sql=SELECT%20%20FROM%20clicks")
    editor = visit.page.locator(".cm-content")
    editor.click()
    visit.page.keyboard.press("Home")
    for _ in "SELECT ":
        visit.page.keyboard.press("ArrowRight")
    visit.page.keyboard.type("us")
    expect(visit.page.locator(".cm-tooltip-autocomplete")).to_contain_text("STRING of clicks")
    visit.shot("completion")


@pytest.mark.parametrize("width", [1440, 390], ids=["wide", "narrow"])
def test_the_texts_of_many_nodes_can_be_read(browser: Browser, desk: Desk, width: int) -> None:
    with opened(browser, desk.server.url, desk.token, width=width) as visit:
        synthetic.show(visit.page, synthetic.project())
        visit.go("#/topology")
        visit.page.locator(".node").first.wait_for()
        visit.page.wait_for_timeout(300)
        visit.shot(f"many-nodes-{width}")
        # By the node, whose width is a whole number of pixels.
        sizes = visit.page.evaluate(
            """[...document.querySelectorAll(".node .name, .node .kind, .node .facts-line")].map(
                (text) => {
                    const node = text.closest(".node");
                    const scale = node.getBoundingClientRect().width / node.offsetWidth;
                    return parseFloat(getComputedStyle(text).fontSize) * scale;
                })"""
        )
        assert len(sizes) == 3 * 23
        assert min(sizes) >= 11
        far = visit.page.locator(".node").last
        far.scroll_into_view_if_needed()
        expect(far).to_be_in_viewport()
        assert visit.cut_off() == 0
        assert visit.page.locator(".edge.batch:not(.key *)").count() >= 1
        assert visit.findings() == []


def test_shares_of_quality_say_what_they_are_of(visit: Visit, desk: Desk) -> None:
    quality = visit.page.request.get(f"{desk.server.url}/v1/quality").json()
    at = "2026-11-16T06:00:00Z"
    place = {"newest_at": at, "partition": 0, "offset": 9}
    reasons = [{"reason": "no JSON", "events": 400}, {"reason": "no user", "events": 74}]
    quality["streams"][0] |= {
        "dead_letters": 474, "records": 19_977, "taken": 19_950, "late": 412, "duplicates": 380,
        "reasons": [one | place for one in reasons],
        "lateness": [{"up_to_ms": 0, "events": 4800}, {"up_to_ms": 1000, "events": 12},
                     {"up_to_ms": None, "events": 3}],
        "balance": {"accepted": 19_977, "events": 15_000, "duplicates": 300, "dead_letters": 233,
                    "in_log": 4444, "off": 0},
    }  # fmt: skip
    desk.say(visit.page, {"quality": quality})
    visit.go("#/quality")
    visit.see("233 archived, 241 still in the log")
    visit.see("474 dead letters")
    visit.see("heights are square roots of the numbers")
    visit.see("of 19,950 records taken by speed")
    visit.shot("quality-canned")
    assert visit.findings() == []
