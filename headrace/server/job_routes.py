"""The routes of a job, as its server finds them: the route that a path is of, and the request as
the job would see it. So the server asks of a request what the job would ask of it, and POST /v1/sql
is a read.

Some are answered by the server itself: users and sessions, which are its own, and the console,
whose script must not be a job's, since it runs with the rights of whoever looks at it.
tests/server/test_routes.py passes on through them.
"""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.routing import Route as StarletteRoute

from headrace.api.handlers import Api
from headrace.api.openapi import document
from headrace.api.route import Route
from headrace.api.routes import ROUTES
from headrace.core.errors import NotFound


class JobRoutes:
    """All routes of a job."""

    def __init__(self) -> None:
        self._table = [
            (StarletteRoute(route.path, _never, methods=[route.method]), route) for route in ROUTES
        ]

        self.openapi = msgspec.json.encode(document(ROUTES))

    @property
    def all(self) -> list[Route[Api]]:
        return [route for _, route in self._table]

    def found(self, path: str, asked: Request) -> tuple[Route[Api], Request]:
        scope = {**asked.scope, "path": path, "root_path": ""}
        for place, route in self._table:
            match, inner = place.matches(scope)
            if match is Match.FULL:
                return route, Request({**scope, **inner}, asked.receive)
        raise NotFound(
            f"a job has no route {asked.method} {path}",
            hint="GET /v1/jobs/JOB/api/openapi.json lists all routes.",
        )


async def _never(request: Request) -> Response:
    """The place of a route in a table that is only looked through."""
    raise NotImplementedError
