"""A GET request type: one class defines the route.

    class EpochsRequest(GetRequest[Epochs], frozen=True):
        \"\"\"The newest epochs and generations.\"\"\"

        endpoint = Endpoint("/v1/epochs", "epochs", ANY_USER)
        stream: Annotated[str | None, "only epochs and generations of this stream"] = None

Its fields are the parameters of the route, its docstring is the summary, and the type in brackets
is the type of the response. A field that is a dictionary takes all parameters that no other field
has; one without a meaning is no parameter, for `readable` to set. The route, the OpenAPI entry, the
client's request and the console's types are made from the class, so both sides agree: for each
request r of parameters,
    parse_request(type(r), *path_and_query(r)) == r.
tests/api/test_resources.py sends each of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    Protocol,
    TypeVar,
    Union,
    get_args,
    get_origin,
)
from urllib.parse import quote

import msgspec
from msgspec.inspect import BoolType, DictType, IntType, ListType, Type, type_info

from headrace.access.caller import Caller
from headrace.api.needs import Need
from headrace.api.parameter import NUMBER_MAX, Parameter, flag_of, number_of
from headrace.core.errors import BadRequest

A = TypeVar("A")
Q = TypeVar("Q", bound="GetRequest[Any]")
_IN_PATH = re.compile(r"{(\w+)}")
_OTHERS = ("others", "")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The route of a request type, without its parameters and its response."""

    path: str
    name: str
    needs: Need = Need()
    # Whether it may be slow: it then counts against the caller's limit of queries, and clients
    # wait longer for it.
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


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a request type that is a parameter."""

    name: str
    parameter: Parameter
    kind: Type


@cache
def _fields(request_type: type[GetRequest[Any]]) -> Mapping[tuple[str, str], _Field]:
    """By place and name of the parameter, or by _OTHERS."""
    in_path, found = _IN_PATH.findall(request_type.endpoint.path), {}
    for field in msgspec.structs.fields(request_type):
        if get_origin(field.type) is Annotated:
            where: Literal["path", "query"] = "path" if field.encode_name in in_path else "query"
            given = _given(field.type)
            parameter = Parameter(field.encode_name, where, given, get_args(field.type)[-1])
            kind = type_info(given)
            key = _OTHERS if isinstance(kind, DictType) else (where, parameter.name)
            found[key] = _Field(field.name, parameter, kind)
    return found


def parameters_of(request_type: type[GetRequest[Any]]) -> tuple[Parameter, ...]:
    """The parameters of a request type, for its route."""
    return tuple(field.parameter for field in _fields(request_type).values())


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
    fields = _fields(request_type)
    values = {
        field.name: _read(field, path[name])
        for (where, name), field in fields.items()
        if where == "path"
    }
    others: dict[str, str] = {}
    for name, text in query:
        if field := fields.get(("query", name)):
            values[field.name] = _read(field, text, values.get(field.name))
        elif name in others:
            raise BadRequest(
                f"the parameter '{name[:40]}' is given twice", hint="use POST /v1/sql with IN (…)."
            )
        elif _OTHERS in fields:
            others[name] = text
        elif request_type.endpoint.unknown:
            names = ", ".join(name for where, name in fields if where == "query")
            raise BadRequest(
                request_type.endpoint.unknown.format(name=name[:40]),
                hint=f"available parameters: {names}.",
            )
    if others:
        values[fields[_OTHERS].name] = others
    return request_type(**values)


def _read(field: _Field, text: str, before: Any = None) -> Any:
    """The value of a parameter; `before` is its value so far, if it is repeated."""
    name, kind = field.parameter.name, field.kind
    if isinstance(kind, ListType):
        return [*(before or []), text]
    if before is not None:
        raise BadRequest(f"the parameter '{name}' is given twice")
    if isinstance(kind, BoolType):
        return flag_of(name, text)
    if isinstance(kind, IntType):
        return number_of(name, text, kind.ge or 0, kind.le or NUMBER_MAX)
    return text


def path_and_query(request: GetRequest[Any]) -> tuple[str, list[tuple[str, str]]]:
    """The path and the query of a request."""
    fields = _fields(type(request)).values()
    values = {field.parameter.name: getattr(request, field.name) for field in fields}
    path = _IN_PATH.sub(
        lambda name: quote(str(values.pop(name[1])), safe=""), request.endpoint.path
    )
    return path, [pair for name, value in values.items() for pair in _pairs(name, value)]


def _pairs(name: str, value: Any) -> list[tuple[str, str]]:
    """A parameter as names and texts of a query."""
    match value:
        case None:
            return []
        case bool():
            return [(name, str(value).lower())]
        case list():
            return [(name, str(one)) for one in value]
        case dict():
            return list(value.items())
    return [(name, str(value))]
