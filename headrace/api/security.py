"""Security of browsers: response headers, and the check of Host and Origin.

Any web page can make a browser send requests to this server. A page whose name was pointed at our
address (DNS rebinding) still sends its own name in Host, and a page of another host, port or scheme
sends its own in Origin: both are refused. `http.allowed_hosts` allows the names of a proxy or a
service. In Sec-Fetch-Site a browser reports whether a page of another site sent the request; such a
page may only link to us. No CORS header is ever sent, so that no other page can read a response. A
request with an ambiguous length or host is refused too, and its connection closed; the parser
refuses one with two lengths.
tests/api/test_security.py checks each refusal and each header.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from ipaddress import ip_address

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.access.delegation import DELEGATED_SCHEME, SIGNATURE_HEADER
from headrace.api.errors import error_response
from headrace.core.errors import BadRequest, HeadraceError, Refused

ResponseSigner = Callable[[str], str | None]
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_CLOSED = "frame-ancestors 'none'; base-uri 'none'"  # not covered by default-src
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": f"default-src 'self'; form-action 'self'; {_CLOSED}",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), "
    "payment=(), usb=()",
}
NO_STORE = {"Cache-Control": "no-store"}  # of the API, unless a handler says more
# A browser then uses https alone, for a year.
_HTTPS_ONLY = {"Strict-Transport-Security": "max-age=31536000"}
_OWN_PAGE = ("same-origin", "none")  # of Sec-Fetch-Site; none: the user typed the URL
_PORTS = {"http": ":80", "https": ":443"}

POLICY = "headrace.policy"  # key of the scope, for a handler's own Content-Security-Policy
# For content of others: it is shown but no script runs.
SANDBOX = f"sandbox; default-src 'none'; form-action 'none'; {_CLOSED}"


def safety_headers(scope: Scope) -> dict[str, str]:
    """The headers of every response to this request."""
    https_only = scope["scheme"] == "https" and not _of_this_machine(scope)
    return {**HEADERS, **_HTTPS_ONLY} if https_only else HEADERS


class SecurityHeaders:
    """The outermost middleware: every response has the headers, also refusals and unexpected
    errors. A response to the job's server also has the job's signature.
    """

    def __init__(self, app: ASGIApp, sign: ResponseSigner) -> None:
        self._app, self._sign = app, sign

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(safety_headers(scope))
                if signature := self._signature(scope):
                    headers[SIGNATURE_HEADER] = signature
                if POLICY in scope:
                    headers["Content-Security-Policy"] = scope[POLICY]
                if scope["path"].startswith("/v1/"):
                    # The files of a job's console have set their own Cache-Control.
                    for name, value in NO_STORE.items():
                        headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_safely)

    def _signature(self, scope: Scope) -> str | None:
        scheme, _, text = Headers(scope=scope).get("authorization", "").partition(" ")
        return self._sign(text) if scheme == DELEGATED_SCHEME else None


class TrustedOrigin:
    """Middleware that refuses foreign hosts and origins."""

    def __init__(self, app: ASGIApp, policy: OriginPolicy) -> None:
        self._app, self._policy = app, policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = self._policy.refusal(scope, Headers(scope=scope))
        if refused is None:
            await self._app(scope, receive, send)
            return
        answer = error_response(refused)
        if isinstance(refused, BadRequest):
            answer.headers["Connection"] = "close"  # the start of the next request is not known
        await answer(scope, receive, send)


class OriginPolicy:
    """The hosts and origins whose requests are answered."""

    def __init__(self, host: str, allowed: Sequence[str] = ()) -> None:
        allowed = [name.lower() for name in allowed]
        self._names = frozenset({"localhost", host.lower(), *_own_names(host), *allowed})
        self._domains = tuple(name[1:] for name in allowed if name.startswith("*."))
        self._any_address = _unspecified(host)

    def refusal(self, scope: Scope, headers: Headers) -> HeadraceError | None:
        """Why a request is refused by its head."""
        if scope["http_version"] == "1.0" and "transfer-encoding" in headers:
            return BadRequest("HTTP/1.0 has no Transfer-Encoding", hint="send a Content-Length.")
        if len(headers.getlist("host")) > 1:
            return BadRequest("the request has more than one Host header")
        host, method = headers.get("host", ""), scope["method"]
        if not self._knows(host_name(host)):
            return Refused(
                f"the host '{host}' is not allowed",
                hint="use localhost, or add the name to http.allowed_hosts in the settings.",
            )
        origin = headers.get("origin")
        unsafe, site = method not in SAFE_METHODS, headers.get("sec-fetch-site", "none")
        # If a proxy terminates TLS, only the browser knows that its page was loaded over https.
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
        # DNS rebinding needs a name; a bare address means the machine itself.
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
    """Whether a page's origin is this server: its scheme, and the name and port of the request.

    >>> [same_origin(page, "https", "shop") for page in ("https://shop:443", "http://shop")]
    [True, False]
    """
    port = _PORTS[scheme]
    own = f"{scheme}://{host}".lower().removesuffix(port)
    return origin.lower().removesuffix(port) == own


def _followed_link(headers: Headers) -> bool:
    """Whether the response is shown as a top-level page, and not inside the requesting page."""
    fetch = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")
    return fetch == ("navigate", "document")


def _of_this_machine(scope: Scope) -> bool:
    """Whether the browser uses localhost, where HSTS would apply to all other local servers."""
    return host_name(Headers(scope=scope).get("host", "")) == "localhost"


def _unspecified(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return host == ""


def _own_names(host: str) -> set[str]:
    """The machine's names, if the server listens on all of its addresses."""
    return {socket.gethostname().lower()} if _unspecified(host) else set()
