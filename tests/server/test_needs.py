"""Every route of a server, asked as every role, on one's own job and on a foreign one.

What each needs is written down here a second time, as in tests/api/test_needs.py. Handlers are left
out, also that which asks what a job's own routes need: tests/server/test_routes.py does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import Response

from headrace.access.access import Access
from headrace.access.operation import OPERATIONS, Operation, Role
from headrace.access.policy import AccessPolicy
from headrace.api.route import Route
from headrace.api.server import AppServer
from headrace.define.settings import HttpSettings
from headrace.server import app as app_module
from headrace.server.routes import ROUTES
from headrace.server.settings import ServerSettings
from tests.access.users import bearer, token_of

# Route -> operation and object. "-": nobody is asked; "known": only who it is.
NEEDS = {
    "send_by_name": "send stream", "view_by_name": "read view", "job_console": "-",
    "pass_on_get": "known", "pass_on_post": "known", "jobs": "known",
    "submit_job": "submit job", "job": "read job",
    "pause_job": "restart job", "resume_job": "restart job", "restart_job": "restart job",
    "cancel_job": "cancel job", "versions": "read job", "apply_version": "submit job",
    "rollback_job": "submit job", "logs": "read job", "names": "known", "domain": "read *",
    "session": "known", "open_session": "-", "end_session": "known", "users": "manage *",
    "add_user": "manage *", "remove_user": "manage *", "tokens": "known", "create_token": "known",
    "revoke_token": "known", "grants": "manage *", "add_grant": "manage *",
    "remove_grant": "manage *", "audit_log": "audit *", "verify_audit_log": "audit *", "alive": "-",
    "metrics": "read *", "openapi": "-",
    "console": "-", "asset": "-",
}  # fmt: skip
OWN = {"stream": "stream:own", "view": "view:own", "job": "job:own"}
SETTINGS = ServerSettings(http=HttpSettings(port=0))


class Proxy:
    async def aclose(self) -> None: ...


class Service:
    """One job, which has what is called like it."""

    proxy = Proxy()

    def job_of(self, kind: str, name: str) -> str:
        return name


async def nothing(api: Any, request: Any) -> Response:
    return Response()


class Site:
    """The routes with handlers that do nothing, and tokens of all roles."""

    def __init__(self, folder: Path) -> None:
        policy = AccessPolicy(failures_max=10**6)
        self.access = Access(folder / "access.db", "", policy=policy)
        service: Any = Service()
        app = app_module.make_server_app(service, SETTINGS, self.access)
        self.server = AppServer(app, SETTINGS.http)
        self.server.start()
        self.client = httpx.Client(base_url=self.server.url, trust_env=False, timeout=10)
        self.tokens = {
            (role, on): token_of(self.access, f"{role}-{number}", role, on=on)
            for role in Role
            for number, on in enumerate(("*", *OWN.values(), "job:other", "view:other"))
        }

    def asks(self, route: Route[Any], token: str) -> int:
        parts = dict.fromkeys(("job", "stream", "view", "user", "token", "file"), "own")
        path = route.path.replace(":path", "").format_map({**parts, "path": "v1/status"})
        query = "?name=own" if route.name == "submit_job" else ""
        answer = self.client.request(route.method, path + query, headers=bearer(token))
        return answer.status_code


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    routes = tuple(replace(route, handler=nothing) for route in ROUTES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app_module, "ROUTES", routes)
        made = Site(tmp_path_factory.mktemp("needs"))
        yield made
        made.client.close()
        made.server.stop()
        made.access.close()


def covers(on: str, wanted: str) -> bool:
    """Whether a grant on this object is one on the wanted kind of object, called `own`."""
    return on == "*" or (wanted != "*" and on in ("job:own", OWN[wanted]))


def test_every_route_has_a_row_here() -> None:
    assert list(NEEDS) == [route.name for route in ROUTES]


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_each_role_is_let_in_where_its_grant_covers_it(site: Site, route: Route[Any]) -> None:
    operation, _, wanted = NEEDS[route.name].partition(" ")
    for (role, on), token in site.tokens.items():
        allowed = not wanted or (
            Operation(operation) in OPERATIONS[role] and covers(on, wanted)
        )  # fmt: skip
        assert site.asks(route, token) == (200 if allowed else 403), (role, on)
