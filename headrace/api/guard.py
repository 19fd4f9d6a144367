"""Keeps other web sites out of a server that listens on the user's own machine.

A browser may be made to send us requests by any page it shows. A page whose name was pointed at
our address (DNS rebinding) still says its own name in Host, and a page elsewhere says its own in
Origin: both are refused. No CORS header is ever sent, so that no other page can read an answer.
tests/api/test_guard.py checks each refusal and each header.
"""

from __future__ import annotations

import socket
from ipaddress import ip_address

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.api.errors import error_response
from headrace.core.errors import Refused

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'self'",
    "X-Frame-Options": "DENY",
}


POLICY = "headrace.policy"  # where a handler notes in the scope that its answer is to have another
SANDBOX = "sandbox; default-src 'none'"  # for what others have made: it is shown and runs nothing


class SafeHeaders:
    """The outermost middleware: no answer, a refusal or a defect's included, is without them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                if POLICY in scope:
                    headers["Content-Security-Policy"] = scope[POLICY]
                if scope["path"].startswith("/v1/"):
                    # The files of a job's console have said how long they may be kept.
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, send_safely)


class Guard:
    """Middleware that refuses foreign hosts and origins."""

    def __init__(self, app: ASGIApp, host: str) -> None:
        self._app = app
        self._names = frozenset({"localhost", host.lower(), *_own_names(host)})
        self._any_address = _unspecified(host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = self._refusal(scope["method"], Headers(scope=scope))
        app = error_response(refused) if refused else self._app
        await app(scope, receive, send)

    def _refusal(self, method: str, headers: Headers) -> Refused | None:
        host = headers.get("host", "")
        if not self._knows(host_name(host)):
            return Refused(
                f"this server does not answer for the host '{host}'",
                hint="use localhost, or set http.host in headrace.toml to the name in use.",
            )
        origin = headers.get("origin")
        if method not in SAFE_METHODS and origin is not None and not _same(origin, host):
            return Refused(f"a page of '{origin}' may not send requests to this server")
        return None

    def _knows(self, name: str) -> bool:
        if name in self._names:
            return True
        try:
            address = ip_address(name)
        except ValueError:
            return False
        # Rebinding needs a name; whoever says a bare address means the machine itself.
        return address.is_loopback or self._any_address


def host_name(authority: str) -> str:
    """The name in a Host header, without its port.

    >>> host_name("LocalHost:8080"), host_name("[::1]:8080"), host_name("::1")
    ('localhost', '::1', '::1')
    """
    if authority.startswith("["):
        return authority[1:].partition("]")[0].lower()
    name = authority if authority.count(":") > 1 else authority.partition(":")[0]
    return name.lower().removesuffix(".")


def _same(origin: str, host: str) -> bool:
    """Whether a page's origin is this server, by the name that the request itself uses."""
    return origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}")


def _unspecified(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return host == ""


def _own_names(host: str) -> set[str]:
    """The machine's names, where it was told to listen on all of its addresses."""
    return {socket.gethostname().lower()} if _unspecified(host) else set()
