"""Each way to fail is answered in one shape, and none shows a stack trace."""

from __future__ import annotations

import httpx
import pytest
import structlog

from headrace.api.client import _conditions
from headrace.core.errors import BadQuery, DiskFull, MethodNotAllowed, Overloaded
from headrace.core.origin import Origin

from .conftest import EVENTS, Shop, condition


def test_an_error_is_answered_with_all_its_fields(client: httpx.Client, shop: Shop) -> None:
    shop.fail = BadQuery("no", detail="because", hint="do", origin=Origin("shop.sql", 3))
    response = client.post("/v1/sql", json={"sql": "SELECT"})
    assert response.status_code == 400
    assert response.json() == {
        "condition": "BadQuery", "message": "no", "detail": "because", "hint": "do",
        "origin": "shop.sql:3",
    }  # fmt: skip


def test_each_condition_has_its_own_status(client: httpx.Client, shop: Shop) -> None:
    for name, kind in _conditions().items():
        shop.fail = kind("something is wrong")
        response = client.get("/v1/status")
        assert (response.status_code, condition(response)) == (kind.http_status, name)


def test_a_future_that_fails_is_an_error_too(client: httpx.Client, shop: Shop) -> None:
    from concurrent.futures import Future

    from headrace.ingest.intake import Receipt

    def full(_: Future[Receipt]) -> Future[Receipt]:
        future: Future[Receipt] = Future()
        future.set_exception(DiskFull("the disk is full"))
        return future

    shop.during_submit = full
    response = client.post(EVENTS, content=b"{}")
    assert (response.status_code, condition(response)) == (507, "DiskFull")


@pytest.mark.parametrize(
    "path", ["/v1", "/v2/status", "/v1/status/", "/v1/streams//events", "/x%00"]
)
def test_an_unknown_route_is_not_found(client: httpx.Client, path: str) -> None:
    response = client.get(path)
    assert (response.status_code, condition(response)) == (404, "NotFound")


def test_an_unknown_stream_is_not_found(client: httpx.Client) -> None:
    response = client.post("/v1/streams/click/events", content=b"{}")
    assert (response.status_code, condition(response)) == (404, "NotFound")
    assert response.json()["hint"] == "did you mean 'clicks'?"


@pytest.mark.parametrize("method", ["PATCH", "PUT", "DELETE", "OPTIONS"])
def test_a_wrong_method_is_told_which_is_right(client: httpx.Client, method: str) -> None:
    response = client.request(method, EVENTS)
    assert (response.status_code, condition(response)) == (405, "MethodNotAllowed")
    assert response.headers["allow"] == "POST"
    assert response.json()["message"] == f"{EVENTS} does not allow {method}"


def test_a_defect_is_logged_under_the_id_that_the_client_is_told(
    client: httpx.Client, shop: Shop
) -> None:
    shop.fail = ZeroDivisionError("secret of the house")
    with structlog.testing.capture_logs() as logs:
        response = client.get("/v1/status")
    assert (response.status_code, condition(response)) == (500, "InternalError")
    assert "secret" not in response.text
    assert "Traceback" not in response.text
    request_id = response.headers["x-request-id"]
    assert response.json()["detail"] == f"request {request_id}"
    told = [entry for entry in logs if entry["log_level"] != "debug"]
    assert [(entry["event"], entry["request_id"]) for entry in told] == [
        ("request failed", request_id)
    ]


def test_the_new_conditions_read_as_sentences() -> None:
    overloaded = Overloaded("more than 256 requests are in progress", hint="wait.")
    assert str(overloaded) == "Overloaded: more than 256 requests are in progress\n  hint: wait."
    wrong = MethodNotAllowed("/v1/sql does not allow GET", hint="use POST.")
    assert str(wrong) == "MethodNotAllowed: /v1/sql does not allow GET\n  hint: use POST."
    assert (overloaded.http_status, overloaded.exit_code, wrong.http_status) == (429, 5, 405)
