"""Lines over real sockets."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from headrace.core.errors import DiskFull, PortInUse, Unavailable
from headrace.core.meters import TCP_REFUSED
from headrace.core.problems import Problems
from headrace.ingest import retry
from headrace.ingest.guards import DiskGuard
from headrace.ingest.intake import Intake, Receipt
from headrace.ingest.tcp import TcpConnector

from .conftest import Bench, running, stream, wait_for


@contextmanager
def listening(
    intake: Intake, problems: Problems | None = None, **options: str
) -> Iterator[socket.socket]:
    """A connection to a connector at work."""
    said = stream(source="tcp", options={"port": "0", **options})
    connector = TcpConnector(said, intake, problems or Problems("source"))
    with running(connector):
        wait_for(connector.listening.is_set)
        with socket.create_connection(("127.0.0.1", connector.port), timeout=10) as client:
            yield client


def answer(client: socket.socket) -> bytes:
    """All that the server says until it closes the connection."""
    return b"".join(iter(lambda: client.recv(65_536), b""))


def holds(bench: Bench, records: list[bytes]) -> Callable[[], bool]:
    return lambda: bench.records() == records


def test_a_connection_that_fails_on_our_side_is_a_problem_of_the_source_until_one_is_well(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems, intake = Problems("source"), bench.intake(partitions=1)
    accept, fail = intake.accept, [True]

    def accept_or_fail(records: Sequence[bytes], marks: bytes = b"") -> Receipt:
        if fail.pop() if fail else False:
            raise ValueError("not an error of ours")
        return accept(records, marks)

    monkeypatch.setattr(intake, "accept", accept_or_fail)
    with listening(intake, problems) as client:
        client.sendall(b'{"n":1}\n')
        assert answer(client) == b""
        (problem,) = problems
        assert problem.about == "source:clicks"
        assert problem.message == (
            "a connection to stream 'clicks' failed: ValueError: not an error of ours"
        )
        with socket.create_connection(client.getpeername(), timeout=10) as again:
            again.sendall(b'{"n":2}\n')
            wait_for(holds(bench, [b'{"n":2}']))
        wait_for(lambda: not list(problems))


def test_each_line_is_an_event(bench: Bench) -> None:
    with listening(bench.intake(partitions=1)) as client:
        client.sendall(b'{"n":1}\r\n\n{"n":2}\n')
        wait_for(holds(bench, [b'{"n":1}', b'{"n":2}']))


def test_half_a_line_waits_for_its_other_half(bench: Bench) -> None:
    with listening(bench.intake(partitions=1), acks="on") as client:
        client.sendall(b'{"n":1}\n{"n"')
        assert client.recv(100) == b'{"accepted": 1}\n'
        assert bench.records() == [b'{"n":1}']
        client.sendall(b":2}\n")
        assert client.recv(100) == b'{"accepted": 1}\n'
        assert bench.records() == [b'{"n":1}', b'{"n":2}']


def test_the_last_line_needs_no_newline_when_the_sender_ends_properly(bench: Bench) -> None:
    with listening(bench.intake(partitions=1)) as client:
        client.sendall(b'{"n":1}')
        client.shutdown(socket.SHUT_WR)
        assert answer(client) == b""
    assert bench.records() == [b'{"n":1}']


def test_no_answer_is_given_unless_acks_are_on(bench: Bench) -> None:
    with listening(bench.intake(partitions=1)) as client:
        client.sendall(b"a\nb\n")
        client.shutdown(socket.SHUT_WR)
        assert answer(client) == b""


def test_acks_count_every_line_once_it_is_durable(bench: Bench) -> None:
    count = 50_000
    with listening(bench.intake(key="user"), acks="on") as client:
        sender = threading.Thread(
            target=lambda: (
                client.sendall(b"".join(b'{"user":"u%d"}\n' % n for n in range(count))),
                client.shutdown(socket.SHUT_WR),
            )
        )
        sender.start()
        acks = [json.loads(line)["accepted"] for line in answer(client).splitlines()]
        sender.join(10)
    assert sum(acks) == count == len(bench.records())


@pytest.mark.parametrize("end", [b"\n", b""], ids=["finished", "unfinished"])
def test_an_overlong_line_is_answered_and_the_connection_closed(bench: Bench, end: bytes) -> None:
    intake = bench.intake(partitions=1, changes={"event_bytes_max": 20})
    with listening(intake) as client:
        client.sendall(b"before\n" + b"x" * 21 + end)
        told = json.loads(answer(client))
    assert told["condition"] == "LimitReached"
    assert told["message"] == "a line has 21 bytes or more, and the limit is 20"
    assert bench.records() == [b"before"]


def test_a_sender_in_the_middle_of_much_too_long_a_line_still_gets_the_answer(bench: Bench) -> None:
    with listening(bench.intake(changes={"event_bytes_max": 1000})) as client:
        client.sendall(b"x" * 4_000_000)
        client.shutdown(socket.SHUT_WR)
        assert json.loads(answer(client))["condition"] == "LimitReached"


def test_connections_beyond_the_limit_are_closed_and_counted(bench: Bench) -> None:
    problems = Problems("source")
    refused = TCP_REFUSED.labels("clicks")._value.get
    before = refused()
    with listening(bench.intake(partitions=1), problems, connections_max="1") as client:
        address = client.getpeername()
        for _ in range(3):
            with socket.create_connection(address, timeout=10) as another:
                assert answer(another) == b""
        assert refused() - before == 3
        (problem,) = problems
        assert (problem.about, problem.level) == ("source:clicks", "warn")
        assert problem.message == "stream 'clicks' has reached its limit of 1 TCP connections"
        client.shutdown(socket.SHUT_WR)
        assert answer(client) == b""
        wait_for(lambda: not list(problems))
        with socket.create_connection(address, timeout=10) as again:
            again.sendall(b"{}\n")
            wait_for(holds(bench, [b"{}"]))


def test_idle_connection_is_closed(bench: Bench) -> None:
    with listening(bench.intake(partitions=1), idle="300 ms") as client:
        client.sendall(b'{"n":1}\n{"n"')
        told = json.loads(answer(client))
    assert told["condition"] == "LimitReached"
    assert told["message"] == "the connection was idle for 0.3 seconds"
    assert bench.records() == [b'{"n":1}']


def test_what_was_read_waits_while_the_disk_is_full(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = threading.Semaphore(0)

    def full(guard: DiskGuard) -> None:
        tries.release()
        raise DiskFull("the disk is full")

    intake = bench.intake(partitions=1)
    with listening(intake, acks="on") as client:
        with monkeypatch.context() as disk:
            disk.setattr(DiskGuard, "check", full)
            client.sendall(b"kept\n")
            assert all(tries.acquire(timeout=10) for _ in range(3))
            assert bench.records() == []
        assert client.recv(100) == b'{"accepted": 1}\n'
    assert bench.records() == [b"kept"]


def test_a_stop_ends_the_wait_for_a_full_disk(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    intake = bench.intake(changes={"free_bytes_min": 1 << 60})
    stop = threading.Event()
    monkeypatch.setattr(retry, "_FIRST_WAIT_S", 60.0)
    threading.Timer(0.1, stop.set).start()
    assert retry.accept_with_retry(intake, [b"x"], stop) is None


def test_a_port_in_use_is_told_with_a_hint(bench: Bench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        said = stream(source="tcp", options={"port": str(port)})
        with pytest.raises(PortInUse) as refused:
            TcpConnector(said, bench.intake(), Problems("source")).run(threading.Event())
    assert str(refused.value) == (
        f"PortInUse: stream 'clicks' cannot listen on 127.0.0.1:{port}: "
        "the port is in use by another process\n"
        "  hint: stop the other process, or set another port."
    )


def test_an_address_that_is_not_ours_is_told(bench: Bench) -> None:
    said = stream(source="tcp", options={"port": "0", "host": "203.0.113.1"})
    with pytest.raises(Unavailable, match=r"cannot listen on 203\.0\.113\.1:0"):
        TcpConnector(said, bench.intake(), Problems("source")).run(threading.Event())
