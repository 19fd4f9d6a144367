"""Responses are compressed with gzip if the client accepts it and the body is large enough.

Not compressed: server-sent events, which must be sent at once; bodies below `BYTES_MIN`; formats
that are compressed already; and responses with `Cache-Control: no-transform`. A response with a
secret has that header: the length of a compressed body with a secret beside text of the caller's
choice reveals the secret to an observer (BREACH). Starlette compresses large bodies in a thread.
tests/api/test_compression.py checks each on a real server.
"""

from __future__ import annotations

import zlib

from starlette.datastructures import Headers
from starlette.middleware.gzip import (
    DEFAULT_EXCLUDED_CONTENT_TYPES,
    GZipResponder,
    IdentityResponder,
)
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.api.export import PARQUET

BYTES_MIN = 1024
# Level 9 takes several times as long and saves another 1 to 4 %.
LEVEL = 5
_EXCLUDED = (*DEFAULT_EXCLUDED_CONTENT_TYPES, PARQUET)
SECRET = {"Cache-Control": "no-store, no-transform"}  # headers of a response with a secret


class Compression:
    """Middleware that compresses what may be compressed."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] == "http":
            app = _Gzip(app) if accepts_gzip(Headers(scope=scope)) else _plain(app)
        await app(scope, receive, send)


def _plain(app: ASGIApp) -> IdentityResponder:
    """Adds Vary, because a client that accepts gzip gets another response."""
    return IdentityResponder(app, BYTES_MIN, exclude_content_types=_EXCLUDED)


class _Gzip(GZipResponder):
    def __init__(self, app: ASGIApp) -> None:
        super().__init__(app, BYTES_MIN, LEVEL, exclude_content_types=_EXCLUDED)
        self._untouched = False

    async def send_with_compression(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._untouched = _stays(Headers(raw=message["headers"]))
        await (self.send if self._untouched else super().send_with_compression)(message)


def _stays(headers: Headers) -> bool:
    """Whether a response must not be compressed, or is too small by its Content-Length."""
    if "no-transform" in headers.get("cache-control", ""):
        return True
    return int(headers.get("content-length", BYTES_MIN)) < BYTES_MIN


def compressed(body: bytes) -> bytes:
    """A whole body, as the middleware compresses it."""
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


def accepts_gzip(headers: Headers) -> bool:
    """Whether a client accepts gzip: listed, and not with q=0.

    >>> accepts_gzip(Headers({"accept-encoding": "br, GZIP;q=0.5"}))
    True
    >>> accepts_gzip(Headers({"accept-encoding": "gzip;q=0.0, *"})), accepts_gzip(Headers({}))
    (False, False)
    """
    for part in headers.get("accept-encoding", "").lower().split(","):
        coding, _, weight = part.partition(";")
        if coding.strip() == "gzip":
            return weight.strip().removeprefix("q=").strip("0.") != "" or not weight.strip()
    return False
