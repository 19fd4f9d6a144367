"""The server of tests/api, and a client of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import headrace
from headrace.api.server import HttpServer
from headrace.client.client import Client
from headrace.serving.answer import Answer, AsOf, ColumnInfo
from tests.api.conftest import Shop, access, admin, server, shop, standing, token

__all__ = ["Shop", "access", "admin", "server", "shop", "standing", "token"]
MOMENT, LATER = "2026-11-15T19:00:00Z", "2026-11-15T20:00:00Z"
ANSWER = Answer(
    [
        {"url": "<b>/home</b>", "hour": {"start": MOMENT, "end": LATER}, "hits": 2**60, "users": 8},
        {"url": None, "hour": {"start": MOMENT, "end": None}, "hits": None, "users": None},
    ],
    {"clicks": AsOf(3, [5, 5], [6, 5], MOMENT, MOMENT, 430)},
    {
        "url": ColumnInfo("STRING", True),
        "hour": ColumnInfo("WINDOW", True),
        "hits": ColumnInfo("BIGINT", True),
        "users": ColumnInfo("BIGINT", False, 0.0163),
    },
)


@pytest.fixture
def client(server: HttpServer, token: str) -> Iterator[Client]:
    with headrace.connect(server.url, token) as made:
        yield made
