"""Limits of connections, in all and per client address, applied when a connection is accepted. The
addresses of one IPv6 network (/64) count as one, as for failed authentications.

A connection is *authenticated* while it answers a request of an authenticated caller. At a limit,
the oldest connection that is not authenticated is evicted: half-open requests, handshakes and idle
connections therefore block nobody. Only if all are authenticated is the new connection refused.
Everything here is for one event loop.
tests/api/test_connections.py opens the sockets.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
from collections.abc import Callable
from typing import Any

from headrace.access.failures import client_network
from headrace.api.errors import error_bytes
from headrace.core.errors import Overfull
from headrace.core.time import SECOND
from headrace.define.settings import HttpSettings

Peer = tuple[str, int]
_OTHER_FILES = 1_024  # of the log, the store and Spark


class AcceptedSocket(socket.socket):
    """The server's end of a connection. `authenticated` says whether it answers an authenticated
    caller, once a protocol is attached; until then `handshake_timer` closes it.
    """

    authenticated: Callable[[], bool] = staticmethod(lambda: False)
    on_close: Callable[[], None] = staticmethod(lambda: None)
    handshake_timer: asyncio.TimerHandle | None = None
    network: str = ""  # of the client

    def attach(self, authenticated: Callable[[], bool]) -> None:
        """Attach the protocol: there was no TLS handshake, or it is complete."""
        self.authenticated = authenticated
        self._stop_handshake_timer()

    def _stop_handshake_timer(self) -> None:
        if self.handshake_timer is not None:
            self.handshake_timer.cancel()

    def close(self) -> None:
        self._stop_handshake_timer()
        self.on_close()
        super().close()

    def evict(self) -> None:
        """Shut the connection down; its owner reads the end of the stream and closes it."""
        with contextlib.suppress(OSError):  # the client may have disconnected
            self.shutdown(socket.SHUT_RDWR)

    def refuse(self, answer: bytes) -> None:
        with contextlib.suppress(OSError):
            self.setblocking(False)
            self.send(answer)
        self.close()


class Connections:
    """The connections of a server, by the address and port of the other side."""

    def __init__(self, most: int, per_address: int) -> None:
        self._most, self._per_address = most, per_address
        self._open: dict[Peer, AcceptedSocket] = {}
        self._evicted = set[AcceptedSocket]()  # evicted, but not yet closed

    @property
    def evictions_pending(self) -> bool:
        """Whether so many evicted sockets are still open that no new one should be accepted."""
        return len(self._evicted) > self._most // 4

    def of(self, peer: Peer) -> AcceptedSocket | None:
        return self._open.get(peer)

    def admit(self, accepted_socket: AcceptedSocket, peer: Peer) -> bool:
        """Add a connection, if there is room or another one can be evicted."""
        accepted_socket.network = network = client_network(peer[0])
        here = [other for other, known in self._open.items() if known.network == network]
        if len(here) >= self._per_address and not self._evict_one(here):
            return False
        if len(self._open) >= self._most and not self._evict_one(list(self._open)):
            return False
        self._open[peer] = accepted_socket
        accepted_socket.on_close = lambda: self._forget(accepted_socket, peer)
        return True

    def _evict_one(self, peers: list[Peer]) -> bool:
        """Evict the oldest of these that is not authenticated."""
        for peer in peers:
            if not self._open[peer].authenticated():
                evicted = self._open.pop(peer)
                self._evicted.add(evicted)
                evicted.evict()
                return True
        return False

    def _forget(self, accepted_socket: AcceptedSocket, peer: Peer) -> None:
        self._evicted.discard(accepted_socket)
        # The client may have reused the same port by now.
        if self._open.get(peer) is accepted_socket:
            del self._open[peer]


class Listener(socket.socket):
    """A socket whose connections are counted before anything is read from them."""

    connections: Connections
    refusal: bytes  # the response to a connection over the limit
    handshake_s: float

    def accept(self) -> tuple[socket.socket, Any]:
        while True:
            if self.connections.evictions_pending:
                raise BlockingIOError("evictions are pending")  # the event loop accepts later
            accepted, address = super().accept()
            accepted_socket = AcceptedSocket(fileno=accepted.detach())
            if self.connections.admit(accepted_socket, address[:2]):
                loop = asyncio.get_running_loop()
                accepted_socket.handshake_timer = loop.call_later(
                    self.handshake_s, accepted_socket.evict
                )
                return accepted_socket, address
            accepted_socket.refuse(self.refusal)


def limit_connections(listener: Listener, http: HttpSettings) -> Connections:
    """Apply the settings to a listener; returns its connections."""
    listener.connections = Connections(connections_max(http), http.connections_per_address_max)
    listener.handshake_s = http.header_timeout_us / SECOND
    error = Overfull(
        "the server has reached its connection limit",
        hint="try again; see http.connections_max and http.connections_per_address_max.",
    )
    # Over TLS no response can be sent before the handshake.
    listener.refusal = b"" if http.tls_cert else error_bytes(error)
    return listener.connections


def connections_max(http: HttpSettings) -> int:
    """The limit of the settings, and at most half of the process's limit of open files, which is
    raised if possible.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = min(hard, 2 * http.connections_max + _OTHER_FILES)
    if soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    return min(http.connections_max, max(soft, needed) // 2)
