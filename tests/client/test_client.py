"""A client against a real server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pytest

import headrace
from headrace.api.server import HttpServer
from headrace.client.client import Client
from headrace.core.errors import BadProject, NotFound, Unavailable
from headrace.define.layout import Layout
from headrace.define.project import Project
from headrace.define.settings import Settings
from headrace.run.lock import RunLock
from headrace.serving.read import Reader
from headrace.serving.value_types import Window
from tests.api.conftest import Shop
from tests.api.test_events import Place
from tests.serving.bench import Click

HEAVY = ("pyarrow", "pandas", "httpx", "rich", "sqlglot", "pyspark", "headrace.client.client")


@pytest.mark.process
def test_importing_headrace_is_light() -> None:
    code = "import headrace, sys; print(' '.join(sys.modules)); headrace.connect"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(HEAVY) & set(ended.stdout.split())


def test_names_are_completed_and_a_wrong_one_has_a_hint(client: Client) -> None:
    assert list(client.views) == client.views._ipython_key_completions_() == ["visitors"]
    assert "visitors" in dir(client.views)
    assert "clicks" in dir(client.streams)
    assert repr(client.streams) == "streams: clicks"
    assert client.views.visitors.rows() == client.views["visitors"].rows()
    with pytest.raises(NotFound) as raised:
        client.views.visitor  # noqa: B018
    assert raised.value.hint == "did you mean 'visitors'?"
    assert not hasattr(client.views, "_repr_html_")


def test_errors_have_the_sentences_of_the_server(client: Client, shop: Shop) -> None:
    shop.fail = NotFound("there is no view 'x'", hint="available views: visitors.")
    with pytest.raises(NotFound) as raised:
        client.view("x").rows()
    assert raised.value.as_dict() == shop.fail.as_dict()


def test_the_token_goes_along(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("authorization"))
        return httpx.Response(200, json={"ok": True, "reason": ""})

    real = httpx.Client
    transport = httpx.MockTransport(answer)
    monkeypatch.setattr(httpx, "Client", lambda **given: real(transport=transport, **given))
    headrace.connect("http://elsewhere", token="told")._remote.ready()
    headrace.connect("http://elsewhere")._remote.ready()
    monkeypatch.setenv("HEADRACE_TOKEN", "of the environment")
    headrace.connect("http://elsewhere")._remote.ready()
    headrace.connect("http://elsewhere", token="told")._remote.ready()
    assert seen == ["Bearer told", None, "Bearer of the environment", "Bearer told"]


def test_a_folder_is_found_as_the_command_line_finds_it(
    server: HttpServer, token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "headrace.toml").write_text('name = "shop"\n', "utf-8")
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    with pytest.raises(Unavailable, match="is not running") as raised:
        headrace.connect()
    assert "headrace run" in (raised.value.hint or "")
    lock = RunLock(Layout.of(Project(tmp_path, Settings("shop"), ())))
    lock.acquire()
    lock.announce(server.url, token)
    try:
        assert headrace.connect().url == headrace.connect(tmp_path).url == server.url
        with headrace.connect(tmp_path) as client:
            assert client.status().name == "shop", "the run's token goes along"
    finally:
        lock.release()
    with pytest.raises(BadProject):
        headrace.connect("nowhere")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.stop()
    made.access.close()
    made.bench.close()


def test_a_subscription_has_types_and_comes_back(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = int(place.server.url.rpartition(":")[2])

    def answer(self: Shop, *_: Any, **__: Any) -> Any:
        return Reader(place.bench.store.db).view("hits")

    monkeypatch.setattr(Shop, "ask", answer)
    monkeypatch.setattr("headrace.api.subscribe.RETRY_S", 0.01)
    place.bench.send(Click("/a", "ann", 5))
    with headrace.connect(place.server.url, place.token) as client:
        heard = client.subscribe("hits", where="page = '/a'")
        relation, pane = islice(heard, 2)
        assert (relation["event"], pane["event"]) == ("relation", "pane")
        row = pane["data"]["row"]
        assert row["page"] == "/a"
        assert isinstance(row["minute"], Window)
        assert row["minute"].start.tzinfo is UTC
        place.stop()
        place.start(port)
        again = [next(heard), next(heard)]
        assert [event["event"] for event in again] == ["reset", "relation"]
        heard.close()  # type: ignore[attr-defined]
