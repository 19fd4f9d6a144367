"""What those hear who are not let in, and how the door knows who asks."""

from __future__ import annotations

import time

import httpx
import pytest

from headrace.access.access import Access
from headrace.access.audit_log import Wanted
from headrace.access.caller import Caller
from headrace.access.object import object_of
from headrace.access.operation import Operation
from headrace.core.errors import NotFound
from tests.access.people import TEST, bearer, token_of

from .conftest import EVENTS, Shop, condition


@pytest.fixture
def ada(access: Access) -> str:
    """Sees one view."""
    if "ada" in [user.name for user in access.users()]:
        access.remove_user("ada", TEST)
    return token_of(access, "ada", "viewer", on="view:visitors")


def test_one_without_a_token_is_told_how_to_say_who_asks(
    stranger: httpx.Client, shop: Shop
) -> None:
    response = stranger.get("/v1/status")
    assert (response.status_code, condition(response)) == (401, "Unauthenticated")
    assert response.headers["www-authenticate"] == "Bearer"
    assert response.json()["message"] == "it is not known who asks: there is no token"
    assert "Authorization: Bearer TOKEN" in response.json()["hint"]
    assert shop.calls == []


@pytest.mark.parametrize("said", ["Bearer", "Bearer hr_x", "Basic aHJfeA==", "hr_x", "Bearer \xff"])
def test_what_is_no_token_is_refused(stranger: httpx.Client, said: str) -> None:
    headers = {"Authorization": said.encode("latin-1")}
    assert stranger.get("/v1/status", headers=headers).status_code == 401


def test_a_token_is_taken_however_the_scheme_is_written(stranger: httpx.Client, token: str) -> None:
    for said in (f"bearer {token}", f"BEARER  {token}"):
        assert stranger.get("/v1/status", headers={"Authorization": said}).status_code == 200


def test_a_refusal_is_the_same_for_what_there_is_and_what_there_is_not(
    stranger: httpx.Client, shop: Shop, ada: str
) -> None:
    for name in ("sales", "nothing"):
        response = stranger.get(f"/v1/views/{name}", headers=bearer(ada))
        assert (response.status_code, condition(response)) == (403, "Forbidden")
        assert response.json()["message"] == f"ada may not read view '{name}'"
    assert shop.calls == []


def test_a_name_is_compared_without_regard_to_case(stranger: httpx.Client, ada: str) -> None:
    assert stranger.get("/v1/views/VISITORS", headers=bearer(ada)).status_code == 200


def test_a_hint_names_nothing_to_those_who_may_not_see_all(
    stranger: httpx.Client, shop: Shop, ada: str, token: str
) -> None:
    shop.fail = NotFound("there is no view 'visitors'", hint="did you mean 'secrets'?")
    assert stranger.get("/v1/views/visitors", headers=bearer(ada)).json()["hint"] is None
    shop.fail = NotFound("there is no view 'visitors'", hint="did you mean 'secrets'?")
    told = stranger.get("/v1/views/visitors", headers=bearer(token)).json()
    assert told["hint"] == "did you mean 'secrets'?"


def test_refusals_of_nobody_are_logged_once_a_second(
    stranger: httpx.Client, access: Access
) -> None:
    time.sleep(1.0)
    wanted = Wanted(limit=10_000, user="nobody")
    before = len(access.audit_log(wanted))
    for _ in range(5):
        stranger.get("/v1/grants")
    assert len(access.audit_log(wanted)) - before in (1, 2)


def test_the_door_costs_a_send_microseconds(access: Access, token: str) -> None:
    def ask() -> Caller:
        caller = access.who(token)
        caller.check(Operation.SEND, object_of("stream", "clicks"))
        return caller

    ask()
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(1_000):
            ask()
        best = min(best, time.perf_counter() - began)
    assert best / 1_000 < 100e-6, "it is a few microseconds where nothing else runs"


def test_a_sender_needs_no_other_right(stranger: httpx.Client, access: Access, shop: Shop) -> None:
    secret = token_of(access, f"sensor{time.monotonic_ns()}", "send", on="stream:clicks")
    assert stranger.post(EVENTS, content=b"{}", headers=bearer(secret)).status_code == 200
    assert shop.logged() == [b"{}"]
    assert stranger.get("/v1/status", headers=bearer(secret)).status_code == 403
