"""The OpenAPI document says what the table says, and all that it refers to is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from headrace.api.body import ANY
from headrace.api.events import EVENTS_MEDIA
from headrace.api.openapi import document
from headrace.api.route import Route
from headrace.api.routes import ROUTES
from headrace.server.routes import ROUTES as SERVER_ROUTES

from .conftest import EVENTS


@pytest.fixture
def said(client: httpx.Client) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/openapi.json").json()
    return found


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def test_the_document_lists_each_route_and_no_other(said: dict[str, Any]) -> None:
    listed = {(method.upper(), path) for path, item in said["paths"].items() for method in item}
    assert listed == {(route.method, route.path) for route in ROUTES}
    assert len(listed) == len(ROUTES) == len({route.name for route in ROUTES})


def test_the_document_has_the_form_of_openapi(said: dict[str, Any]) -> None:
    assert said["openapi"].startswith("3.1.")
    assert set(said["info"]) == {"title", "version"}
    for reference in _references(said):
        assert reference.removeprefix("#/components/schemas/") in said["components"]["schemas"]


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_each_operation_is_whole(said: dict[str, Any], route: Route) -> None:
    operation = said["paths"][route.path][route.method.lower()]
    assert operation["operationId"] == route.name
    assert operation["summary"].endswith(".")
    parameters = operation.get("parameters", [])
    in_path = [p["name"] for p in parameters if p["in"] == "path"]
    assert in_path == re.findall(r"{(\w+)}", route.path)
    assert all(p["required"] == (p["in"] == "path") and p["schema"] for p in parameters)
    error = operation["responses"]["default"]["content"]["application/json"]["schema"]
    assert error == {"$ref": "#/components/schemas/ErrorBody"}
    assert operation["responses"]["200"]["content"]
    assert ("requestBody" in operation) == bool(route.bodies)


@pytest.mark.parametrize(
    "route",
    [r for r in ROUTES if r.method == "GET" and r.media not in (EVENTS_MEDIA, ANY)],
    ids=lambda r: r.name,
)
def test_each_answer_has_the_fields_that_the_document_requires(
    client: httpx.Client, said: dict[str, Any], route: Route
) -> None:
    path = re.sub(r"{(partition|offset)}", "0", route.path)
    response = client.get(re.sub(r"{\w+}", "clicks", path))
    assert response.status_code == 200
    (media, content), *_ = said["paths"][route.path]["get"]["responses"]["200"]["content"].items()
    assert response.headers["content-type"].startswith(media)
    if "$ref" in content["schema"]:
        schema = said["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
        assert set(schema["required"]) <= set(response.json()) <= set(schema["properties"])


def test_a_field_is_required_where_it_is_always_sent(said: dict[str, Any]) -> None:
    schemas = said["components"]["schemas"]
    # They have defaults. Answers leave out those of AsOf, and no others; requests may.
    assert "rules" in schemas["ProjectStatus"]["required"]
    assert "examples" in schemas["AuditResult"]["required"]
    assert "sampled" not in schemas["AsOf"]["required"]
    assert "limit" not in schemas["SqlRequest"]["required"]


def test_no_two_types_of_a_project_and_a_server_have_one_name() -> None:
    # msgspec writes the module before the name where a name is taken.
    both = document((*ROUTES, *SERVER_ROUTES))["components"]["schemas"]
    assert [name for name in both if "." in name] == []


def test_a_query_is_answered_in_each_form_that_the_document_names(
    client: httpx.Client, said: dict[str, Any]
) -> None:
    forms = said["paths"]["/v1/sql"]["post"]["responses"]["200"]["content"]
    assert len(forms) == 3
    for media in forms:
        response = client.post("/v1/sql", json={"sql": "SELECT 1"}, headers={"Accept": media})
        assert response.headers["content-type"].startswith(media)


def test_key_columns_are_free_parameters(said: dict[str, Any]) -> None:
    parameters = said["paths"]["/v1/views/{view}"]["get"]["parameters"]
    keys = next(p for p in parameters if p["name"] == "keys")
    assert (keys["style"], keys["explode"], keys["schema"]["type"]) == ("form", True, "object")
    limit = next(p for p in parameters if p["name"] == "limit")
    assert limit["schema"] == {"type": "integer", "minimum": 1, "maximum": 10_000}


def test_events_are_taken_in_each_kind_that_the_document_names(
    client: httpx.Client, said: dict[str, Any]
) -> None:
    kinds = said["paths"]["/v1/streams/{stream}/events"]["post"]["requestBody"]["content"]
    for media in kinds:
        response = client.post(EVENTS, content=b"{}", headers={"Content-Type": media})
        assert response.json()["accepted"] == 1
