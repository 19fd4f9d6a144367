"""A route: what it takes, what it answers, what it needs, and what is said of it.

Routes of one subject stand in the file of their handlers; headrace/api/routes.py and
headrace/server/routes.py put them in one table each.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from headrace.api.body import JSON
from headrace.api.needs import Need
from headrace.api.shapes import Limit

A = TypeVar("A", contravariant=True)  # what handlers share: the Api, or a server's Desk


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    where: Literal["path", "query", "header"]
    type: Any
    meaning: str


@dataclass(frozen=True, slots=True)
class BodyKind:
    """A media type that a route takes, and the type of what it holds."""

    media: str
    type: Any


@dataclass(frozen=True, slots=True)
class Route(Generic[A]):
    method: Literal["GET", "POST"]
    path: str
    name: str
    summary: str
    handler: Callable[[A, Request], Awaitable[Response]]
    response: Any = str  # the type of the answer's body
    media: str = JSON  # the answer's media type
    status: int = 200  # of an answer that is none of the errors
    others: tuple[str, ...] = ()  # media types that it has where Accept asks for them
    needs: Need = Need()
    parameters: tuple[Parameter, ...] = ()
    bodies: tuple[BodyKind, ...] = ()
    body_required: bool = True


STREAM = Parameter("stream", "path", str, "name of a stream")
VIEW = Parameter("view", "path", str, "name of a view")
LIMIT = Parameter("limit", "query", Limit, "rows wanted at most")
