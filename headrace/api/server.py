"""The HTTP server of a running project.

`start` binds the port first, so that a port in use is reported at once and not from a thread; it
returns when the server accepts requests. `stop` lets requests in progress end, for a few seconds at
most.
tests/api/test_server.py checks it.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
import time
from ipaddress import ip_address

import uvicorn
from starlette.types import ASGIApp

from headrace.access.access import Access
from headrace.api.app import make_api, make_app, make_direct_sends
from headrace.api.connections import Listener, limit_connections
from headrace.api.direct_sends import DirectSends
from headrace.api.protocol import limited_protocol
from headrace.api.service import LocalService
from headrace.api.tls import check_tls
from headrace.core.errors import HeadraceError, PortInUse, Unavailable
from headrace.define.settings import AccessSettings, HttpSettings

BACKLOG = 2048
START_S_MAX = 10.0
STOP_S_MAX, GRACE_S = 5.0, 3
_POLL_S = 0.005


class AppServer:
    """Serves an application over HTTP from a thread of its own."""

    def __init__(self, app: ASGIApp, http: HttpSettings, sends: DirectSends | None = None) -> None:
        self._app, self._http, self._sends = app, http, sends
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self.url = ""

    def start(self) -> None:
        check_tls(self._http)
        listening = bind(self._http.host, self._http.port)
        host, port = listening.getsockname()[:2]
        scheme = "https" if self._http.tls_cert else "http"
        self.url = f"{scheme}://{_reachable(host)}:{port}"
        connections = limit_connections(listening, self._http)
        protocol = limited_protocol(connections, self._http, self._sends)
        server = uvicorn.Server(_config(self._app, self._http, protocol))
        thread = threading.Thread(
            target=server.run, args=([listening],), name="headrace-http", daemon=True
        )
        self._server, self._thread = server, thread
        thread.start()
        _wait_until_started(server, thread)

    def stop(self) -> None:
        """Stop within a few seconds; does nothing if the server is not running."""
        server, thread = self._server, self._thread
        self._server = self._thread = None
        if server is None or thread is None:
            return
        server.should_exit = True
        thread.join(STOP_S_MAX)


class HttpServer(AppServer):
    """Serves a project's service.

    server = HttpServer(instance, settings.http, access)
    server.start()
    print(server.url)
    """

    def __init__(
        self,
        service: LocalService,
        http: HttpSettings,
        access: Access,
        limits: AccessSettings | None = None,
    ) -> None:
        api = make_api(service, http, access, limits or AccessSettings())
        super().__init__(make_app(api), http, make_direct_sends(api))


def _config(app: ASGIApp, http: HttpSettings, protocol: type[asyncio.Protocol]) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=protocol,
        log_config=None,
        access_log=False,
        lifespan="on",
        ws="none",
        # Loopback clients could otherwise choose their own address and scheme.
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=GRACE_S,
        ssl_certfile=http.tls_cert or None,
        ssl_keyfile=http.tls_key or None,
    )


def _wait_until_started(server: uvicorn.Server, thread: threading.Thread) -> None:
    deadline = time.monotonic() + START_S_MAX
    while not server.started:
        if not thread.is_alive() or time.monotonic() > deadline:
            raise Unavailable("the HTTP server did not start", hint="see the log for the reason.")
        time.sleep(_POLL_S)


def bind(host: str, port: int) -> Listener:
    """A listening socket. It listens at once, because two sockets may share a port until then."""
    listening = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = Listener(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # The port is not passed to getaddrinfo, which would turn 70000 into 4464.
        listening.bind((address[0], port, *address[2:]))
        listening.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        if listening:
            listening.close()
        raise _bind_error(error, host, port) from error
    return listening


def _bind_error(error: OSError | OverflowError, host: str, port: int) -> HeadraceError:
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return PortInUse(
            f"port {port} is in use by another process",
            hint="choose another one with --port; --port 0 selects a free one.",
        )
    return Unavailable(
        f"the HTTP server cannot listen on {host}:{port}",
        detail=str(error),
        hint="see http.host and http.port in headrace.toml, or use --port.",
    )


def _reachable(host: str) -> str:
    """The address under which clients reach a server that listens on `host`."""
    address = ip_address(host.partition("%")[0])
    if address.is_unspecified:
        return "127.0.0.1" if address.version == 4 else "[::1]"
    return host if address.version == 4 else f"[{host}]"
