"""Two real jobs on one server: one is killed, then the server, then a version is swapped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from run.process import DEFINITIONS, SETTINGS, make_project
from run.waiting import wait

from headrace.run.lock import running_token, running_url
from headrace.server.home import Home
from headrace.server.package import pack
from tests.access.people import bearer

from .conftest import kill_jobs

START_S = 400.0
ROOM = '[room]\ncores = 2\nmemory = "8g"\n[supervise]\npause = "2 seconds"\n'
MORE = DEFINITIONS + "CREATE VIEW double AS SELECT page, sum(2 * n) AS n FROM clicks GROUP BY page;"
EVENTS = [
    {"event_id": f"e{n}", "n": n, "page": f"/{n % 3}", "ts": "2026-11-15T12:00:00Z"}
    for n in range(60)
]
pytestmark = pytest.mark.timeout(2_000)


class Team:
    """What a team does with a server."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.serve()

    def serve(self) -> None:
        command = [sys.executable, "-m", "headrace", "serve", "--home", str(self.home.folder)]
        self.process = subprocess.Popen(
            [*command, "--port", "0", "--json"], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        url = json.loads(self.process.stdout.readline())["url"]
        who = bearer(running_token(self.home.layout) or "")
        self.http = httpx.Client(base_url=url, trust_env=False, timeout=START_S, headers=who)

    def kill(self) -> None:
        self.http.close()
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def submit(self, job: str, folder: Path) -> None:
        asked = f"/v1/jobs?name={job}&cores=1&memory=700m"
        assert self.http.post(asked, content=pack(folder)).status_code == 200

    def job(self, name: str) -> dict[str, Any]:
        return dict(self.http.get(f"/v1/jobs/{name}").json())

    def running(self, name: str) -> int:
        wait(lambda: self.job(name)["state"] == "running", START_S)
        return int(self.job(name)["pid"])

    def send(self, job: str, events: list[dict[str, Any]]) -> httpx.Response:
        body = "\n".join(map(json.dumps, events))
        return self.http.post(f"/v1/jobs/{job}/api/v1/streams/clicks/events", content=body)

    def pages(self, job: str, view: str = "pages") -> httpx.Response:
        return self.http.get(f"/v1/jobs/{job}/api/v1/views/{view}")

    def rows(self, job: str) -> list[tuple[str, int, int]]:
        found = self.pages(job).json().get("rows", [])
        return sorted((row["page"], row["hits"], row["total"]) for row in found)


def answer(events: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
    pages = sorted({event["page"] for event in events})
    numbers = {page: [e["n"] for e in events if e["page"] == page] for page in pages}
    return [(page, len(found), sum(found)) for page, found in numbers.items()]


@pytest.fixture
def team(home: Home) -> Iterator[Team]:
    home.folder.mkdir()
    home.settings.write_text(ROOM)
    team = Team(home)
    yield team
    kill_jobs(home)
    team.kill()


def answers(team: Team, job: str, events: list[dict[str, Any]]) -> Callable[[], bool]:
    return lambda: team.rows(job) == answer(events)


def test_jobs_outlive_kills_of_their_process_and_of_their_server(
    team: Team, home: Home, tmp_path: Path
) -> None:
    folder = make_project(tmp_path / "kills", SETTINGS, DEFINITIONS)
    for job in ("shop", "bank"):
        team.submit(job, folder)
    shop, bank = team.running("shop"), team.running("bank")
    for job in ("shop", "bank"):
        assert team.send(job, EVENTS[:50]).json()["accepted"] == 50
        wait(answers(team, job, EVENTS[:50]), START_S)

    os.kill(shop, signal.SIGKILL)
    down = team.pages("shop")
    assert down.headers["x-headrace-job"] == "restarting"
    assert team.rows("shop") == answer(EVENTS[:50]), "reads are answered meanwhile"
    refused = team.send("shop", EVENTS[50:])
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    wait(lambda: team.job("shop")["pid"] not in (None, shop), START_S)
    again = team.running("shop")
    assert again != shop
    assert team.rows("shop") == answer(EVENTS[:50]), "it comes back with the same answers"
    assert "x-headrace-job" not in team.pages("shop").headers
    assert team.send("shop", EVENTS[50:]).json()["accepted"] == 10
    wait(answers(team, "shop", EVENTS), START_S)
    assert team.running("bank") == bank, "the other never stopped"

    team.kill()
    url = running_url(home.state("shop"))
    pages, own = f"{url}/v1/views/pages", bearer(running_token(home.state("shop")) or "")
    assert httpx.get(pages, trust_env=False, timeout=60).status_code == 401
    assert httpx.get(pages, headers=own, trust_env=False, timeout=60).status_code == 200
    team.serve()
    assert (team.running("shop"), team.running("bank")) == (again, bank)
    assert team.rows("shop") == answer(EVENTS)

    team.http.post("/v1/jobs/bank/cancel")
    (folder / "project.sql").write_text(DEFINITIONS.replace("FROM clicks", "FROM klicks"))
    broken = team.http.post("/v1/jobs/shop/versions", content=pack(folder))
    assert broken.json()["condition"] == "UnknownName"
    assert broken.json()["origin"].startswith("project.sql:")
    assert team.running("shop") == again, "a refused version changes nothing"
    (folder / "project.sql").write_text(MORE)
    assert team.http.post("/v1/jobs/shop/versions", content=pack(folder)).status_code == 200
    assert team.rows("shop") == answer(EVENTS), "the old views are answered while it is swapped"
    wait(lambda: team.pages("shop", "double").status_code == 200, START_S)
    doubled = team.pages("shop", "double").json()["rows"]
    assert sum(row["n"] for row in doubled) == 2 * sum(event["n"] for event in EVENTS)
    team.http.post("/v1/jobs/shop/cancel")
    for job in ("shop", "bank"):
        wait(lambda job=job: team.job(job)["state"] == "cancelled", START_S)
