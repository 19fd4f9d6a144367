"""A route: its handler, parameters, response, needed permission and summary.

Routes of one subject are in the file of their handlers; headrace/api/routes.py and
headrace/server/routes.py are the tables of all routes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from headrace.api.body import JSON
from headrace.api.get_request import GetRequest
from headrace.api.needs import Need
from headrace.api.parameter import Limit, Parameter

A = TypeVar("A", contravariant=True)  # the context of handlers: Api, or ServerApi


@dataclass(frozen=True, slots=True)
class BodyKind:
    """A media type of request bodies, and the type of the body."""

    media: str
    type: Any


@dataclass(frozen=True, slots=True)
class Route(Generic[A]):
    method: Literal["GET", "POST"]
    path: str
    name: str
    summary: str
    handler: Callable[[A, Request], Awaitable[Response]]
    response: Any = str  # the type of the response body
    media: str = JSON  # the media type of the response
    status: int = 200  # of a successful response
    others: tuple[str, ...] = ()  # other media types, selected by Accept
    needs: Need = Need()
    stored: bool = False  # the store is enough to answer it, also while a job's process is down
    parameters: tuple[Parameter, ...] = ()
    bodies: tuple[BodyKind, ...] = ()
    body_required: bool = True
    request_type: type[GetRequest[Any]] | None = (
        None  # of a route that was made from a request type
    )


STREAM = Parameter("stream", "path", str, "name of a stream")
VIEW = Parameter("view", "path", str, "name of a view")
LIMIT = Parameter("limit", "query", Limit, "maximum number of rows")
