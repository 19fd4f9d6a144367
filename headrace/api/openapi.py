"""The table of routes as an OpenAPI 3.1 document.

Every schema is derived from the type that is encoded or decoded, so the document cannot differ from
the response. A field of a response is required if it is always sent, also if the type has a default
for it. Every error of every route has one form.
tests/api/test_openapi.py checks the document against the table and the references within it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec.inspect import DataclassType, Field, StructType, Type, multi_type_info

from headrace.api.errors import ErrorBody
from headrace.api.needs import PUBLIC
from headrace.api.parameter import Parameter
from headrace.api.route import Route
from headrace.core.version import __version__

Schemas = dict[int, dict[str, Any]]
_BEARER = {"type": "http", "scheme": "bearer"}
_REFERENCE = "#/components/schemas/{name}"


def document(routes: Sequence[Route[Any]]) -> dict[str, Any]:
    types = [ErrorBody, *(type for route in routes for type in _types(route))]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REFERENCE)
    for name, fields in _sent(route.response for route in routes):
        components[name]["required"] = fields
    given = iter(schemas)
    error = _content("application/json", next(given))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, given, error)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Headrace", "version": __version__},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": _BEARER}},
    }


def _types(route: Route[Any]) -> Iterator[Any]:
    """The types of a route, in the order in which `_operation` takes their schemas."""
    yield route.response
    yield from (parameter.type for parameter in route.parameters)
    yield from (body.type for body in route.bodies)


def _sent(answers: Iterable[Any]) -> Iterator[tuple[str, list[str]]]:
    """The name and the fields of each response type whose fields are always sent."""
    for found in _objects(multi_type_info(answers), set()):
        if not (isinstance(found, StructType) and found.cls.__struct_config__.omit_defaults):
            yield found.cls.__name__, [field.encode_name for field in found.fields]


def _objects(parts: Iterable[Any], seen: set[type]) -> Iterator[StructType | DataclassType]:
    """The types with fields within these, each once."""
    for part in parts:
        if isinstance(part, StructType | DataclassType):
            if part.cls in seen:
                continue
            seen.add(part.cls)
            yield part
        if isinstance(part, Type | Field):
            yield from _objects(msgspec.structs.astuple(part), seen)
        elif isinstance(part, tuple):
            yield from _objects(part, seen)


def _operation(route: Route[Any], given: Iterator[Any], error: dict[str, Any]) -> dict[str, Any]:
    answer = _content(route.media, next(given))
    answer |= {media: {"schema": {"type": "string"}} for media in route.others}
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "security": [] if route.needs.on == PUBLIC else [{"token": []}],
        "responses": {
            str(route.status): {"description": "success", "content": answer},
            "default": {"description": "error", "content": error},
        },
    }
    if route.parameters:
        operation["parameters"] = [_parameter(p, next(given)) for p in route.parameters]
    if route.bodies:
        content = {body.media: {"schema": next(given)} for body in route.bodies}
        operation["requestBody"] = {"required": route.body_required, "content": content}
    return operation


def _content(media: str, schema: Any) -> dict[str, Any]:
    return {media: {"schema": schema}}


def _parameter(parameter: Parameter, schema: dict[str, Any]) -> dict[str, Any]:
    fields = {
        "name": parameter.name,
        "in": parameter.where,
        "required": parameter.where == "path",
        "description": parameter.meaning,
        "schema": schema,
    }
    # Sent as ?column=value for each field, which only this style describes.
    free = {"style": "form", "explode": True} if schema.get("type") == "object" else {}
    return fields | free
