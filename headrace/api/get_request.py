"""A GET request type: one class defines the route.

    class EpochsRequest(GetRequest[Epochs], frozen=True):
        \"\"\"The newest epochs and generations.\"\"\"

        endpoint = Endpoint("/v1/epochs", "epochs", ANY_USER)
        stream: Annotated[str | None, "only epochs and generations of this stream"] = None

Its fields are the parameters of the route, its docstring is the summary, and the type in brackets
is the type of the response. The route, the OpenAPI entry, the client's request and the console's
types are made from the class, so both sides agree: for each request r,
    parse_request(type(r), *path_and_query(r)) == r.
tests/api/test_resources.py sends each of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Any, ClassVar, Generic, Protocol, TypeVar, Union, get_args, get_origin
from urllib.parse import quote

import msgspec
from msgspec.inspect import IntType, ListType, type_info

from headrace.access.caller import Caller
from headrace.api.needs import Need
from headrace.api.parameter import NUMBER_MAX, Parameter, number_of
from headrace.core.errors import BadRequest

A = TypeVar("A")
Q = TypeVar("Q", bound="GetRequest[Any]")
_IN_PATH = re.compile(r"{(\w+)}")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The route of a request type, without its parameters and its response."""

    path: str
    name: str
    needs: Need = Need()
    # Whether it may be slow: it then counts against the caller's limit of queries.
    slow: bool = False
    # Whether the store is enough to answer it, also while the process of a job is down.
    stored: bool = False
    # The error message for an unknown parameter, with {name}; if empty they are ignored.
    unknown: str = ""


class GetRequest(msgspec.Struct, Generic[A], frozen=True):
    """A request with its parameters, whose response is an A."""

    endpoint: ClassVar[Endpoint]

    def readable(self, service: RequestHandler, caller: Caller) -> A:
        """The response, without what the caller may not read."""
        return service.ask(self)


class RequestHandler(Protocol):
    """Answers GET requests: a project, wherever it runs."""

    def ask(self, request: GetRequest[A]) -> A:
        """The whole response."""


def response_type(request_type: type[GetRequest[A]]) -> type[A]:
    """The type of the response.

    >>> class Many(GetRequest[int], frozen=True): ...
    >>> response_type(Many)
    <class 'int'>
    """
    (base,) = request_type.__orig_bases__  # type: ignore[attr-defined]
    found: type[A] = get_args(base)[0]
    return found


@cache
def parameters_of(request_type: type[GetRequest[Any]]) -> tuple[Parameter, ...]:
    """The parameters of a request type, for its route."""
    in_path = _IN_PATH.findall(request_type.endpoint.path)
    return tuple(
        Parameter(
            field.encode_name,
            "path" if field.encode_name in in_path else "query",
            _given(field.type),
            get_args(field.type)[-1],
        )
        for field in msgspec.structs.fields(request_type)
    )


def _given(annotated: Any) -> Any:
    """The type of a parameter, without the None of an optional one."""
    inner = get_args(annotated)[0]
    if get_origin(inner) in (Union, UnionType):
        (inner,) = (one for one in get_args(inner) if one is not type(None))
        return inner
    return annotated


def parse_request(
    request_type: type[Q], path: Mapping[str, str], query: Iterable[tuple[str, str]]
) -> Q:
    """Parse the parameters of a request; BadRequest if they are not valid. Path parameters are
    never read from the query, because authorization has used the path.
    """
    known = {
        (parameter.where, parameter.name): parameter for parameter in parameters_of(request_type)
    }
    values = {
        name: _read(one, path[name]) for (where, name), one in known.items() if where == "path"
    }
    for name, text in query:
        if ("query", name) in known:
            values[name] = _read(known["query", name], text, values.get(name))
        elif request_type.endpoint.unknown:
            names = ", ".join(name for where, name in known if where == "query")
            raise BadRequest(
                request_type.endpoint.unknown.format(name=name[:40]), hint=f"there are: {names}."
            )
    fields = {field.encode_name: field.name for field in msgspec.structs.fields(request_type)}
    return request_type(**{fields[name]: value for name, value in values.items()})


def _read(parameter: Parameter, text: str, before: Any = None) -> Any:
    """The value of a parameter; `before` is its value so far, if it is repeated."""
    name, kind = parameter.name, type_info(parameter.type)
    if isinstance(kind, ListType):
        return [*(before or []), text]
    if before is not None:
        raise BadRequest(f"the parameter '{name}' is given twice")
    if isinstance(kind, IntType):
        return number_of(name, text, kind.ge or 0, kind.le or NUMBER_MAX)
    return text


def path_and_query(request: GetRequest[Any]) -> tuple[str, list[tuple[str, str]]]:
    """The path and the query of a request."""
    fields = msgspec.structs.fields(request)
    values = {field.encode_name: getattr(request, field.name) for field in fields}
    path = _IN_PATH.sub(
        lambda name: quote(str(values.pop(name[1])), safe=""), request.endpoint.path
    )
    return path, [(name, str(one)) for name, value in values.items() for one in _listed(value)]


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
