"""Matches a request to the routes of a job, and gives the request as the job would see it. So the
server authorizes a request as the job does: POST /v1/sql is a read.

The server handles some of them itself: users and sessions, which belong to the server, and the
console, whose script must not come from a job, because it runs with the permissions of its user.
tests/server/test_routes.py forwards through them.
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

    def match(self, path: str, asked: Request) -> tuple[Route[Api], Request]:
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
    """The handler of routes that are only matched, never called."""
    raise NotImplementedError
