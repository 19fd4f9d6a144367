"""Each route of the table, on a real server."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import httpx
import msgspec
import pytest

from headrace.api.resources.dead_letters import DeadLettersRequest
from headrace.api.resources.rows import LateRequest, ViewRequest
from headrace.ingest.intake import Receipt
from headrace.serving.answer import Answer

from .conftest import ANSWER, EVENTS, LATENESS, METRICS, REBUILT, Shop, condition


def test_a_view_is_asked_by_keys_window_and_limit(client: httpx.Client, shop: Shop) -> None:
    response = client.get(
        "/v1/views/visitors",
        params={
            "url": "/a b&c",
            "section": "",
            "from": "2026-01-01",
            "to": "2026-01-02",
            "limit": "5",
        },
    )
    assert msgspec.json.decode(response.content, type=Answer) == ANSWER
    keys = {"url": "/a b&c", "section": ""}
    assert shop.calls == [
        (ViewRequest("visitors", keys, None, "2026-01-01", "2026-01-02", limit=5),)
    ]


def test_a_row_in_memory_is_answered_at_once(
    client: httpx.Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shop, "row", lambda name, keys: ANSWER if keys == {"url": "/a"} else None)
    found = client.get("/v1/views/visitors?url=/a")
    assert msgspec.json.decode(found.content, type=Answer) == ANSWER
    assert shop.calls == []
    for asked in ("url=/b", "url=/a&limit=5", "url=/a&from=2026-01-01", "url=/a&order=url", ""):
        assert client.get(f"/v1/views/visitors?{asked}").status_code == 200
    assert len(shop.calls) == 5, "the rest is asked of the view"


def test_lateness_is_asked_like_the_view(client: httpx.Client, shop: Shop) -> None:
    said = {"url": "/home", "from": "2026-01-01", "to": "2026-01-02", "limit": "5"}
    found = client.get("/v1/views/visitors/late", params=said).json()
    assert shop.calls == [
        (LateRequest("visitors", {"url": "/home"}, None, "2026-01-01", "2026-01-02", 5),)
    ]
    assert found == msgspec.to_builtins(LATENESS)
    assert list(found["windows"][0]) == [
        "key", "on_time", "late", "late_by_max_ms", "late_by_mean_ms",
        "absorbed", "absorbed_by", "waiting",
    ]  # fmt: skip


def test_a_view_is_asked_without_anything(client: httpx.Client, shop: Shop) -> None:
    assert client.get("/v1/views/visitors").status_code == 200
    assert shop.calls == [(ViewRequest("visitors"),)]


@pytest.mark.parametrize("limit", ["0", "10001", "-1", "ten", "", "1.5", "١", "9" * 5000])
def test_a_limit_is_a_number_from_1_to_10000(client: httpx.Client, limit: str) -> None:
    for path in ("/v1/views/visitors", "/v1/streams/clicks/dead-letters"):
        response = client.get(path, params={"limit": limit})
        assert (response.status_code, condition(response)) == (400, "BadRequest")


def test_a_parameter_given_twice_is_refused(client: httpx.Client) -> None:
    assert condition(client.get("/v1/views/visitors?url=a&url=b")) == "BadRequest"


def test_sql_is_asked(client: httpx.Client, shop: Shop) -> None:
    response = client.post("/v1/sql", json={"sql": "SELECT 1", "limit": 7})
    assert msgspec.json.decode(response.content, type=Answer) == ANSWER
    client.post("/v1/sql", json={"sql": "SELECT 2"})
    assert shop.calls == [("sql", "SELECT 1", 7), ("sql", "SELECT 2", None)]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"{}", b'{"sql":1}', b'{"sql":"a","limit":0}', b'{"sql":"a","rows":1}',
     b'{"sql":"\xff"}', b"[" * 100_000],
)  # fmt: skip
def test_a_question_of_another_form_is_refused(client: httpx.Client, body: bytes) -> None:
    response = client.post("/v1/sql", content=body)
    assert (response.status_code, condition(response)) == (400, "BadRequest")


def test_status_says_by_how_much_the_balance_is_off(client: httpx.Client) -> None:
    status = client.get("/v1/status").json()
    assert status["streams"][0]["balance"]["off"] == 1
    assert status["views"][0]["name"] == "visitors"


def test_dead_letters_are_listed(client: httpx.Client, shop: Shop) -> None:
    letters = client.get("/v1/streams/clicks/dead-letters").json()["dead_letters"]
    assert [letter["raw"] for letter in letters] == ["{oops"]
    client.get("/v1/streams/clicks/dead-letters?limit=3")
    assert shop.calls == [(DeadLettersRequest("clicks"),), (DeadLettersRequest("clicks", 3),)]


def test_a_view_is_rebuilt(client: httpx.Client, shop: Shop) -> None:
    assert client.post("/v1/views/visitors/rebuild").json() == msgspec.to_builtins(REBUILT)
    assert shop.calls == [("rebuild", "visitors")]


def test_an_audit_is_of_one_view_or_of_all(client: httpx.Client, shop: Shop) -> None:
    assert client.post("/v1/audit", json={"view": None}).json()["audits"][0]["differences"] == 1
    client.post("/v1/audit", json={"view": "visitors"})
    client.post("/v1/audit")
    assert shop.calls == [("audit", None), ("audit", "visitors"), ("audit", None)]


def test_alive_and_ready_are_two_things(client: httpx.Client, shop: Shop) -> None:
    assert client.get("/livez").json() == {"ok": True}
    assert client.get("/readyz").json() == {"ok": True, "reason": ""}
    shop.able = (False, "the first build of 'visitors' is under way")
    response = client.get("/readyz")
    assert (response.status_code, condition(response)) == (503, "Unavailable")
    assert response.json()["message"] == "the first build of 'visitors' is under way"
    assert client.get("/livez").status_code == 200


def test_metrics_are_given_as_they_are(client: httpx.Client) -> None:
    response = client.get("/metrics")
    assert response.content == METRICS
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")


def test_more_requests_than_allowed_are_told_to_come_back(client: httpx.Client, shop: Shop) -> None:
    held: list[tuple[Future[Receipt], Future[Receipt]]] = []

    def hold(future: Future[Receipt]) -> Future[Receipt]:
        held.append((future, Future()))
        return held[-1][1]

    shop.during_submit = hold
    with ThreadPoolExecutor(2) as pool:
        first = [pool.submit(client.post, EVENTS, content=b"{}") for _ in range(2)]
        while len(held) < 2:
            time.sleep(0.005)
        refused = client.post(EVENTS, content=b"{}")
        others = client.get("/v1/status")
        for taken, answer in held:
            answer.set_result(taken.result())
        assert [f.result().status_code for f in first] == [200, 200]
    assert (refused.status_code, condition(refused)) == (429, "Overloaded")
    assert refused.headers["retry-after"] == "1"
    assert others.status_code == 200
    shop.during_submit = lambda future: future
    assert client.post(EVENTS, content=b"{}").status_code == 200


def test_slow_queries_do_not_keep_status_waiting(
    client: httpx.Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()

    def slow(
        text: str, limit: int | None = None, id: str | None = None, caller: Any = None
    ) -> Answer:
        go.wait(10)
        return ANSWER

    monkeypatch.setattr(shop, "sql", slow)
    with ThreadPoolExecutor(30) as pool:
        queries = [pool.submit(client.post, "/v1/sql", json={"sql": "a"}) for _ in range(30)]
        assert client.get("/v1/status").status_code == 200
        go.set()
        assert {query.result().status_code for query in queries} == {200}
