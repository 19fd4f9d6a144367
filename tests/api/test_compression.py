"""What is compressed, for whom, and what never is."""

from __future__ import annotations

import re

import httpx
import msgspec
import pytest

from headrace.api.client import RemoteService
from headrace.api.compression import BYTES_MIN
from headrace.api.export import CSV, PARQUET
from headrace.api.server import HttpServer
from headrace.console import STATIC
from headrace.serving.answer import Answer, ColumnInfo

from . import conftest
from .conftest import ANSWER, Shop

LARGE = msgspec.structs.replace(
    ANSWER,
    rows=[{"url": f"/{number % 7}"} for number in range(5_000)],
    columns={"url": ColumnInfo("STRING", True)},
)


@pytest.fixture
def large(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Every question has this answer."""
    monkeypatch.setattr(conftest, "ANSWER", LARGE)
    return LARGE


def _coded(response: httpx.Response) -> str | None:
    assert response.status_code == 200, response.text
    return response.headers.get("content-encoding")


def test_the_first_page_of_the_console_takes_less_than_half_of_its_files(
    client: httpx.Client,
) -> None:
    page = (STATIC / "index.html").read_text()
    names = re.findall(r'(?:src|href)="\./assets/([^"]+\.(?:js|css))"', page)
    answers = [client.get(f"/assets/{name}") for name in names]
    assert [_coded(answer) for answer in answers] == ["gzip"] * len(names)
    assert all(answer.headers["vary"] == "Accept-Encoding" for answer in answers)
    plain = sum((STATIC / "assets" / name).stat().st_size for name in names)
    assert sum(answer.num_bytes_downloaded for answer in answers) < plain / 2


@pytest.mark.parametrize("accept", ["application/json", CSV])
def test_a_large_answer_is_compressed_for_those_who_accept_it(
    client: httpx.Client, large: Answer, accept: str
) -> None:
    ask = {"sql": "SELECT url FROM visitors"}
    told = client.post("/v1/sql", json=ask, headers={"Accept": accept})
    assert (_coded(told), told.headers["vary"]) == ("gzip", "Accept-Encoding")
    for coding in ("identity", "br", "gzip;q=0", "gzip; q=0.000"):
        headers = {"Accept": accept, "Accept-Encoding": coding}
        plain = client.post("/v1/sql", json=ask, headers=headers)
        assert (_coded(plain), plain.headers["vary"]) == (None, "Accept-Encoding")
        assert plain.content == told.content
        assert plain.num_bytes_downloaded > 10 * told.num_bytes_downloaded


def test_what_is_small_or_compressed_already_is_sent_as_it_is(
    client: httpx.Client, large: Answer
) -> None:
    assert _coded(client.get("/livez")) is None
    ask = {"sql": "SELECT url FROM visitors"}
    assert _coded(client.post("/v1/sql", json=ask, headers={"Accept": PARQUET})) is None


def test_events_are_not_held_back_to_be_compressed(client: httpx.Client) -> None:
    told = client.get("/v1/live?topics=status")
    assert told.headers["content-type"].startswith("text/event-stream")
    assert _coded(told) is None


def test_an_answer_with_a_secret_is_not_compressed(client: httpx.Client) -> None:
    ask = {"on": [f"view:{'a' * 20}{number}" for number in range(100)]}
    made = client.post("/v1/tokens", json=ask)
    assert made.num_bytes_downloaded > BYTES_MIN
    assert (_coded(made), "secret" in made.json()) == (None, True)
    assert made.headers["cache-control"] == "no-store, no-transform"


def test_a_client_on_the_same_machine_asks_for_no_compression(
    server: HttpServer, token: str
) -> None:
    with (
        RemoteService(server.url, token) as near,
        RemoteService("http://stats.example", token) as far,
    ):
        assert near._http.headers["accept-encoding"] == "identity"
        assert "gzip" in far._http.headers["accept-encoding"]
