"""A route: what it takes, what it answers, and what is said of it.

Routes of one subject stand in the file of their handlers; headrace/api/routes.py puts them all in
one table.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from starlette.requests import Request
from starlette.responses import Response

from headrace.api.body import JSON
from headrace.api.handlers import Api
from headrace.api.shapes import Limit

Handler = Callable[[Api, Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    where: Literal["path", "query"]
    type: Any
    meaning: str


@dataclass(frozen=True, slots=True)
class BodyKind:
    """A media type that a route takes, and the type of what it holds."""

    media: str
    type: Any


@dataclass(frozen=True, slots=True)
class Route:
    method: Literal["GET", "POST"]
    path: str
    name: str
    summary: str
    handler: Handler
    response: Any = str  # the type of the answer's body
    media: str = JSON  # the answer's media type
    parameters: tuple[Parameter, ...] = ()
    bodies: tuple[BodyKind, ...] = ()
    body_required: bool = True


STREAM = Parameter("stream", "path", str, "name of a stream")
VIEW = Parameter("view", "path", str, "name of a view")
LIMIT = Parameter("limit", "query", Limit, "rows wanted at most")
