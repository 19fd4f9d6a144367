"""Where a text or a list names objects, each is checked: on one's own, and on a foreign one."""

from __future__ import annotations

from typing import Any

import httpx
import msgspec
import pytest

from headrace.access.access import Access
from headrace.access.caller import Caller
from headrace.api.get_request import GetRequest
from headrace.api.resources.alerts import AlertsRequest
from headrace.api.resources.rules import RuleList, RulesRequest
from headrace.api.resources.status import StatusRequest
from headrace.api.resources.watches import WatchesRequest, WatchList
from headrace.serving.alerts import Alerts
from tests.access.users import TEST, bearer, token_of

from .conftest import ALERT, ANSWER, PLANNED, RULE, STATUS, WATCH, WHY, Shop


@pytest.fixture(scope="module")
def ada(access: Access) -> dict[str, str]:
    """Reads and audits one view and reads one rule of each kind."""
    secret = token_of(access, "ada-named", "read", "audit", on="view:visitors")
    for on in ("rule:slow", "rule:cheap"):
        access.add_grant("ada-named", "read", on, TEST)
    return bearer(secret)


@pytest.fixture(autouse=True)
def more(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A foreign one of each kind."""
    changed = msgspec.structs.replace
    foreign, usual = changed(RULE, name="foreign"), shop.ask
    alerts = [changed(ALERT, id=name, rule=name) for name in ("slow", "foreign", "cheap")]
    listed = {
        RulesRequest: RuleList([RULE, foreign]),
        WatchesRequest: WatchList([WATCH, changed(WATCH, name="foreign_too")]),
        StatusRequest: changed(STATUS, reason="'foreign' broke", rules=[RULE, foreign]),
    }

    def ask(question: GetRequest[Any]) -> Any:
        if not isinstance(question, AlertsRequest):
            return listed.get(type(question)) or usual(question)
        rules = [question.rule] if question.rule else question.among
        kept = [alert for alert in alerts if rules is None or alert.rule in rules]
        return Alerts(kept, len(kept), [])

    monkeypatch.setattr(shop, "ask", ask)


def names(stranger: httpx.Client, path: str, who: dict[str, str], list_: str) -> list[str]:
    found: dict[str, Any] = stranger.get(path, headers=who).json()
    return [each.get("name") or each["id"] for each in found[list_]]


def test_lists_show_what_one_may_read(
    stranger: httpx.Client, ada: dict[str, str], token: str
) -> None:
    ann = bearer(token)
    assert names(stranger, "/v1/rules", ada, "rules") == ["slow"]
    assert names(stranger, "/v1/rules", ann, "rules") == ["slow", "foreign"]
    assert names(stranger, "/v1/watches", ada, "watches") == ["cheap"]
    assert names(stranger, "/v1/watches", ann, "watches") == ["cheap", "foreign_too"]
    assert names(stranger, "/v1/alerts", ada, "alerts") == ["slow", "cheap"]
    assert names(stranger, "/v1/alerts", ann, "alerts") == ["slow", "foreign", "cheap"]
    assert names(stranger, "/v1/alerts?rule=slow", ada, "alerts") == ["slow"]
    assert stranger.get("/v1/alerts?rule=foreign", headers=ada).status_code == 403


def test_the_status_is_of_what_one_may_read(
    stranger: httpx.Client, ada: dict[str, str], token: str
) -> None:
    status = stranger.get("/v1/status", headers=ada).json()
    assert (status["streams"], status["reason"]) == ([], "")
    assert [view["name"] for view in status["views"]] == ["visitors"]
    assert [rule["name"] for rule in status["rules"]] == ["slow"]
    whole = stranger.get("/v1/status", headers=bearer(token)).json()
    assert (len(whole["streams"]), len(whole["rules"]), whole["reason"]) == (
        1, 2, "'foreign' broke",
    )  # fmt: skip


def test_an_audit_is_of_ones_own_view_or_of_all(
    stranger: httpx.Client, ada: dict[str, str], token: str
) -> None:
    def audit(who: dict[str, str], view: str | None) -> int:
        return stranger.post("/v1/audit", json={"view": view}, headers=who).status_code

    assert [audit(ada, view) for view in ("visitors", "sales", None)] == [200, 403, 403]
    assert [audit(bearer(token), view) for view in ("visitors", "sales", None)] == [200, 200, 200]


def test_whole_events_are_for_those_who_read_the_stream(
    stranger: httpx.Client, access: Access, ada: dict[str, str]
) -> None:
    assert stranger.get("/v1/views/visitors/why", headers=ada).status_code == 403
    assert stranger.get("/v1/views/visitors/replay", headers=ada).status_code == 200
    access.add_grant("ada-named", "read", "stream:clicks", TEST)
    response = stranger.get("/v1/views/visitors/why", headers=ada)
    assert response.json() == msgspec.to_builtins(WHY)
    access.remove_grant("ada-named", "read", "stream:clicks", TEST)


def test_the_service_is_told_who_asks_a_query(
    stranger: httpx.Client, shop: Shop, ada: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def sql(text: str, limit: int | None, id: str | None, caller: Caller) -> Any:
        asked.append(caller.user)
        return ANSWER

    def plan(text: str, caller: Caller) -> Any:
        asked.append(caller.user)
        return PLANNED

    def cancel(id: str, caller: Caller) -> bool:
        asked.append(caller.user)
        return True

    monkeypatch.setattr(shop, "sql", sql)
    monkeypatch.setattr(shop, "query_plan", plan)
    monkeypatch.setattr(shop, "cancel", cancel)
    for path, body in (
        ("", {"sql": "SELECT 1"}),
        ("/plan", {"sql": "SELECT 1"}),
        ("/a/cancel", {}),
    ):
        assert stranger.post(f"/v1/sql{path}", json=body, headers=ada).status_code == 200
    assert asked == ["ada-named"] * 3


def test_a_subscription_is_to_a_view_that_one_may_read(
    stranger: httpx.Client, shop: Shop, ada: dict[str, str]
) -> None:
    def subscribe(view: str) -> tuple[int, str]:
        params = {"sql": f"SUBSCRIBE TO {view}"}
        response = stranger.get("/v1/subscribe", params=params, headers=ada)
        return response.status_code, response.json()["message"]

    assert subscribe("visitors") == (404, "there is no view"), "the shop has none to hear"
    assert subscribe("sales") == (403, "ada-named may not read 'sales'")
    assert [call[0] for call in shop.calls] == ["subscribe"]
