"""Every route, asked as every role, on one's own object and on a foreign one; and by those who have
no token, a revoked one or one that has ended.

What each route needs is written down here a second time: a new route fails until it has a row, and
one whose need is changed fails until its row is. Handlers are left out; where they check the names
in a text or list, tests/api/test_named.py and tests/run/test_read_permission.py do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from starlette.responses import Response

from headrace.access.access import Access
from headrace.access.audit_log import AuditLogFilter
from headrace.access.operation import OPERATIONS, Operation, Role
from headrace.access.policy import AccessPolicy
from headrace.access.token import TokenRequest
from headrace.api import app as app_module
from headrace.api.resources.alerts import AlertRequest
from headrace.api.route import Route
from headrace.api.routes import ROUTES
from headrace.api.server import HttpServer
from headrace.core.errors import NotFound
from headrace.core.time import now_us
from headrace.define.settings import HttpSettings
from headrace.serving.alerts import Alert
from tests.access.users import TEST, bearer, token_of

from .conftest import ALERT

# Route -> operation and object. "-": nobody is asked; "known": only who it is; "some": on anything.
NEEDS = {
    "send_events": "send stream", "import_part": "send stream", "read_view": "read view",
    "late": "read view", "why": "read view", "replay": "read view", "subscribe": "read some",
    "status": "read some", "dead_letters": "read stream", "rebuild": "rebuild view",
    "audit": "audit some", "rules": "read some", "add_rules": "define some", "rule": "read rule",
    "rule_history": "read rule", "disable_rule": "define rule", "enable_rule": "define rule",
    "remove_rule": "define rule", "mute_rule": "mute rule", "unmute_rule": "mute rule",
    "watches": "read some",
    "add_watches": "define some", "watch": "read rule", "remove_watch": "define rule",
    "alerts": "read some", "alert": "read rule", "acknowledge_alert": "acknowledge rule",
    "retry_notifications": "mute job",
    "session": "known", "open_session": "-", "end_session": "known", "users": "manage *",
    "add_user": "manage *", "remove_user": "manage *", "tokens": "known", "create_token": "known",
    "revoke_token": "known", "grants": "manage *", "add_grant": "manage *",
    "remove_grant": "manage *", "audit_log": "audit *", "verify_audit_log": "audit *",
    "query": "read some", "query_plan": "read some", "cancel_query": "known", "topology": "known",
    "live": "known", "catalog": "known", "lineage": "known", "quality": "known", "epochs": "known",
    "about_view": "read view", "system": "read job", "events": "read stream",
    "event": "read stream", "alive": "-", "ready": "-",
    "metrics": "read job", "openapi": "-", "console": "-", "asset": "-",
}  # fmt: skip
ALL = AuditLogFilter(limit=10_000)
OWN = {"stream": "stream:own", "view": "view:own", "rule": "rule:own", "job": "job:shop"}
LOGGED = {"rebuild", "define", "mute", "acknowledge", "audit"}


class Service:
    def ask(self, question: AlertRequest) -> Alert:
        """An alert is its rule's, and has the rule's name for an id here."""
        if question.alert == "missing":
            raise NotFound("there is no alert 'missing'")
        return msgspec.structs.replace(ALERT, rule=question.alert)


class Site:
    """The routes with handlers that do nothing, and tokens of all roles."""

    def __init__(self, folder: Path) -> None:
        # Each of hundreds of tests is asked with tokens that are not valid.
        policy = AccessPolicy(failures_max=10**6)
        self.access = Access(folder / "access.db", "shop", policy=policy)
        self.server = HttpServer(Service(), HttpSettings(port=0), self.access)  # type: ignore[arg-type]
        self.server.start()
        self.client = httpx.Client(base_url=self.server.url, trust_env=False, verify=False)
        self.tokens = {
            (role, on): token_of(self.access, f"{role}-{on.replace(':', '.').replace('*', 'all')}",
                                 role, on=on)
            for role in Role
            for on in ("*", *OWN.values(), "stream:other", "view:other", "rule:other", "job:other")
        }  # fmt: skip
        self.nobody = token_of(self.access, "newcomer")
        self.revoked = token_of(self.access, "revoked", "admin")
        self.access.revoke_token(self.access.authenticate_token(self.revoked).token, TEST)
        past = Access(folder / "access.db", "shop", lambda: now_us() - 10_000_000)
        past.add_user("expired", "admin", TEST)
        self.expired = past.create_token(TokenRequest("expired", life="5s"), TEST).secret
        past.close()

    def asks(self, route: Route, token: str | None, name: str = "own") -> int:
        path = re.sub(r"{\w+}", name, route.path)
        headers = bearer(token) if token else {}
        return int(self.client.request(route.method, path, headers=headers).status_code)


async def nothing(api: Any, request: Any) -> Response:
    return Response()


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
    if on == "*" or wanted == "some":
        return True
    return wanted != "*" and on in ("job:shop", OWN[wanted])


def test_every_route_has_a_row_here() -> None:
    assert list(NEEDS) == [route.name for route in ROUTES]


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_each_role_is_let_in_where_its_grant_covers_it(site: Site, route: Route) -> None:
    operation, _, wanted = NEEDS[route.name].partition(" ")
    for (role, on), token in site.tokens.items():
        allowed = not wanted or (
            Operation(operation) in OPERATIONS[role] and covers(on, wanted)
        )  # fmt: skip
        assert site.asks(route, token) == (200 if allowed else 403), (role, on)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_who_is_not_known_is_told_so(site: Site, route: Route) -> None:
    known = 200 if NEEDS[route.name] == "-" else 401
    for token in (None, site.revoked, site.expired, "hr_guessed", ""):
        assert site.asks(route, token) == known
    has_grants_only = 200 if NEEDS[route.name] in ("-", "known") else 403
    assert site.asks(route, site.nobody) == has_grants_only


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_changes_and_refusals_are_logged_and_reads_are_not(site: Site, route: Route) -> None:
    before = len(site.access.audit_log(ALL).entries)
    site.asks(route, site.tokens[Role.ADMIN, "*"])
    operation = NEEDS[route.name].split()[0]
    logged = site.access.audit_log(ALL).entries[: -before or None]
    expected = operation in LOGGED and not NEEDS[route.name].endswith("*")
    assert [(entry.what, entry.decision) for entry in logged] == (
        [(route.name, "allowed")] if expected else []
    )
    if site.asks(route, site.nobody) == 403:
        entry = site.access.audit_log(AuditLogFilter(limit=1)).entries[0]
        assert (entry.user, entry.what, entry.decision) == ("newcomer", route.name, "refused")
        assert entry.request


def test_an_alert_that_is_not_there_is_told_to_those_who_see_all(site: Site) -> None:
    route = next(route for route in ROUTES if route.name == "alert")
    assert site.asks(route, site.tokens[Role.VIEWER, "rule:own"], "missing") == 403
    assert site.asks(route, site.tokens[Role.VIEWER, "*"], "missing") == 200


def test_a_route_that_says_nothing_is_closed() -> None:
    silent = Route("GET", "/x", "x", "x", nothing)
    assert (silent.needs.on, silent.needs.operation) == ("server", Operation.MANAGE)
