"""Each route of the server, asked over HTTP, with stand-ins for jobs."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from run.waiting import wait

from headrace.access.access import Access
from headrace.access.delegation import DELEGATED_SCHEME, read_delegated_token, request_line
from headrace.api.needs import PUBLIC
from headrace.console import STATIC
from headrace.core.time import now_us
from headrace.define.settings import HttpSettings
from headrace.run.launch_spec import read_key
from headrace.server.routes import ROUTES
from headrace.server.settings import ServerSettings, SubmitSettings
from tests.access.users import TEST, bearer, token_of

from .conftest import SHOP, Site, serving

pytestmark = pytest.mark.process

LIMITS = SubmitSettings(bytes_max=100_000)
SETTINGS = ServerSettings(http=HttpSettings(port=0), submit=LIMITS)


@pytest.fixture
def client(site: Site, access: Access, token: str) -> Iterator[httpx.Client]:
    with serving(site, access, token, SETTINGS) as client:
        yield client


def done(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def refused(answer: httpx.Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["condition", "message", "detail", "hint", "origin"]
    return str(answer.json()["message"])


def submit(client: httpx.Client, site: Site, name: str = "shop", sql: str = SHOP) -> dict[str, Any]:
    answer = client.post(f"/v1/jobs?name={name}", content=site.body(sql))
    found = done(answer)
    wait(lambda: client.get(f"/v1/jobs/{name}").json()["state"] == "running")
    return found


def test_a_job_is_submitted_listed_and_shown(client: httpx.Client, site: Site) -> None:
    answer = client.post(
        "/v1/jobs?name=shop&cores=2&memory=1g&tags=ssd",
        content=site.body(),
    )
    said = done(answer)
    assert (said["verb"], said["job"]["owner"]) == ("submit", "ada")
    assert said["job"]["place"] == {"cores": 2, "memory": "1g", "pool": "", "tags": ["ssd"]}
    wait(lambda: client.get("/v1/jobs/shop").json()["state"] == "running")
    (listed,) = done(client.get("/v1/jobs"))["jobs"]
    assert listed == done(client.get("/v1/jobs/shop"))
    assert (listed["name"], listed["desired"], listed["version"]) == ("shop", "running", 1)


def test_each_switch_is_a_route(client: httpx.Client, site: Site) -> None:
    submit(client, site)
    for verb, state in (("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")):
        assert done(client.post(f"/v1/jobs/shop/{verb}"))["verb"] == verb
        wait(lambda wanted=state: client.get("/v1/jobs/shop").json()["state"] == wanted)
    assert refused(client.post("/v1/jobs/shop/restart"), 409) == "job 'shop' is cancelled"


def test_versions_are_applied_listed_and_rolled_back(client: httpx.Client, site: Site) -> None:
    submit(client, site)
    other = SHOP.replace("visitors", "guests")
    assert (
        done(client.post("/v1/jobs/shop/versions", content=site.body(other)))["job"]["version"] == 2
    )
    broken = client.post("/v1/jobs/shop/versions", content=site.body("CREATE VIEW BROKEN"))
    assert refused(broken, 400) == "view 'v' reads 'broken'"
    assert broken.json()["origin"] == "shop.sql:3"
    found = done(client.get("/v1/jobs/shop/versions"))
    assert (found["current"], [v["number"] for v in found["versions"]]) == (2, [2, 1])
    assert done(client.post("/v1/jobs/shop/rollback"))["job"]["version"] == 1
    assert done(client.post("/v1/jobs/shop/rollback?version=2"))["job"]["version"] == 2
    assert refused(client.post("/v1/jobs/shop/rollback?version=x"), 400) == (
        "version must be a whole number from 0 to 1000000000, not 'x'"
    )


def test_a_command_sent_twice_with_one_id_is_carried_out_once(
    client: httpx.Client, site: Site
) -> None:
    submit(client, site)
    key = {"Idempotency-Key": "c1"}
    first = done(client.post("/v1/jobs/shop/restart", headers=key))
    assert done(client.post("/v1/jobs/shop/restart", headers=key)) == first
    assert first["command"] == "c1"
    assert first["job"]["turn"] == 2
    assert "another command" in refused(client.post("/v1/jobs/shop/pause", headers=key), 409)
    assert refused(client.post("/v1/jobs/shop/pause", headers={"Idempotency-Key": "a b"}), 400)


def test_a_jobs_own_routes_are_behind_its_name(client: httpx.Client, site: Site) -> None:
    submit(client, site)
    pid = client.get("/v1/jobs/shop").json()["pid"]
    said = done(client.get("/v1/jobs/shop/api/v1/views/x?limit=3"))
    assert (said["pid"], said["path"]) == (pid, "/v1/views/x?limit=3")
    scheme, _, text = said["said"].partition(" ")
    asked = request_line("GET", b"/v1/views/x?limit=3")
    caller = read_delegated_token(text, asked, read_key(site.context.home.state("shop")), now_us())
    assert (scheme, caller.user, caller.job) == (DELEGATED_SCHEME, "ada", "shop")
    said = done(client.get("/v1/jobs/shop/api/v1/views/a%3Fb%20c"))
    assert said["path"] == "/v1/views/a%3Fb%20c"
    said = done(client.post("/v1/jobs/shop/api/v1/streams/clicks/events", content=b"12345"))
    assert (said["path"], said["bytes"]) == ("/v1/streams/clicks/events", 5)
    assert refused(client.get("/v1/jobs/bank/api/livez"), 404) == "there is no job 'bank'"


def test_views_and_streams_are_found_by_their_names(client: httpx.Client, site: Site) -> None:
    submit(client, site)
    submit(client, site, "bank", SHOP.replace("visitors", "accounts"))
    bank = client.get("/v1/jobs/bank").json()["pid"]
    assert done(client.get("/v1/views/accounts?limit=1"))["pid"] == bank
    names = done(client.get("/v1/catalog/names"))["names"]
    assert {"name": "accounts", "kind": "view", "job": "bank"} in names
    sent = client.post("/v1/streams/clicks/events", content=b"{}")
    assert refused(sent, 409) == "more than one job has a stream 'clicks': 'bank' and 'shop'"
    assert refused(client.get("/v1/views/none"), 404) == "no job has a view 'none'"
    done(client.post("/v1/jobs/bank/cancel"))
    assert done(client.post("/v1/streams/clicks/events", content=b"{}"))["bytes"] == 2


def test_a_job_that_is_down_refuses_events_with_the_time_to_try_again(
    client: httpx.Client, site: Site
) -> None:
    submit(client, site)
    (site.state() / "behaviour").write_text("mute")
    os.kill(client.get("/v1/jobs/shop").json()["pid"], signal.SIGKILL)
    wait(lambda: client.get("/v1/jobs/shop").json()["state"] != "running")
    answer = client.post("/v1/streams/clicks/events", content=b"{}")
    assert refused(answer, 503) == "job 'shop' is restarting"
    assert answer.headers["retry-after"] == "1"


def test_a_job_tells_of_its_deaths_until_the_next_command(client: httpx.Client, site: Site) -> None:
    submit(client, site)
    told = client.get("/v1/jobs").json()["jobs"][0]
    assert (told["deaths"], told["last_death"]) == (0, None)
    os.kill(told["pid"], signal.SIGKILL)
    wait(lambda: client.get("/v1/jobs/shop").json()["deaths"] == 1)
    died = client.get("/v1/jobs").json()["jobs"][0]["last_death"]
    assert (died["why"], died["at"] > told["changed_at"]) == ("it was killed by SIGKILL", True)
    done(client.post("/v1/jobs/shop/restart"))
    wait(lambda: client.get("/v1/jobs/shop").json()["deaths"] == 0)


def test_the_end_of_a_log_is_shown(client: httpx.Client, site: Site) -> None:
    submit(client, site)
    (line,) = done(client.get("/v1/jobs/shop/logs?tail=1"))["lines"]
    assert '"kind":"start"' in line
    assert refused(client.get("/v1/jobs/shop/logs?tail=0"), 400) == (
        "tail must be a whole number from 1 to 10000, not '0'"
    )


@pytest.mark.parametrize(
    ("query", "body", "status", "message"),
    [
        ("", b"", 400, "the parameter name is missing"),
        ("?name=Shop", b"", 400, "'Shop' is not a valid job name"),
        ("?name=..%2Fx", b"", 400, "'../x' is not a valid job name"),
        ("?name=shop&cores=two", b"", 400, "cores must be a whole number from 0 to 1"),
        ("?name=shop&name=bank", b"", 400, "a query parameter is given twice"),
        ("?name=shop", b"no gzip", 400, "the body is not valid gzip"),
        ("?name=shop", bytes(100_001), 413, "the project has more than 100000 bytes, packed"),
    ],
)
def test_a_submission_that_is_none_is_refused(
    client: httpx.Client, query: str, body: bytes, status: int, message: str
) -> None:
    assert refused(client.post("/v1/jobs" + query, content=body), status).startswith(message)
    assert done(client.get("/v1/jobs")) == {"jobs": []}


def test_a_place_that_is_not_there_is_refused(client: httpx.Client, site: Site) -> None:
    body = site.body()
    assert "requests 99 cores" in refused(
        client.post("/v1/jobs?name=x&cores=99", content=body), 409
    )
    assert "'gpu'" in refused(client.post("/v1/jobs?name=x&tags=gpu", content=body), 409)
    assert "'no'" in refused(client.post("/v1/jobs?name=x&pool=no", content=body), 409)
    assert refused(client.post("/v1/jobs?name=x&memory=2", content=body), 400)


def test_the_document_lists_each_route(client: httpx.Client) -> None:
    said = done(client.get("/openapi.json"))
    listed = {(method.upper(), path) for path, item in said["paths"].items() for method in item}
    assert listed == {(route.method, route.path) for route in ROUTES}
    assert done(client.get("/livez")) == {"ok": True}


def test_a_page_of_another_site_is_refused(client: httpx.Client) -> None:
    answer = client.post("/v1/jobs/shop/cancel", headers={"Origin": "http://evil.example"})
    assert refused(answer, 403)


def test_whoever_submits_a_job_may_change_and_run_it(
    client: httpx.Client, site: Site, access: Access
) -> None:
    eve = bearer(token_of(access, "eve", "submit"))
    done(client.post("/v1/jobs?name=shop", content=site.body(), headers=eve))
    assert [(grant.may, grant.on) for grant in access.grants("eve")] == [
        ("submit", "*"), ("developer", "job:shop"), ("operator", "job:shop"),
    ]  # fmt: skip
    done(client.post("/v1/jobs/shop/restart", headers=eve))
    submit(client, site, "bank", SHOP.replace("visitors", "accounts"))
    assert refused(client.post("/v1/jobs/bank/restart", headers=eve), 403) == (
        "eve may not restart job 'bank'"
    )
    assert [job["name"] for job in client.get("/v1/jobs", headers=eve).json()["jobs"]] == ["shop"]
    names = client.get("/v1/catalog/names", headers=eve).json()["names"]
    assert {name["job"] for name in names} == {"shop"}


def test_a_route_of_a_job_needs_what_it_needs_there(
    client: httpx.Client, site: Site, access: Access
) -> None:
    submit(client, site)
    eve = bearer(token_of(access, "eve", "read", on="job:shop"))
    api = "/v1/jobs/shop/api"
    done(client.get(f"{api}/v1/views/visitors", headers=eve))
    done(client.post(f"{api}/v1/sql", json={"sql": "SELECT 1"}, headers=eve))
    sent = client.post(f"{api}/v1/streams/clicks/events", content=b"{}", headers=eve)
    assert refused(sent, 403) == "eve may not send stream 'clicks'"
    assert refused(client.get("/v1/jobs/none/api/v1/status", headers=eve), 403)
    assert refused(client.get(f"{api}/v1/nothing"), 404) == "a job has no route GET /v1/nothing"


def test_users_and_the_console_behind_a_job_are_the_servers(
    client: httpx.Client, site: Site, access: Access
) -> None:
    submit(client, site)
    api = "/v1/jobs/shop/api"
    assert done(client.get(f"{api}/v1/users")) == done(client.get("/v1/users"))
    assert done(client.get(f"{api}/v1/session"))["job"] == "shop"
    eve = bearer(token_of(access, "eve", "admin", on="job:shop"))
    assert refused(client.get(f"{api}/v1/users", headers=eve), 403)
    page = httpx.get(f"{client.base_url}{api}/", trust_env=False)
    assert page.headers["content-type"].startswith("text/html"), "before anybody has signed in"
    assert page.headers["content-security-policy"] == (
        "default-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    )


@pytest.mark.parametrize("base", ["", "/v1/jobs/shop/api"])
def test_the_console_is_there_for_the_server_and_for_each_job_before_anybody_has_signed_in(
    client: httpx.Client, base: str
) -> None:
    with httpx.Client(base_url=f"{client.base_url}{base}", trust_env=False) as nobody:
        page = nobody.get("/")
        assert page.headers["content-type"].startswith("text/html")
        assert page.headers["cache-control"] == "no-cache"
        for path in (STATIC / "assets").glob("index*"):
            asset = nobody.get(f"/assets/{path.name}")
            assert asset.content == path.read_bytes()
            assert asset.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert nobody.get("/assets/absent.js").status_code == 404


def test_the_console_of_a_job_is_found_without_the_slash_behind_it(client: httpx.Client) -> None:
    address = client.base_url.join("/v1/jobs/shop/api?theme=dark")
    answer = httpx.get(address, trust_env=False)
    assert (answer.status_code, answer.headers["location"]) == (308, "api/?theme=dark")
    assert answer.headers["cache-control"] == "no-store"
    page = httpx.get(address, trust_env=False, follow_redirects=True)
    assert page.url.path == "/v1/jobs/shop/api/"
    assert page.text == client.get("/").text
    described = client.get("/openapi.json").json()["paths"]["/v1/jobs/{job}/api"]
    assert list(described["get"]["responses"]) == ["308", "default"]


def test_the_console_learns_what_it_speaks_to(client: httpx.Client) -> None:
    server = done(client.get("/openapi.json"))["paths"]
    job = done(client.get("/v1/jobs/shop/api/openapi.json"))["paths"]
    assert ("/v1/jobs" in server, "/v1/topology" in server) == (True, False)
    assert ("/v1/jobs" in job, "/v1/topology" in job) == (False, True), "also while it is down"


def test_no_answer_of_a_job_is_kept_by_a_browser(client: httpx.Client, site: Site) -> None:
    submit(client, site)
    for path in ("/v1/jobs/shop/api/v1/status", "/v1/jobs/shop/api/metrics", "/v1/views/visitors"):
        assert client.get(path).headers["cache-control"] == "no-store"


def test_what_a_job_refuses_is_in_the_servers_audit_log(client: httpx.Client, site: Site) -> None:
    submit(client, site)
    answer = client.get("/v1/jobs/shop/api/v1/alerts/forbidden")
    assert answer.status_code == 403
    entry = client.get("/v1/audit-log?limit=1").json()["entries"][0]
    said = [entry[name] for name in ("user", "what", "object", "decision", "detail")]
    assert said == ["ada", "alert", "job:shop", "refused", "the job refused the request"]
    assert entry["request"] == answer.headers["x-request-id"]


def test_what_a_job_says_runs_nothing_in_a_browser(client: httpx.Client, site: Site) -> None:
    submit(client, site)
    for path in ("/v1/jobs/shop/api/v1/views/visitors", "/v1/views/visitors"):
        policy = client.get(path).headers["content-security-policy"]
        assert policy == (
            "sandbox; default-src 'none'; form-action 'none'; frame-ancestors 'none'; "
            "base-uri 'none'"
        )


def test_users_are_the_servers(client: httpx.Client, access: Access) -> None:
    done(client.post("/v1/users", json={"name": "bob", "role": "viewer"}))
    assert [user["name"] for user in client.get("/v1/users").json()["users"]] == ["ada", "bob"]
    assert done(client.get("/v1/session"))["user"] == "ada"
    bob = bearer(token_of(access, "bob-too", "read"))
    assert refused(client.get("/v1/users", headers=bob), 403)


def test_who_is_not_known_is_told_so(client: httpx.Client, access: Access, token: str) -> None:
    for route in ROUTES:
        path = route.path.replace(":path", "").format_map({
            "job": "shop", "path": "v1/status" if route.method == "GET" else "v1/sql",
            "stream": "s", "view": "v", "user": "u", "token": "t", "file": "f",
        })  # fmt: skip
        answer = httpx.request(route.method, f"{client.base_url}{path}", trust_env=False)
        public = route.needs.on == PUBLIC
        assert (answer.status_code == 401) == (not public), route.name
    access.revoke_token(access.authenticate_token(token).token, TEST)
    assert refused(client.get("/v1/jobs"), 401)
