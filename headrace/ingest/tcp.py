"""Lines over TCP: `nc` is a producer.

    CREATE STREAM clicks (…) WITH (source = 'tcp', port = '7000');
    echo '{"user": "ada", "url": "/home"}' | nc -N 127.0.0.1 7000

One event a line; the last line needs no newline if the sender ends the connection properly. The
lines that came together are one group. While a group is being appended nothing more is read from
that connection, so that TCP itself slows the sender down. Memory and files are bounded: a line
above `log.event_bytes_max` and an idle connection are answered with one line of JSON and closed,
and connections beyond `connections_max` are closed at once.
tests/ingest/test_tcp.py checks this on real sockets.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import threading
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import structlog

from headrace.core.errors import HeadraceError, LimitReached, PortInUse, Unavailable
from headrace.core.meters import TCP_REFUSED
from headrace.core.problems import ProblemKey, Problems, reason_of
from headrace.core.time import SECOND
from headrace.define.definitions import StreamDefinition
from headrace.ingest.intake import Intake
from headrace.ingest.option_values import duration, switch, text, whole_number
from headrace.ingest.options import option, read_options
from headrace.ingest.records import split_lines
from headrace.ingest.retry import accept_with_retry

_READ_BYTES = 256 << 10
_STOP_LOOK_S = 0.1
_GOODBYE_S = 2.0
_log = structlog.get_logger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpOptions:
    host: str = option("127.0.0.1", "address to listen on", text)
    port: int = option(None, "port to listen on; 0 chooses a free one", whole_number(0, 65535))
    acks: bool = option(
        "off", 'on: answer each group of lines with {"accepted": n}', switch("on", "off")
    )
    connections_max: int = option(
        "256", "maximum number of connections; more are closed at once", whole_number(1, 100_000)
    )
    idle: int = option("1 hour", "time without data after which a connection is closed", duration)


class TcpConnector:
    """Listens until it is stopped; `port` is the real one once `listening` is set."""

    def __init__(self, definition: StreamDefinition, intake: Intake, problems: Problems) -> None:
        self._options = read_options(definition, TcpOptions)
        self._name, self._intake, self._problems = definition.name, intake, problems
        self._key = ProblemKey("source", definition.name, "connection")
        self._full = ProblemKey("source", definition.name, "connections")
        self._line_bytes_max = intake.settings.log.event_bytes_max
        self._connections: set[asyncio.Task[None]] = set()
        self.port = self._options.port
        self.listening = threading.Event()

    def run(self, stop: threading.Event) -> None:
        asyncio.run(self._run(stop))

    async def _run(self, stop: threading.Event) -> None:
        server = await self._listen(stop)
        self.port = server.sockets[0].getsockname()[1]
        self.listening.set()
        try:
            while not stop.is_set():
                await asyncio.sleep(_STOP_LOOK_S)
        finally:
            server.close()
            for connection in self._connections:
                connection.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

    async def _listen(self, stop: threading.Event) -> asyncio.Server:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None  # asyncio runs this function as a task
            if not self._admit():
                writer.close()
                return
            self._connections.add(task)
            try:
                await self._serve(reader, writer, stop)
            finally:
                await _close(writer)
                self._release(task)

        host, port = self._options.host, self._options.port
        try:
            return await asyncio.start_server(serve, host, port)
        except OSError as error:
            raise _cannot_listen(self._name, host, port, error) from error

    def _admit(self) -> bool:
        """Whether there is room for another connection."""
        most = self._options.connections_max
        if len(self._connections) < most:
            return True
        TCP_REFUSED.labels(self._name).inc()
        said = f"stream '{self._name}' has reached its limit of {most} TCP connections"
        self._problems.note(self._full, said, level="warn")
        return False

    def _release(self, connection: asyncio.Task[None]) -> None:
        self._connections.discard(connection)
        # At half of the limit, so that the warning is not logged again for each connection.
        if 2 * len(self._connections) <= self._options.connections_max:
            self._problems.over(self._full)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stop: threading.Event
    ) -> None:
        unfinished = bytearray()
        try:
            while chunk := await self._unless_idle(reader.read(_READ_BYTES)):
                lines = _finished(unfinished, chunk)
                await self._take(split_lines(lines), writer, stop)
                self._check_line(len(unfinished))
            await self._take(split_lines(bytes(unfinished)), writer, stop)
        except LimitReached as error:
            _log.warning("connection closed", stream=self._name, reason=error.message)
            await _refuse(error, reader, writer)
        except ConnectionError as error:
            # The sender broke off within a line, so that line was never an event.
            _log.warning(
                "connection lost", stream=self._name, unfinished=len(unfinished), reason=str(error)
            )
        except Exception as error:
            # Not the sender's fault: a problem of the source, until lines are taken again.
            said = f"a connection to stream '{self._name}' failed: {reason_of(error)}"
            self._problems.note(self._key, said, error)
            if isinstance(error, HeadraceError):
                await _refuse(error, reader, writer)

    async def _take(
        self, records: list[bytes], writer: asyncio.StreamWriter, stop: threading.Event
    ) -> None:
        """Append the records up to the first that is too long, and refuse from there."""
        limit = self._line_bytes_max
        whole = next((i for i, r in enumerate(records) if len(r) > limit), len(records))
        if whole:
            # In a thread, so that a full disk holds up this connection and not the others.
            receipt = await asyncio.to_thread(
                accept_with_retry, self._intake, records[:whole], stop
            )
            self._problems.over(self._key)
            if receipt and self._options.acks:
                writer.write(b'{"accepted": %d}\n' % receipt.accepted)
                await self._unless_idle(writer.drain())
        if whole < len(records):
            self._check_line(len(records[whole]))

    async def _unless_idle(self, part: Awaitable[T]) -> T:
        """The result of a read or write; LimitReached if the other side does nothing for it."""
        seconds = self._options.idle / SECOND
        try:
            async with asyncio.timeout(seconds):
                return await part
        except TimeoutError as error:
            raise LimitReached(
                f"the connection was idle for {seconds:g} seconds",
                detail="the lines before were accepted; the connection is closed.",
                hint="connect again, or raise the option idle of the stream.",
            ) from error

    def _check_line(self, size: int) -> None:
        if size > self._line_bytes_max:
            raise LimitReached(
                f"a line has {size} bytes or more, and the limit is {self._line_bytes_max}",
                detail="the lines before it were accepted; the connection is closed.",
                hint="send smaller events, or raise log.event_bytes_max in headrace.toml.",
            )


async def _refuse(
    error: HeadraceError, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Send the reason, then read on for a short time without accepting anything.

    A connection closed with bytes unread is reset, and the sender would not get the answer.
    """
    with contextlib.suppress(TimeoutError, ConnectionError):
        writer.write(msgspec.json.encode(error.as_dict()) + b"\n")
        writer.write_eof()
        async with asyncio.timeout(_GOODBYE_S):
            while await reader.read(_READ_BYTES):
                pass


async def _close(writer: asyncio.StreamWriter) -> None:
    """Close a connection, also if the other side does not read what it was sent."""
    writer.close()
    with contextlib.suppress(TimeoutError, ConnectionError):
        async with asyncio.timeout(_GOODBYE_S):
            await writer.wait_closed()
    writer.transport.abort()


def _finished(unfinished: bytearray, chunk: bytes) -> bytes:
    """The lines that `chunk` ends; what follows its last newline stays in `unfinished`."""
    end = chunk.rfind(b"\n") + 1
    # Only the new bytes are searched, so that a line sent byte by byte costs no more than another.
    lines = bytes(unfinished) + chunk[:end] if end else b""
    if end:
        unfinished.clear()
    unfinished += chunk[end:]
    return lines


def _cannot_listen(name: str, host: str, port: int, error: OSError) -> Unavailable:
    if error.errno == errno.EADDRINUSE:
        return PortInUse(
            f"stream '{name}' cannot listen on {host}:{port}: "
            "the port is in use by another process",
            hint="stop the other process, or set another port.",
        )
    return Unavailable(
        f"stream '{name}' cannot listen on {host}:{port}",
        detail=str(error),
        hint="check the options host and port of the stream.",
    )
