"""Errors of callers who are not authenticated or authorized, and each way to authenticate."""

from __future__ import annotations

import time
from pathlib import Path

import httpx
import pytest

from headrace.access.access import Access
from headrace.access.audit_log import AuditLogFilter
from headrace.access.caller import Caller, Permission
from headrace.access.delegation import (
    DELEGATED_SCHEME,
    KEY_BYTES,
    SIGNATURE_HEADER,
    delegated_token,
    request_line,
    response_signature,
)
from headrace.access.object import object_of
from headrace.access.operation import Operation
from headrace.access.policy import AccessPolicy
from headrace.api.server import HttpServer
from headrace.core.errors import NotFound
from headrace.core.time import now_us
from headrace.define.settings import HttpSettings
from tests.access.users import TEST, bearer, token_of

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
    assert response.json()["message"] == "the request has no token"
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
    wanted = AuditLogFilter(limit=10_000, user="anonymous")
    before = len(access.audit_log(wanted).entries)
    for _ in range(5):
        stranger.get("/v1/grants")
    assert len(access.audit_log(wanted).entries) - before in (1, 2)


def test_the_door_costs_a_send_microseconds(access: Access, token: str) -> None:
    def ask() -> Caller:
        caller = access.authenticate_token(token)
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


def test_whoever_guesses_is_told_to_wait_and_who_is_known_is_not(
    shop: Shop, tmp_path: Path, token: str
) -> None:
    access = Access(tmp_path / "access.db", "shop", policy=AccessPolicy(failures_max=5))
    known, new = (bearer(token_of(access, name, "viewer")) for name in ("ada", "bob"))
    server = HttpServer(shop, HttpSettings(port=0), access)
    server.start()
    try:
        with httpx.Client(base_url=server.url, trust_env=False) as client:
            assert client.get("/v1/session", headers=known).status_code == 200
            guesses = [client.get("/v1/status", headers=bearer(f"hr_{n}")) for n in range(4)]
            guesses.append(client.post("/v1/session", json={"token": "hr_5"}))
            assert {guess.status_code for guess in guesses} == {401}
            for refused in (
                client.get("/v1/status", headers=bearer("hr_6")),
                client.get("/v1/session", headers=new),
                client.post("/v1/session", json={"token": "hr_7"}),
            ):
                assert (refused.status_code, condition(refused)) == (429, "Overloaded")
                assert 1 <= int(refused.headers["retry-after"]) <= 60
            assert client.get("/v1/session", headers=known).status_code == 200
            assert client.get("/livez").status_code == 200
    finally:
        server.stop()
        access.close()


def test_a_job_proves_to_its_server_that_it_is_the_one_that_answers(
    shop: Shop, tmp_path: Path
) -> None:
    key = b"k" * KEY_BYTES
    access = Access(tmp_path / "access.db", "shop", server_key=key)
    server = HttpServer(shop, HttpSettings(port=0), access)
    server.start()
    try:
        with httpx.Client(base_url=server.url, trust_env=False) as client:
            ada = Caller("ada", "t1", "shop", (Permission.of("read", "job:shop"),))
            text = delegated_token(ada, request_line("GET", b"/v1/status"), key, now_us())
            said = {"Authorization": f"{DELEGATED_SCHEME} {text}"}
            # What everybody may ask, a refusal and a route that is not there are proved too.
            for path, status in (("/v1/status", 200), ("/livez", 200), ("/v1/rules", 401),
                                 ("/nowhere", 404)):  # fmt: skip
                answer = client.get(path, headers=said)
                assert (answer.status_code, answer.headers.get(SIGNATURE_HEADER)) == (
                    status, response_signature(text, key),
                ), path  # fmt: skip
            assert SIGNATURE_HEADER not in client.get("/livez").headers
    finally:
        server.stop()
        access.close()
