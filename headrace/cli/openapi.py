"""`headrace openapi`: the OpenAPI document of the HTTP API, without a running server.

It is the document of /openapi.json. tests/cli/test_openapi.py compares the two.
"""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.api.openapi import document
from headrace.api.routes import ROUTES
from headrace.cli.report import Report, unwrapped
from headrace.server.routes import ROUTES as SERVER_ROUTES

_TABLES: dict[str, Any] = {"project": ROUTES, "server": SERVER_ROUTES}


def openapi(of: str) -> Report:
    found = document(_TABLES[of])
    indented = msgspec.json.format(msgspec.json.encode(found), indent=2)
    return Report(found, [unwrapped(indented.decode())])
