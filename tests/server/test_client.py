"""The command line's way to a server: which one, and what it says there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from run.waiting import wait

from headrace.access.access import Access
from headrace.api.server import AppServer
from headrace.core.errors import Conflict, Unavailable
from headrace.define.settings import HttpSettings
from headrace.run.lock import RunLock
from headrace.server.app import make_server_app
from headrace.server.client import ServerAddress, ServerRemote, find_server
from headrace.server.home import Home
from headrace.server.resources import ResourceRequest
from headrace.server.service import ServerService
from headrace.server.settings import ServerSettings

from .conftest import Site

pytestmark = pytest.mark.process

SETTINGS = ServerSettings(http=HttpSettings(port=0))


@pytest.fixture
def remote(site: Site, access: Access, token: str) -> Iterator[ServerRemote]:
    service = ServerService(site.domain, site.supervisor, site.context.proxy)
    server = AppServer(make_server_app(service, SETTINGS, access), SETTINGS.http)
    server.start()
    with ServerRemote(server.url, token) as remote:
        yield remote
    server.stop()


def test_every_question_and_command_goes_there_and_back(remote: ServerRemote, site: Site) -> None:
    done = remote.submit_job("shop", site.body(), ResourceRequest(2, "1g", "", ["ssd"]))
    assert (done.job.place.cores, done.job.place.tags) == (2, ["ssd"])
    wait(lambda: remote.job("shop").state == "running")
    assert [job.name for job in remote.jobs().jobs] == ["shop"]
    assert remote.apply("shop", site.body(), ResourceRequest(cores=1)).job.version == 2
    assert remote.rollback("shop", None).job.version == 1
    assert remote.rollback("shop", 2).job.version == 2
    assert remote.versions("shop").current == 2
    assert remote.logs("shop", 1)
    assert remote.switch("shop", "cancel").job.desired == "cancelled"
    with pytest.raises(Conflict, match="job 'shop' is cancelled"):
        remote.switch("shop", "pause")


def test_a_command_whose_answer_was_lost_is_sent_again_and_carried_out_once(
    remote: ServerRemote, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.submit()
    send, lost = remote._http.request, []

    def lose_the_first(*arguments: Any, **request: Any) -> httpx.Response:
        answer = send(*arguments, **request)
        if not lost:
            lost.append(answer)
            raise httpx.ReadError("the line broke")
        return answer

    monkeypatch.setattr(remote._http, "request", lose_the_first)
    assert remote.switch("shop", "restart").job.turn == 2


def test_a_server_is_named_or_of_the_environment_or_of_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_SERVER", "http://team:8080")
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path))
    monkeypatch.delenv("HEADRACE_TOKEN", raising=False)
    assert find_server("http://here:1", None) == ServerAddress("http://here:1")
    assert find_server(None, None) == ServerAddress("http://team:8080")
    monkeypatch.delenv("HEADRACE_SERVER")
    with pytest.raises(Unavailable) as raised:
        find_server(None, None)
    assert raised.value.message == f"the server in {tmp_path} is not running"
    assert raised.value.hint == (
        "start it with `headrace serve`, or give the URL of another with --server or "
        "HEADRACE_SERVER."
    )
    lock = RunLock(Home(tmp_path).layout)
    lock.acquire()
    lock.announce("http://127.0.0.1:1", "hr_run")
    here = ServerAddress("http://127.0.0.1:1", "hr_run")
    assert find_server(None, None) == find_server(None, tmp_path) == here
    with here.open() as remote, pytest.raises(Unavailable) as raised:
        remote.jobs()
    assert raised.value.hint == "is it running? start it with `headrace serve`"
    lock.release()
    monkeypatch.setenv("HEADRACE_TOKEN", "hr_said")
    assert find_server("http://here:1", None) == ServerAddress("http://here:1", "hr_said")
