"""The one place where it is decided whether a request may be answered.

It stands between the router and every handler, and decides on the route that was matched, never on
the text of the URL. Who is not known is told so (401), who may not is told so (403), and neither is
told whether what they asked for exists. Every refusal and every change is logged, all else counted.
tests/api/test_needs.py asks every route as every role, tests/api/test_door.py reads the sentences.
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
from headrace.access.audit_log import ALLOWED, NOBODY, REFUSED
from headrace.access.caller import Caller, forbidden
from headrace.access.object import EVERYTHING, Object, object_of
from headrace.access.operation import Operation
from headrace.api import needs
from headrace.api.asking import CALLER, by, recognised
from headrace.api.handlers import Api
from headrace.api.measured import ROUTE
from headrace.api.needs import Need
from headrace.api.route import Route
from headrace.api.threads import Threads
from headrace.core.errors import Forbidden, NotFound, Unauthenticated
from headrace.core.meters import REQUESTS

NOBODY_LOGGED_S = 1.0


class Guarded(Protocol):
    """A route, as a door sees it."""

    @property
    def name(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def needs(self) -> Need: ...


def door(api: Api, route: Route[Api]) -> Door:
    """The door of a route of a project."""
    handler = partial(route.handler, api)
    return Door(api.access, api.quick, route, handler, partial(rule_of, api))


class Door:
    """Lets requests to one route in, or not. `rule_of` finds the rule that an alert is of, where
    that can be known.
    """

    def __init__(
        self,
        access: Access,
        quick: Threads,
        route: Guarded,
        handler: Callable[[Request], Awaitable[Response]],
        rule_of: Callable[[str, Caller], Awaitable[Object]] | None = None,
    ) -> None:
        self._access, self._quick, self._route = access, quick, route
        self._handler, self._rule_of = handler, rule_of
        self._nobody_at = -NOBODY_LOGGED_S

    async def answer(self, request: Request) -> Response:
        request.scope[ROUTE] = self._route.path
        try:
            if self._route.needs.on != needs.ANYBODY:
                await self._admit(request)
            return await self._handler(request)
        except (Unauthenticated, Forbidden) as error:
            await self._refused(request, error)
            raise
        except NotFound as error:
            _hide_names(error, request)
            raise

    async def _admit(self, request: Request) -> None:
        caller = recognised(self._access, request)
        request.scope[CALLER] = caller
        # Whatever is logged from here on for this request has the user.
        bind_contextvars(user=caller.user)
        need = self._route.needs
        object = await self._object(need, caller, request)
        _check(need, caller, object)
        REQUESTS.labels(caller.user, need.operation, ALLOWED).inc()
        if need.logged:
            note = partial(self._access.log, by(request), self._route.name)
            await self._quick.run(partial(note, str(object), ALLOWED))

    async def _object(self, need: Need, caller: Caller, request: Request) -> Object:
        if need.on == needs.SERVER:
            return EVERYTHING
        if need.on not in needs.PARAMETERS:
            return caller.whole_job
        name: str = request.path_params[need.on]
        if need.on == "alert" and self._rule_of is not None:
            return await self._rule_of(name, caller)
        return object_of(needs.PARAMETERS[need.on], name)

    async def _refused(self, request: Request, error: Unauthenticated | Forbidden) -> None:
        who = by(request)
        REQUESTS.labels(who.user, self._route.needs.operation, REFUSED).inc()
        if who.user == NOBODY and not self._nobody_is_due():
            return
        object = error.object if isinstance(error, Forbidden) else ""
        note = partial(self._access.log, who, self._route.name, object, REFUSED, error.message)
        await self._quick.run(note)

    def _nobody_is_due(self) -> bool:
        """Whoever has no token could otherwise fill the disk with refusals."""
        now = time.monotonic()
        due = now - self._nobody_at >= NOBODY_LOGGED_S
        self._nobody_at = now if due else self._nobody_at
        return due


async def rule_of(api: Api, alert: str, caller: Caller) -> Object:
    """The rule that an alert is of."""
    try:
        found = await api.quick.run(partial(api.service.rulebook.alert, alert))
    except NotFound:
        # Only who may see every alert is told that there is none like this.
        return caller.whole_job
    return object_of("rule", found.rule)


def _check(need: Need, caller: Caller, object: Object) -> None:
    if need.on == needs.KNOWN:
        return
    if need.on != needs.NAMED:
        caller.check(need.operation, object)
    elif not caller.allows_somewhere(need.operation):
        raise forbidden(caller.user, need.operation, object, "anything here")


def _hide_names(error: NotFound, request: Request) -> None:
    """Hints name what there is, so they are for those who may see all of it."""
    caller: Caller | None = request.scope.get(CALLER)
    if caller is not None and not caller.allows(Operation.READ, caller.whole_job):
        error.hint = None
