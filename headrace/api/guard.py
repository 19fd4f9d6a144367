"""Keeps other web sites out of a server that listens on the user's own machine.

A browser may be made to send us requests by any page it shows. A page whose name was pointed at
our address (DNS rebinding) still says its own name in Host, and a page elsewhere, on another port
or under another scheme, says its own in Origin: both are refused. The names of a proxy or a service
are allowed by `http.allowed_hosts`. In Sec-Fetch-Site a browser reports whether a page of another
site sent the request; such a page may only link to us. No CORS header is ever sent, so that no
other page can read an answer. A request whose end can be read in two ways is refused too, and its
connection closed.
tests/api/test_guard.py checks each refusal and each header.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from ipaddress import ip_address

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.access.passing import PROOF, SCHEME
from headrace.api.errors import error_response
from headrace.core.errors import BadRequest, HeadraceError, Refused

Prove = Callable[[str], str | None]
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_CLOSED = "frame-ancestors 'none'; base-uri 'none'"  # what default-src does not speak for
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": f"default-src 'self'; form-action 'self'; {_CLOSED}",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), "
    "payment=(), usb=()",
}
# A browser that has seen it asks by https alone, for a year.
_HTTPS_ONLY = {"Strict-Transport-Security": "max-age=31536000"}
_OWN_PAGE = ("same-origin", "none")  # of Sec-Fetch-Site; none is what a user typed
_PORTS = {"http": ":80", "https": ":443"}

POLICY = "headrace.policy"  # where a handler notes in the scope that its answer is to have another
# For what others have made: it is shown and runs nothing.
SANDBOX = f"sandbox; default-src 'none'; form-action 'none'; {_CLOSED}"


class SafeHeaders:
    """The outermost middleware: no answer, a refusal or a defect's included, is without them. Nor
    is one without the proof that it is of this job, where its server asks.
    """

    def __init__(self, app: ASGIApp, prove: Prove) -> None:
        self._app, self._prove = app, prove

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                if proof := self._proof(scope):
                    headers[PROOF] = proof
                if scope["scheme"] == "https" and not _of_this_machine(scope):
                    headers.update(_HTTPS_ONLY)
                if POLICY in scope:
                    headers["Content-Security-Policy"] = scope[POLICY]
                if scope["path"].startswith("/v1/"):
                    # The files of a job's console have said how long they may be kept.
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, send_safely)

    def _proof(self, scope: Scope) -> str | None:
        scheme, _, text = Headers(scope=scope).get("authorization", "").partition(" ")
        return self._prove(text) if scheme == SCHEME else None


class Guard:
    """Middleware that refuses foreign hosts and origins."""

    def __init__(self, app: ASGIApp, host: str, allowed: Sequence[str] = ()) -> None:
        self._app = app
        allowed = [name.lower() for name in allowed]
        self._names = frozenset({"localhost", host.lower(), *_own_names(host), *allowed})
        self._domains = tuple(name[1:] for name in allowed if name.startswith("*."))
        self._any_address = _unspecified(host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = self._refusal(scope, Headers(scope=scope))
        if refused is None:
            await self._app(scope, receive, send)
            return
        answer = error_response(refused)
        if isinstance(refused, BadRequest):
            answer.headers["Connection"] = "close"  # nobody knows where the next request begins
        await answer(scope, receive, send)

    def _refusal(self, scope: Scope, headers: Headers) -> HeadraceError | None:
        if _two_lengths(scope["http_version"], headers):
            return BadRequest(
                "the request says in two ways how long its body is",
                detail="Content-Length and Transfer-Encoding exclude each other; HTTP/1.0 has only "
                "the first.",
            )
        host, method = headers.get("host", ""), scope["method"]
        if not self._knows(host_name(host)):
            return Refused(
                f"this server does not answer for the host '{host}'",
                hint="use localhost, or add the name to http.allowed_hosts in the settings.",
            )
        origin = headers.get("origin")
        unsafe, site = method not in SAFE_METHODS, headers.get("sec-fetch-site", "none")
        # Where a proxy ends TLS, only the browser knows that its page came by https.
        schemes = tuple(_PORTS) if site == "same-origin" else (scope["scheme"],)
        own = origin is None or any(same_origin(origin, scheme, host) for scheme in schemes)
        if unsafe and not own:
            return Refused(f"a page of '{origin}' may not send requests to this server")
        foreign = site not in _OWN_PAGE
        if foreign and (unsafe or not _followed_link(headers)):
            return Refused("a page of another site may not send requests to this server")
        return None

    def _knows(self, name: str) -> bool:
        if name in self._names or name.endswith(self._domains):
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


def same_origin(origin: str, scheme: str, host: str) -> bool:
    """Whether a page's origin is this server: its scheme, and the name and port that the request
    itself uses.

    >>> [same_origin(page, "https", "shop") for page in ("https://shop:443", "http://shop")]
    [True, False]
    """
    port = _PORTS[scheme]
    own = f"{scheme}://{host}".lower().removesuffix(port)
    return origin.lower().removesuffix(port) == own


def _followed_link(headers: Headers) -> bool:
    """Whether the answer is shown as a page of its own, and not in or to the page that asks."""
    said = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")
    return said == ("navigate", "document")


def _two_lengths(http_version: str, headers: Headers) -> bool:
    chunked = "transfer-encoding" in headers
    return chunked and ("content-length" in headers or http_version == "1.0")


def _of_this_machine(scope: Scope) -> bool:
    """Whether the browser knows us as localhost, where it would then take every other server for
    one that speaks https.
    """
    return host_name(Headers(scope=scope).get("host", "")) == "localhost"


def _unspecified(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return host == ""


def _own_names(host: str) -> set[str]:
    """The machine's names, where it was told to listen on all of its addresses."""
    return {socket.gethostname().lower()} if _unspecified(host) else set()
