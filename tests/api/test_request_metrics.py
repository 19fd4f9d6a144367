"""Requests are counted by route, never by path."""

from __future__ import annotations

import httpx
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from headrace.core.meters import REGISTRY

from .conftest import EVENTS, Shop


def _requests(**labels: str) -> float:
    return REGISTRY.get_sample_value("headrace_http_requests_total", labels) or 0.0


def _timed(route: str) -> float:
    return REGISTRY.get_sample_value("headrace_http_request_seconds_count", {"route": route}) or 0.0


def test_a_request_is_counted_under_its_route(client: httpx.Client) -> None:
    route = "/v1/views/{view}"
    before = _requests(method="GET", route=route, status="200"), _timed(route)
    client.get("/v1/views/visitors?url=/a")
    client.get("/v1/views/other")
    after = _requests(method="GET", route=route, status="200"), _timed(route)
    assert [b - a for a, b in zip(before, after, strict=True)] == [2, 2]


def test_what_has_no_route_is_one_and_so_is_an_odd_method(client: httpx.Client) -> None:
    odd = {"method": "unknown", "route": "unknown", "status": "404"}
    labels = [{**odd, "method": "GET"}, odd]
    before = [_requests(**each) for each in labels]
    client.get("/wp-admin/1")
    client.get("/wp-admin/2")
    client.request("PROPFIND", "/pot")
    assert [_requests(**each) for each in labels] == [before[0] + 2, before[1] + 1]


def test_errors_and_defects_have_their_status(client: httpx.Client, shop: Shop) -> None:
    labels = {"method": "GET", "route": "/v1/status", "status": "500"}
    before = _requests(**labels)
    shop.fail = ZeroDivisionError("a defect")
    client.get("/v1/status")
    assert _requests(**labels) == before + 1


def test_what_is_let_in_and_refused_is_counted_for_each_user(client: httpx.Client) -> None:
    def counted(user: str, decision: str) -> float:
        labels = {"user": user, "operation": "read", "decision": decision}
        return REGISTRY.get_sample_value("headrace_requests_total", labels) or 0.0

    before = counted("ann", "allowed"), counted("anonymous", "refused")
    client.get("/v1/status")
    httpx.get(f"{client.base_url}/v1/status", trust_env=False)
    after = counted("ann", "allowed"), counted("anonymous", "refused")
    assert [b - a for a, b in zip(before, after, strict=True)] == [1, 1]


def test_the_access_line_is_at_debug(client: httpx.Client) -> None:
    with capture_logs() as lines:
        client.post(EVENTS, content=b"{}")
    line = next(line for line in lines if line["event"] == "request answered")
    assert (line["log_level"], line["path"], line["status"]) == ("debug", EVENTS, 200)


def test_lines_of_a_request_have_its_user(client: httpx.Client) -> None:
    with capture_logs(processors=[merge_contextvars]) as lines:
        client.get("/v1/status")
    line = next(line for line in lines if line["event"] == "request answered")
    assert (line["user"], bool(line["request_id"])) == ("ann", True)
