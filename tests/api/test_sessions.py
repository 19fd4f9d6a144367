"""A browser logs in with a token or a code, is known by its cookie, and logs out."""

from __future__ import annotations

import httpx
import pytest

from headrace.access.access import Access
from tests.access.users import bearer, token_of

from .conftest import EVENTS, condition


def cookie_of(response: httpx.Response) -> str:
    return response.headers["set-cookie"].partition(";")[0]


def test_a_token_is_exchanged_for_a_cookie_that_no_script_reads(
    stranger: httpx.Client, token: str
) -> None:
    response = stranger.post("/v1/session", json={"token": token})
    assert response.json()["user"] == "ann"
    said = response.headers["set-cookie"]
    port = stranger.base_url.port
    assert said.startswith(f"headrace_{port}=")
    assert {"HttpOnly", "SameSite=strict", "Path=/", "Max-Age=43200"} <= set(said.split("; "))
    assert "Secure" not in said, "there is no TLS here"
    assert token not in response.text + said
    assert stranger.get("/v1/status").status_code == 200
    own = {"Origin": str(stranger.base_url).rstrip("/")}
    assert stranger.post(EVENTS, content=b"{}", headers=own).status_code == 200


def test_a_cookie_does_not_help_a_page_of_another_site(stranger: httpx.Client, token: str) -> None:
    stranger.post("/v1/session", json={"token": token})
    response = stranger.post(EVENTS, content=b"{}", headers={"Origin": "http://evil.example"})
    assert (response.status_code, condition(response)) == (403, "Refused")


def test_a_session_that_was_ended_is_not_known(stranger: httpx.Client, token: str) -> None:
    cookie = cookie_of(stranger.post("/v1/session", json={"token": token}))
    assert stranger.post("/v1/session/end").json() == {"ok": True}
    stranger.cookies.clear()
    assert stranger.get("/v1/session", headers={"Cookie": cookie}).status_code == 401


def test_a_code_works_once(stranger: httpx.Client, access: Access, token: str) -> None:
    code = access.code(token)
    assert stranger.post("/v1/session", json={"code": code}).json()["user"] == "ann"
    again = stranger.post("/v1/session", json={"code": code})
    assert (again.status_code, condition(again)) == (401, "Unauthenticated")


def test_a_session_says_what_one_may_do(stranger: httpx.Client, access: Access) -> None:
    secret = token_of(access, "sees", "viewer", on="view:visitors")
    assert stranger.get("/v1/session", headers=bearer(secret)).json() == {
        "user": "sees", "job": "shop",
        "granted": [{"may": "viewer", "operations": ["read"], "on": "view:visitors"}],
        "may": [], "on": [],
    }  # fmt: skip


@pytest.mark.parametrize("body", [{}, {"token": "a", "code": "b"}])
def test_one_of_both_is_said(stranger: httpx.Client, body: dict[str, str]) -> None:
    assert stranger.post("/v1/session", json=body).status_code == 400


@pytest.mark.parametrize("body", [{"token": "hr_guessed"}, {"code": "guessed"}])
def test_a_guess_opens_nothing(stranger: httpx.Client, body: dict[str, str]) -> None:
    response = stranger.post("/v1/session", json=body)
    assert response.status_code == 401
    assert "set-cookie" not in response.headers
