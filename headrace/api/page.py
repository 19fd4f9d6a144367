"""The routes of the console: its page and its assets. A project has them, and a server of jobs has
them for itself and for each of its jobs. tests/console/test_files.py requests each.
"""

from __future__ import annotations

from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response

from headrace.api.body import ANY
from headrace.api.needs import OPEN
from headrace.api.parameter import Parameter
from headrace.api.route import Route
from headrace.console import Console
from headrace.core.errors import NotFound

_FILE = Parameter("file", "path", str, "name of an asset of the console")


class ConsoleHost(Protocol):
    """The context of these handlers."""

    @property
    def console(self) -> Console: ...


async def console(api: ConsoleHost, request: Request) -> Response:
    # Not cached: it links to the assets, whose names change with each build.
    headers = {"Cache-Control": "no-cache"}
    return Response(api.console.page, media_type="text/html", headers=headers)


async def asset(api: ConsoleHost, request: Request) -> Response:
    name = request.path_params["file"]
    found = api.console.assets.get(name)
    if found is None:
        raise NotFound(f"the console has no file '{name}'")
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(found.body, media_type=found.media, headers=headers)


PAGE_ROUTES: tuple[Route[ConsoleHost], ...] = (
    Route(
        "GET", "/", "console", "The web console.",
        console, media="text/html",
        needs=OPEN,
    ),
    Route(
        "GET", "/assets/{file}", "asset",
        "A file of the console; under one name it never changes.",
        asset, media=ANY, parameters=(_FILE,),
        needs=OPEN,
    ),
)  # fmt: skip
