"""A job that is down is answered for from its store, and what would change it is refused."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from run.stopped import make_stopped
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headrace.api.app import secured_app
from headrace.api.authentication import JOB
from headrace.api.authorization import AuthorizedEndpoint
from headrace.api.server import AppServer
from headrace.api.threads import Threads
from headrace.define.layout import Layout
from headrace.define.settings import AccessSettings, HttpSettings, LogSettings
from headrace.run.launch_spec import LaunchSpec
from headrace.run.log_file import log_to_file
from headrace.server.job_routes import JobRoutes
from headrace.server.job_supervisor import JobSnapshot
from headrace.server.stopped_job import JOB_STATE, StoppedJobHandler
from tests.access.users import bearer, open_access, token_of

HTTP = HttpSettings(port=0)
DIED = JobSnapshot("restarting", "it was killed by SIGKILL; restart in 1 s")


class Down:
    """A server for one job that is down."""

    def __init__(self, folder: Path) -> None:
        project = make_stopped(folder)
        self.spec, self.snapshot = LaunchSpec(str(folder), str(project.state)), DIED
        self.access, self.token = open_access(folder, "")
        self.threads = Threads(4)
        self.answers, self.routes = (
            StoppedJobHandler(HTTP, self.access, AccessSettings()),
            JobRoutes(),
        )
        routes = [Route("/{path:path}", self.answer, methods=["GET", "POST"])]
        self.server = AppServer(secured_app(routes, HTTP), HTTP)

    async def answer(self, request: Request) -> Response:
        request.scope[JOB] = "shop"
        route, inner = self.routes.match(request.scope["path"], request)
        handler = partial(self.answers.answer, "shop", self.spec, self.snapshot, route)
        return await AuthorizedEndpoint(self.access, self.threads, route, handler).handle(inner)


@pytest.fixture(scope="module")
def down(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Down]:
    down = Down(tmp_path_factory.mktemp("stopped"))
    down.server.start()
    yield down
    down.server.stop()
    down.access.close()


@pytest.fixture
def client(down: Down) -> Iterator[httpx.Client]:
    down.snapshot = DIED
    user = bearer(down.token)
    with httpx.Client(
        base_url=down.server.url, trust_env=False, timeout=60, headers=user
    ) as client:
        yield client


def rows(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    assert answer.headers[JOB_STATE] == "restarting"
    return list(answer.json()["rows"])


def test_views_and_queries_over_views_are_answered(client: httpx.Client) -> None:
    (total,) = rows(client.get("/v1/views/total"))
    assert rows(client.post("/v1/sql", json={"sql": "SELECT * FROM total"})) == [total]
    assert rows(client.get("/v1/views/hits?limit=1"))


def test_answers_say_how_many_events_of_the_log_they_do_not_contain(client: httpx.Client) -> None:
    answers = (
        client.get("/v1/views/total"),
        client.get("/v1/views/hits/late"),
        client.post("/v1/sql", json={"sql": "SELECT * FROM total"}),
    )
    assert [answer.json()["as_of"]["clicks"].get("behind") for answer in answers] == [4, 4, 4]


def test_the_status_says_that_it_is_on_its_way_back(client: httpx.Client) -> None:
    said = client.get("/v1/status").json()
    assert (said["state"], said["reason"]) == ("restarting", DIED.reason)
    assert said["streams"][0]["name"] == "clicks"


@pytest.mark.parametrize(
    ("path", "holds"),
    [
        ("/v1/streams/clicks/dead-letters", "dead_letters"), ("/v1/topology", "nodes"),
        ("/v1/catalog", "views"), ("/v1/lineage", "columns"), ("/v1/quality", "streams"),
        ("/v1/epochs", "epochs"), ("/v1/views/total/about", "columns"), ("/v1/alerts", "alerts"),
        ("/v1/streams/clicks/events", "events"), ("/v1/views/hits/late", "windows"),
        ("/v1/rules", "rules"), ("/v1/watches", "watches"),
    ],
)  # fmt: skip
def test_what_a_store_knows_is_told_and_nothing_of_the_project_is_run(
    client: httpx.Client, down: Down, path: str, holds: str
) -> None:
    python = Path(down.spec.folder, "functions.py")
    python.write_text("raise SystemExit('this is the code of a team')\n")
    try:
        answer = client.get(path)
    finally:
        python.unlink()
    assert answer.status_code == 200, answer.text
    assert answer.headers[JOB_STATE] == "restarting"
    assert isinstance(answer.json()[holds], list)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/streams/clicks/events"), ("POST", "/v1/views/total/rebuild"),
        ("POST", "/v1/rules"), ("POST", "/v1/audit"), ("GET", "/v1/subscribe"),
        ("GET", "/v1/views/total/why"), ("GET", "/v1/system"),
    ],
)  # fmt: skip
def test_what_only_its_process_could_do_is_refused_for_now(
    client: httpx.Client, method: str, path: str
) -> None:
    answer = client.request(method, path)
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    said = answer.json()
    assert (said["condition"], said["message"]) == ("Restarting", "job 'shop' is restarting")
    assert said["detail"] == f"{DIED.reason}; nothing of this request was accepted."
    assert said["hint"] == "retry after the time in Retry-After."


def test_a_job_that_is_down_tells_each_what_they_may_read(client: httpx.Client, down: Down) -> None:
    eve = bearer(token_of(down.access, "eve-down", "read", on="view:total"))
    assert client.get("/v1/views/total", headers=eve).status_code == 200
    assert client.get("/v1/views/hits", headers=eve).status_code == 403
    asked = {"sql": "SELECT * FROM hits"}
    assert client.post("/v1/sql", json=asked, headers=eve).json()["condition"] == "Forbidden"


def test_streams_are_not_asked_because_that_would_start_spark(client: httpx.Client) -> None:
    answer = client.post("/v1/sql", json={"sql": "SELECT * FROM clicks"})
    assert answer.json()["condition"] == "BadQuery"


@pytest.mark.usefixtures("journal_closed")
def test_answers_for_a_job_leave_the_servers_own_log_alone(
    client: httpx.Client, tmp_path: Path
) -> None:
    log_to_file(Layout(tmp_path), "server", LogSettings())
    assert rows(client.get("/v1/views/total"))
    structlog.get_logger().info("a job is started")
    assert "a job is started" in (tmp_path / "headrace.log").read_text()


def test_a_job_that_is_not_coming_back_says_so_without_a_time(
    client: httpx.Client, down: Down
) -> None:
    down.snapshot = JobSnapshot("paused")
    assert client.get("/v1/status").json()["state"] == "paused"
    answer = client.post("/v1/streams/clicks/events", content=b"{}")
    assert (answer.status_code, answer.headers.get("retry-after")) == (503, None)
    assert answer.json()["message"] == "job 'shop' is paused"
    assert answer.json()["hint"] == "see `headrace job show shop`."


def test_a_job_that_is_stopping_for_good_is_not_waited_for(
    client: httpx.Client, down: Down
) -> None:
    down.snapshot = JobSnapshot("stopping", "it is paused", restarts=False)
    answer = client.post("/v1/streams/clicks/events", content=b"{}")
    assert (answer.status_code, answer.headers.get("retry-after")) == (503, None)
    assert answer.json()["message"] == "job 'shop' is stopping"
    assert client.get("/v1/views/total").headers[JOB_STATE] == "stopping"


def test_a_job_that_is_starting_is_not_said_to_be_starting_again(
    client: httpx.Client, down: Down
) -> None:
    down.snapshot = JobSnapshot("starting", "its process is starting")
    answer = client.post("/v1/streams/clicks/events", content=b"{}")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json()["message"] == "job 'shop' is starting"


def test_a_job_that_never_ran_has_nothing_to_say_and_no_file_is_made(
    tmp_path: Path, client: httpx.Client, down: Down
) -> None:
    before, down.spec = down.spec, LaunchSpec(down.spec.folder, str(tmp_path / "state"))
    try:
        assert client.get("/v1/views/total").status_code == 503
    finally:
        down.spec = before
    assert not (tmp_path / "state").exists()
