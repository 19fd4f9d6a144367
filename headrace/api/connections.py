"""How many connections there are, in all and from one address, counted where they are accepted.

A connection is *known* while it answers a request of a caller whom the door has let in. Where there
is no room, the oldest one that is not known gives way: half-open requests, handshakes and idle
connections therefore keep nobody out, from whichever address they come. Only where all are known
is the newcomer refused. Everything here is for one event loop.
tests/api/test_connections.py opens the sockets.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
from collections.abc import Callable
from typing import Any

from headrace.api.errors import error_bytes
from headrace.core.errors import Overfull
from headrace.core.time import SECOND
from headrace.define.settings import HttpSettings

Peer = tuple[str, int]
_OTHER_FILES = 1_024  # of the log, the store and Spark


class Accepted(socket.socket):
    """The server's end of a connection. `known` says whether a known caller asks over it, as soon
    as there is a protocol that can say so; without one it ends when its `patience` does.
    """

    known: Callable[[], bool] = staticmethod(lambda: False)
    forget: Callable[[], None] = staticmethod(lambda: None)
    patience: asyncio.TimerHandle | None = None

    def held_by(self, known: Callable[[], bool]) -> None:
        """A protocol has it: there was no handshake, or it is over."""
        self.known = known
        self._stop_patience()

    def _stop_patience(self) -> None:
        if self.patience is not None:
            self.patience.cancel()

    def close(self) -> None:
        self._stop_patience()
        self.forget()
        super().close()

    def give_way(self) -> None:
        """Whoever holds it finds it at its end, and closes it."""
        with contextlib.suppress(OSError):  # the other side may have gone
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
        self._open: dict[Peer, Accepted] = {}
        self._leaving = set[Accepted]()  # those that gave way and still have their file

    @property
    def crowded(self) -> bool:
        """Whether so many are leaving that nobody should come before they are gone."""
        return len(self._leaving) > self._most // 4

    def of(self, peer: Peer) -> Accepted | None:
        return self._open.get(peer)

    def admit(self, made: Accepted, peer: Peer) -> bool:
        """Count it, if there is room or some can be made."""
        here = [other for other in self._open if other[0] == peer[0]]
        if len(here) >= self._per_address and not self._end_one(here):
            return False
        if len(self._open) >= self._most and not self._end_one(list(self._open)):
            return False
        self._open[peer] = made
        made.forget = lambda: self._forget(made, peer)
        return True

    def _end_one(self, peers: list[Peer]) -> bool:
        """End the oldest of these that is not known."""
        for peer in peers:
            if not self._open[peer].known():
                leaving = self._open.pop(peer)
                self._leaving.add(leaving)
                leaving.give_way()
                return True
        return False

    def _forget(self, made: Accepted, peer: Peer) -> None:
        self._leaving.discard(made)
        # By now the other side may have the same port again.
        if self._open.get(peer) is made:
            del self._open[peer]


class Listener(socket.socket):
    """A socket whose connections are counted before anything is read from them."""

    connections: Connections
    refusal: bytes  # what a connection is told for which there is no room
    handshake_s: float

    def accept(self) -> tuple[socket.socket, Any]:
        while True:
            if self.connections.crowded:
                raise BlockingIOError("they leave first")  # the event loop asks again in its turn
            accepted, address = super().accept()
            made = Accepted(fileno=accepted.detach())
            if self.connections.admit(made, address[:2]):
                loop = asyncio.get_running_loop()
                made.patience = loop.call_later(self.handshake_s, made.give_way)
                return made, address
            made.refuse(self.refusal)


def limited(listener: Listener, http: HttpSettings) -> Connections:
    """Let a listener keep to the settings; its connections."""
    listener.connections = Connections(connections_max(http), http.connections_per_address_max)
    listener.handshake_s = http.header_timeout_us / SECOND
    error = Overfull(
        "the server has as many connections as it takes",
        hint="try again; http.connections_max and http.connections_per_address_max say how many.",
    )
    # Over TLS there is nothing that could be said before a handshake.
    listener.refusal = b"" if http.tls_cert else error_bytes(error)
    return listener.connections


def connections_max(http: HttpSettings) -> int:
    """As many as the settings say, and never more than half of the files that the process may open,
    of which it takes as many as it is given.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard, 2 * http.connections_max + _OTHER_FILES)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return min(http.connections_max, max(soft, wanted) // 2)
