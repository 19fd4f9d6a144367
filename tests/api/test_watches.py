"""Each route of watches on a real server, asked by `RemoteService`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from headrace.api.client import RemoteService
from headrace.api.resources.watches import WatchesRequest, WatchRequest
from headrace.api.server import HttpServer
from headrace.core.errors import BadDefinition, NotFound
from headrace.define.settings import HttpSettings
from headrace.run.watch_service import LocalWatchService
from tests.access.users import open_access
from tests.run.answering import Answering
from tests.run.test_watch_service import ENDLESS, WatchDeployer
from tests.serving.watch_bench import WatchBench, watch


@dataclass
class Service(Answering):
    watch_service: LocalWatchService


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[RemoteService, LocalWatchService, httpx.Client]]:
    bench = WatchBench(tmp_path / "serving.db", said=watch("said", 10, "AFTER 9 MATCHES"))
    bench.build()
    book = LocalWatchService(bench.project, bench.store, WatchDeployer(bench), threading.Lock())
    access, token = open_access(tmp_path)
    server = HttpServer(Service(book), HttpSettings(port=0), access)  # type: ignore[arg-type]
    server.start()
    with RemoteService(server.url, token) as remote:
        yield remote, book, remote._http
    server.stop()
    access.close()
    bench.close()


def test_watches_go_there_and_back(
    served: tuple[RemoteService, LocalWatchService, httpx.Client],
) -> None:
    asked, book, http = served
    remote = asked.watch_service
    assert asked.ask(WatchesRequest()).watches == book.watches()
    (added,) = remote.add(watch("more", 50, ENDLESS), "bob")
    assert added == book.watch("more") == asked.ask(WatchRequest("more"))
    assert (added.added_by, asked.ask(WatchesRequest("ended")).watches) == ("ann", [])
    assert remote.remove("more", "bob") == added
    with pytest.raises(NotFound):
        asked.ask(WatchRequest("more"))
    with pytest.raises(BadDefinition):
        remote.remove("said", "bob")
    wrong = http.get("/v1/watches?state=late").json()
    assert wrong["message"] == "the state of a watch must be active or ended, not 'late'"
