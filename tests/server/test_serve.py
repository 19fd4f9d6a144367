"""A server that is killed leaves its jobs alone, and the next one finds them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from run.waiting import wait

from headrace.core.errors import AlreadyRunning
from headrace.run.lock import holder, running_token, running_url
from headrace.server.home import Home
from headrace.server.package import pack
from headrace.server.serve import serve
from tests.access.users import bearer
from tests.run.modes import readable_by_others

from .conftest import make_project, stand_in

pytestmark = pytest.mark.process

SETTINGS = """
[supervise]
pause = "100 ms"
[room]
cores = 4
memory = "8g"
"""


class Killable:
    """A server in a process of its own."""

    def __init__(self, home: Home) -> None:
        program = Path(__file__).with_name("program.py")
        self.process = subprocess.Popen(
            [sys.executable, str(program), str(home.folder)], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        assert self.url.startswith("http://"), self.url
        wait(lambda: running_token(home.layout) is not None)
        user = bearer(running_token(home.layout) or "")
        self.client = httpx.Client(base_url=self.url, trust_env=False, timeout=60, headers=user)

    def kill(self) -> None:
        self.client.close()
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def submit(self, name: str, project: Path) -> None:
        said = self.client.post(f"/v1/jobs?name={name}", content=pack(project))
        assert said.status_code == 200, said.text

    def running(self, name: str) -> int:
        wait(lambda: self.client.get(f"/v1/jobs/{name}").json()["state"] == "running")
        return int(self.client.get(f"/v1/jobs/{name}").json()["pid"])


@pytest.fixture
def project(home: Home, tmp_path: Path) -> Path:
    home.folder.mkdir()
    home.settings.write_text(SETTINGS)
    return make_project(tmp_path / "project")


@pytest.fixture
def servers(home: Home, project: Path) -> Iterator[list[Killable]]:
    made = [Killable(home)]
    yield made
    for server in made:
        server.kill()


def test_jobs_go_on_without_their_server_and_are_found_by_the_next(
    home: Home, servers: list[Killable], project: Path
) -> None:
    servers[0].submit("shop", project)
    servers[0].submit("bank", project)
    shop, bank = servers[0].running("shop"), servers[0].running("bank")
    # The settings are the test's own file.
    others = [line for line in readable_by_others(home.folder) if not line.endswith("server.toml")]
    assert others == []
    servers[0].kill()
    assert running_url(home.layout) is None
    url = running_url(home.state("shop"))
    assert url is not None
    assert httpx.get(f"{url}/livez", trust_env=False).json()["pid"] == shop
    servers.append(Killable(home))
    assert (servers[1].running("shop"), servers[1].running("bank")) == (shop, bank)
    os.kill(bank, signal.SIGKILL)
    wait(lambda: servers[1].client.get("/v1/jobs/bank").json()["pid"] != bank)
    assert servers[1].running("bank") != bank, "a job that was found is supervised"
    assert servers[1].running("shop") == shop
    assert len((home.state("shop").state / "starts").read_text().splitlines()) == 1


def test_a_command_is_carried_out_once_across_a_kill_of_the_server(
    home: Home, servers: list[Killable], project: Path
) -> None:
    servers[0].submit("shop", project)
    servers[0].running("shop")
    key = {"Idempotency-Key": "restart-1"}
    first = servers[0].client.post("/v1/jobs/shop/restart", headers=key)
    servers[0].kill()
    servers.append(Killable(home))
    again = servers[1].client.post("/v1/jobs/shop/restart", headers=key)
    assert again.content == first.content
    servers[1].running("shop")
    found = holder(home.state("shop"))
    assert found is not None
    assert found.turn == 2


def test_a_kill_at_any_time_of_a_submission_leaves_all_of_it_or_nothing(
    home: Home, servers: list[Killable], project: Path
) -> None:
    key = {"Idempotency-Key": "submit-1"}
    for attempt in range(3):
        killer = threading.Timer(0.02 * 4**attempt, servers[-1].process.kill)
        killer.start()
        with contextlib.suppress(httpx.TransportError):
            servers[-1].client.post("/v1/jobs?name=shop", content=pack(project), headers=key)
        killer.join()
        servers.append(Killable(home))
    said = servers[-1].client.post("/v1/jobs?name=shop", content=pack(project), headers=key).json()
    assert said["job"]["version"] == 1
    found = servers[-1].client.get("/v1/jobs/shop/versions").json()
    assert [version["number"] for version in found["versions"]] == [1]
    assert pack(home.version("shop", 1)) == pack(project)
    servers[-1].running("shop")


def test_one_server_serves_a_home(home: Home, servers: list[Killable]) -> None:
    with pytest.raises(AlreadyRunning) as raised:
        serve(home.folder, port=0, wait=lambda: None, command=stand_in)
    assert raised.value.message == (
        f"a server is already running in {home.folder}, at {servers[0].url}"
    )
    assert raised.value.hint == "use that server, or give another folder with --home."


@pytest.mark.usefixtures("journal_closed")
def test_the_link_that_is_printed_logs_a_browser_in_once(home: Home, project: Path) -> None:
    said: dict[str, dict[str, Any]] = {}
    codes = []

    def visit() -> None:
        url, _, code = said["serving"]["login"].partition("/#login=")
        assert url == said["serving"]["url"]
        with httpx.Client(base_url=url, trust_env=False) as browser:
            assert browser.get("/").status_code == 200
            for _ in range(2):
                codes.append(browser.post("/v1/session", json={"code": code}).status_code)
            assert browser.get("/v1/jobs").json() == {"jobs": []}

    serve(home.folder, port=0, wait=visit, report=said.__setitem__, command=stand_in)
    assert codes == [200, 401]
    assert said["first_token"]["user"] == "admin"


def test_the_domain_names_its_server_and_what_is_in_use(
    servers: list[Killable], project: Path
) -> None:
    servers[0].submit("shop", project)
    (instance,) = servers[0].client.get("/v1/domain").json()["instances"]
    assert (instance["url"], instance["pid"]) == (servers[0].url, servers[0].process.pid)
    assert instance["room"] == {"cores": 4, "memory": 8 << 30, "tags": [], "pools": {}}
    assert (instance["cores_used"], instance["memory_used"]) == (1, 2 << 30)
    servers[0].running("shop")  # so that it has its lock, by which it is found and ended
