"""The OpenAPI document from the command line, of a project and of a server of jobs."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import pytest
from typer.testing import Result

from headrace.api.openapi import document as document_of
from headrace.api.route import Route
from headrace.api.routes import ROUTES
from headrace.server.routes import ROUTES as SERVER_ROUTES

from .conftest import document


@pytest.mark.parametrize(
    ("words", "routes"),
    [((), ROUTES), (("project",), ROUTES), (("server",), SERVER_ROUTES)],
    ids=["by default", "project", "server"],
)
def test_the_document_is_that_of_the_table(
    call: Callable[..., Result], words: tuple[str, ...], routes: tuple[Route, ...]
) -> None:
    answered = json.loads(msgspec.json.encode(document_of(routes)))
    assert json.loads(call("openapi", *words).stdout) == answered
    assert document(call("openapi", *words, "--json")) == answered
