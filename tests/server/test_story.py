"""A real job on a server: it is killed, then the server, then a version is swapped, and at last the
job cannot start any more.

It is one story because Spark takes its time to start: what needs no Spark is told with stand-ins.
"""

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
from tests.access.users import bearer

from .conftest import kill_jobs

START_S = 400.0
DEATHS = 3
ROOM = f"""
[room]
cores = 2
memory = "8g"
[supervise]
pause = "1 second"
deaths_max = {DEATHS}
"""
GOING_ON = ("starting", "restarting")
MORE = DEFINITIONS + "CREATE VIEW double AS SELECT page, sum(2 * n) AS n FROM clicks GROUP BY page;"
EVENTS = [
    {"event_id": f"e{n}", "n": n, "page": f"/{n % 3}", "ts": "2026-11-15T12:00:00Z"}
    for n in range(60)
]
pytestmark = [pytest.mark.timeout(2_000), pytest.mark.process, pytest.mark.prove]


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
        user = bearer(running_token(self.home.layout) or "")
        self.http = httpx.Client(base_url=url, trust_env=False, timeout=START_S, headers=user)

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

    def send_table(self, job: str, events: list[dict[str, Any]], folder: Path) -> dict[str, Any]:
        """Send events as a CSV, by the command line, from a folder that is no project."""
        rows = [",".join(events[0]), *(",".join(map(str, event.values())) for event in events)]
        (folder / "events.csv").write_text("\n".join(rows))
        command = [sys.executable, "-m", "headrace", "--job", job, "send", "clicks", "events.csv"]
        env = os.environ | {"HEADRACE_HOME": str(self.home.folder)}
        said = subprocess.check_output([*command, "--json"], cwd=folder, env=env)
        return dict(json.loads(said))

    def pages(self, job: str, view: str = "pages") -> httpx.Response:
        return self.http.get(f"/v1/jobs/{job}/api/v1/views/{view}")

    def rows(self, job: str) -> list[tuple[str, int, int]]:
        return rows_of(self.pages(job))


def rows_of(said: httpx.Response) -> list[tuple[str, int, int]]:
    found = said.json().get("rows", [])
    return sorted((row["page"], row["hits"], row["total"]) for row in found)


def straight(home: Home, method: str, path: str, content: str | None = None) -> httpx.Response:
    """What the job answers at its own address, to the token that lies in its state."""
    url, own = running_url(home.state("shop")), bearer(running_token(home.state("shop")) or "")
    return httpx.request(
        method, f"{url}{path}", content=content, headers=own, trust_env=False, timeout=60
    )


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


def starts(home: Home, job: str) -> int:
    """How often a process of the job was started."""
    return home.log(job).read_text().count('"kind":"start"')


def told_meanwhile(team: Team, job: str, known: list[list[tuple[str, int, int]]]) -> set[int]:
    """Ask for a view and send one event again and again until the job runs; reads are always
    answered. How the sends were answered.
    """
    sent = set()
    while team.job(job)["state"] != "running":
        read = team.pages(job)
        assert read.status_code == 200, read.text
        assert rows_of(read) in known
        write = team.send(job, EVENTS[50:51])
        sent.add(write.status_code)
        if write.status_code != 200:
            assert (write.status_code, write.headers["retry-after"]) == (503, "1"), write.text
            assert write.json()["message"] in (f"job '{job}' is {how}" for how in GOING_ON)
    return sent


def test_a_job_outlives_kills_of_its_process_and_of_its_server(
    team: Team, home: Home, tmp_path: Path
) -> None:
    folder = make_project(tmp_path / "kills", SETTINGS, DEFINITIONS)
    team.submit("shop", folder)
    first = team.running("shop")
    assert team.send_table("shop", EVENTS[:50], tmp_path)["accepted"] == 50
    wait(answers(team, "shop", EVENTS[:50]), START_S)

    os.kill(first, signal.SIGKILL)
    assert team.pages("shop").headers["x-headrace-job"] == "restarting"
    wait(lambda: team.job("shop")["state"] != "running")
    sent = told_meanwhile(team, "shop", [answer(EVENTS[:50]), answer(EVENTS[:51])])
    assert 503 in sent, "an event is not taken while nobody could take it"
    again = team.running("shop")
    assert again != first
    assert "x-headrace-job" not in team.pages("shop").headers
    assert team.send("shop", EVENTS[50:55]).json()["accepted"] == 5
    wait(answers(team, "shop", EVENTS[:55]), START_S)

    key = {"Idempotency-Key": "once"}
    refused = team.http.post("/v1/jobs/shop/resume", headers=key)
    assert refused.json()["message"] == "job 'shop' is running"
    team.kill()
    epoch = straight(home, "GET", "/v1/epochs").json()["epochs"][0]["number"]
    lines = "\n".join(map(json.dumps, EVENTS[55:]))
    taken = straight(home, "POST", "/v1/streams/clicks/events", lines)
    assert taken.json()["accepted"] == 5, "the job takes events without its server"
    pages = "/v1/views/pages"
    wait(lambda: rows_of(straight(home, "GET", pages)) == answer(EVENTS), START_S)
    assert straight(home, "GET", "/v1/epochs").json()["epochs"][0]["number"] > epoch
    nobody = httpx.get(f"{running_url(home.state('shop'))}{pages}", trust_env=False, timeout=60)
    assert nobody.status_code == 401
    team.serve()
    assert team.running("shop") == again, "it is found, not started"
    assert starts(home, "shop") == 2
    assert team.rows("shop") == answer(EVENTS)

    (folder / "project.sql").write_text(DEFINITIONS.replace("FROM clicks", "FROM klicks"))
    broken = team.http.post("/v1/jobs/shop/versions", content=pack(folder))
    assert broken.json()["condition"] == "UnknownName"
    assert broken.json()["origin"].startswith("project.sql:")
    assert team.running("shop") == again, "a refused version changes nothing"
    (folder / "project.sql").write_text(MORE)
    done = team.http.post("/v1/jobs/shop/versions", content=pack(folder), headers=key)
    team.kill()
    team.serve()
    repeated = team.http.post("/v1/jobs/shop/versions", content=pack(folder), headers=key)
    assert repeated.json() == done.json(), "a command is carried out once, whoever is killed"
    assert team.rows("shop") == answer(EVENTS), "the old views are answered while it is swapped"
    wait(lambda: team.pages("shop", "double").status_code == 200, START_S)
    doubled = team.pages("shop", "double").json()["rows"]
    assert sum(row["n"] for row in doubled) == 2 * sum(event["n"] for event in EVENTS)
    assert (team.job("shop")["version"], starts(home, "shop")) == (2, 3)

    swapped = team.running("shop")
    (home.version("shop", 2) / "headrace.toml").write_text("name = 7")
    os.kill(swapped, signal.SIGKILL)
    wait(lambda: team.job("shop")["state"] == "failed", START_S)
    assert f"the process died {DEATHS} times" in team.job("shop")["reason"]
    assert "because BadProject: headrace.toml does not" in team.job("shop")["reason"]
    assert starts(home, "shop") == 3 + DEATHS - 1
    assert team.http.post("/v1/jobs/shop/cancel").status_code == 200
    wait(lambda: team.job("shop")["state"] == "cancelled", START_S)
