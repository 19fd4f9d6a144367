"""Authorization: the one place that decides whether a caller may make a request.

It is between the router and every handler, and uses the matched route, never the text of the URL. A
caller who is not authenticated gets 401, one without permission 403, and neither learns whether the
object exists. Every refusal and every change is logged; all other requests are counted.
tests/api/test_needs.py requests every route as every role, tests/api/test_authorization.py reads
the messages.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response
from structlog.contextvars import bind_contextvars

from headrace.access.access import Access
from headrace.access.audit_log import ALLOWED, ANONYMOUS, REFUSED
from headrace.access.caller import Caller, forbidden
from headrace.access.object import EVERYTHING, Object, object_of
from headrace.access.operation import Operation
from headrace.api import needs
from headrace.api.authentication import CALLER, actor_of, authenticate
from headrace.api.handlers import Api
from headrace.api.needs import Need
from headrace.api.request_metrics import ROUTE
from headrace.api.resources.alerts import AlertRequest
from headrace.api.route import Route
from headrace.api.threads import Threads
from headrace.core.errors import Forbidden, NotFound, Unauthenticated
from headrace.core.meters import REQUESTS

ANONYMOUS_LOGGED_S = 1.0


class AuthorizedRoute(Protocol):
    """The part of a route that authorization reads."""

    @property
    def name(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def needs(self) -> Need: ...


def authorized_endpoint(api: Api, route: Route[Api]) -> AuthorizedEndpoint:
    """The endpoint of a project's route."""
    handler = partial(route.handler, api)
    return AuthorizedEndpoint(api.access, api.quick, route, handler, partial(rule_of_alert, api))


class AuthorizedEndpoint:
    """A route's handler behind authentication and authorization. `rule_of` finds the rule of an
    alert, where the store is open.
    """

    def __init__(
        self,
        access: Access,
        quick: Threads,
        route: AuthorizedRoute,
        handler: Callable[[Request], Awaitable[Response]],
        rule_of: Callable[[str, Caller], Awaitable[Object]] | None = None,
    ) -> None:
        self._access, self._quick, self._route = access, quick, route
        self._handler, self._rule_of = handler, rule_of
        self._anonymous_logged_at = -ANONYMOUS_LOGGED_S

    async def handle(self, request: Request) -> Response:
        request.scope[ROUTE] = self._route.path
        try:
            if self._route.needs.on != needs.PUBLIC:
                await self._authorize(request)
            return await self._handler(request)
        except (Unauthenticated, Forbidden) as error:
            await self._log_refusal(request, error)
            raise
        except NotFound as error:
            _hide_names(error, request)
            raise

    async def _authorize(self, request: Request) -> None:
        caller = authenticate(self._access, request)
        request.scope[CALLER] = caller
        # All later log lines of this request have the user.
        bind_contextvars(user=caller.user)
        need = self._route.needs
        object = await self._object(need, caller, request)
        _check(need, caller, object)
        REQUESTS.labels(caller.user, need.operation, ALLOWED).inc()
        if need.logged:
            log = partial(self._access.log, actor_of(request), self._route.name)
            await self._quick.run(partial(log, str(object), ALLOWED))

    async def _object(self, need: Need, caller: Caller, request: Request) -> Object:
        if need.on == needs.SERVER:
            return EVERYTHING
        if need.on not in needs.PARAMETERS:
            return caller.whole_job
        name: str = request.path_params[need.on]
        if need.on == "alert" and self._rule_of is not None:
            return await self._rule_of(name, caller)
        return object_of(needs.PARAMETERS[need.on], name)

    async def _log_refusal(self, request: Request, error: Unauthenticated | Forbidden) -> None:
        actor = actor_of(request)
        REQUESTS.labels(actor.user, self._route.needs.operation, REFUSED).inc()
        if actor.user == ANONYMOUS and not self._anonymous_due():
            return
        object = error.object if isinstance(error, Forbidden) else ""
        log = partial(self._access.log, actor, self._route.name, object, REFUSED, error.message)
        await self._quick.run(log)

    def _anonymous_due(self) -> bool:
        """Limits the rate: clients without a token could otherwise fill the disk with refusals."""
        now = time.monotonic()
        due = now - self._anonymous_logged_at >= ANONYMOUS_LOGGED_S
        self._anonymous_logged_at = now if due else self._anonymous_logged_at
        return due


async def rule_of_alert(api: Api, alert: str, caller: Caller) -> Object:
    """The rule of an alert."""
    try:
        found = await api.quick.run(partial(api.service.ask, AlertRequest(alert)))
    except NotFound:
        # Only a caller who may read all alerts learns that this one does not exist.
        return caller.whole_job
    return object_of("rule", found.rule)


def _check(need: Need, caller: Caller, object: Object) -> None:
    if need.on == needs.AUTHENTICATED:
        return
    if need.on != needs.NAMED:
        caller.check(need.operation, object)
    elif not caller.allows_somewhere(need.operation):
        raise forbidden(caller.user, need.operation, object, "anything here")


def _hide_names(error: NotFound, request: Request) -> None:
    """Hints list existing names, so only callers who may read all of them get one."""
    caller: Caller | None = request.scope.get(CALLER)
    if caller is not None and not caller.allows(Operation.READ, caller.whole_job):
        error.hint = None
