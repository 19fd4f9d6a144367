"""The intake over HTTP, each request acknowledged after fsync: one event a request with 1 and with
64 connections, and some hundred events a request.

The server is a process of its own with all of the HTTP API, the intake and the log, but without
Spark, so that its processor time is that of the intake. The client has prepared requests and plain
sockets, since it shares two cores with the server. In the same run a loop writes and syncs as much
as one event needs, which is the limit of this disk. Before a rate counts, the log must have each
acknowledged event once.

    python -m bench.intake 5
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console

from bench.process import tree_cpu_s
from headrace.define.layout import Layout
from headrace.define.project import load_project
from headrace.log.opening import open_reader

DEFINITIONS = """
CREATE STREAM clicks (
  event_id STRING, user STRING NOT NULL, url STRING NOT NULL, ts TIMESTAMP NOT NULL, ms BIGINT,
  WATERMARK ts DELAY OF INTERVAL 10 MINUTES
) WITH (key = 'user');
"""
EVENTS = "/v1/streams/clicks/events"
CONNECTIONS, BATCH_CONNECTIONS, BATCH_EVENTS, BODIES = 64, 8, 500, 20
BLOCK_BYTES = 256  # what one event needs in the log
_ACCEPTED = re.compile(rb'"accepted":(\d+)')


@dataclass
class Load:
    """What one client sent, and what was acknowledged."""

    requests: int = 0
    accepted: int = 0
    waited_s: list[float] = field(default_factory=list)


def measure(folder: Path, seconds: float, console: Console) -> dict[str, Any]:
    """Requests and events a second, and the limit of the disk in the same minutes."""
    project = folder / "intake"
    project.mkdir(parents=True)
    (project / "headrace.toml").write_text('name = "intake"\n')
    (project / "intake.sql").write_text(DEFINITIONS)
    with (project / "stderr.log").open("wb") as errors:
        command = [sys.executable, "-m", "bench.intake", "serve", str(project)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            assert process.stdout is not None
            url, token = process.stdout.readline().split()
            found = _measured(url, token, project, process.pid, seconds)
        finally:
            process.terminate()
            process.wait(30)
    _tell(found, console)
    return found


def _measured(url: str, token: str, project: Path, pid: int, seconds: float) -> dict[str, Any]:
    rounds = {"single": (1, 1), "single_64": (CONNECTIONS, 1)}
    rounds["batch"] = (BATCH_CONNECTIONS, BATCH_EVENTS)
    found: dict[str, Any] = {"fsyncs_per_second": _fsyncs(project, seconds / 2)}
    for name, (connections, events) in rounds.items():
        _sent(url, token, connections, events, 0.5)  # caches and files are warm
        before, spent = _logged(project), tree_cpu_s(pid)
        load = _sent(url, token, connections, events, seconds)
        spent = tree_cpu_s(pid) - spent
        if _logged(project) - before != load.accepted or load.accepted != load.requests * events:
            raise SystemExit(f"{name}: the log does not have each acknowledged event once")
        found[name] = _numbers(load, seconds, spent)
    found["fsyncs_per_second_after"] = _fsyncs(project, seconds / 2)
    return found


def _sent(url: str, token: str, connections: int, events: int, seconds: float) -> Load:
    """A load of its own process, whose clock waits for nobody."""
    loads: multiprocessing.Queue[Load] = multiprocessing.Queue()
    given = url, token, connections, events, seconds, loads
    client = multiprocessing.Process(target=_send, args=given)
    client.start()
    load = loads.get(timeout=seconds + 60)
    client.join()
    return load


def _send(
    url: str,
    token: str,
    connections: int,
    events: int,
    seconds: float,
    loads: multiprocessing.Queue[Load],
) -> None:
    """Each connection sends its next request as soon as the one before is acknowledged."""
    at, load = httpx.URL(url), Load()
    requests = [_request(at.netloc.decode(), token, number, events) for number in range(BODIES)]
    selector, began = selectors.DefaultSelector(), dict[int, float]()
    for _ in range(connections):
        made = socket.create_connection((at.host, at.port or 80))
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(made, selectors.EVENT_READ)
    until = time.monotonic() + seconds
    for key in selector.get_map().values():
        began[key.fd] = time.monotonic()
        key.fileobj.sendall(requests[0])  # type: ignore[union-attr]
    while began:
        for key, _ in selector.select():
            made, now = key.fileobj, time.monotonic()
            answer = made.recv(65_536)  # type: ignore[union-attr]
            found = _ACCEPTED.search(answer)
            if not answer.startswith(b"HTTP/1.1 200 ") or found is None:
                raise SystemExit(f"a request was not accepted: {answer!r}")
            load.accepted += int(found[1])
            load.requests += 1
            load.waited_s.append(now - began[key.fd])
            if now >= until:
                del began[key.fd]
                continue
            began[key.fd] = now
            made.sendall(requests[load.requests % BODIES])  # type: ignore[union-attr]
    loads.put(load)


def _request(authority: str, token: str, number: int, events: int) -> bytes:
    body = b"".join(
        b'{"event_id":"event-%d-%d","user":"user-%d","url":"/page/%d",'
        b'"ts":"2026-01-01T00:%02d:00.000000Z","ms":%d}\n'
        % (number, i, (number * 7919 + i * 31) % 20_000, i % 500, i % 60, i)
        for i in range(events)
    )
    head = (
        f"POST {EVENTS} HTTP/1.1\r\nHost: {authority}\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/x-ndjson\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _logged(project: Path) -> int:
    """The events of the log, which is read beside the server."""
    layout = Layout.of(load_project(project))
    return sum(open_reader(layout.log("clicks")).end().offsets)


def _fsyncs(folder: Path, seconds: float) -> float:
    """How often a second this disk makes some bytes durable, one after another."""
    path, count, data = folder / "fsyncs", 0, os.urandom(BLOCK_BYTES)
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    began = time.monotonic()
    while (took := time.monotonic() - began) < seconds:
        os.pwrite(fd, data, count * BLOCK_BYTES)
        os.fdatasync(fd)
        count += 1
    os.close(fd)
    path.unlink()
    return count / took


def _numbers(load: Load, seconds: float, cpu_s: float) -> dict[str, float]:
    waited = sorted(load.waited_s)
    return {
        "requests_per_second": load.requests / seconds,
        "events_per_second": load.accepted / seconds,
        "server_cpu_us_per_request": 1e6 * cpu_s / load.requests,
        "server_cpu_us_per_event": 1e6 * cpu_s / load.accepted,
        "p50_ms": 1000 * waited[len(waited) // 2],
        "p99_ms": 1000 * waited[int(len(waited) * 0.99)],
    }


def _tell(found: dict[str, Any], console: Console) -> None:
    one, many, batch = found["single"], found["single_64"], found["batch"]
    console.print(
        f"intake: one event a request {one['requests_per_second']:,.0f}/s with 1 connection "
        f"(p99 {one['p99_ms']:.1f} ms), {many['requests_per_second']:,.0f}/s with {CONNECTIONS} "
        f"({many['server_cpu_us_per_request']:.0f} µs of processor time each); "
        f"{BATCH_EVENTS} events a request {batch['events_per_second']:,.0f} events/s "
        f"({batch['server_cpu_us_per_event']:.2f} µs each); "
        f"the disk alone {found['fsyncs_per_second']:,.0f} fsyncs/s before and "
        f"{found['fsyncs_per_second_after']:,.0f} after"
    )


def _serve(project: Path) -> None:
    """Serve the API of a project whose Spark is not started, until the process is ended."""
    from headrace.access.access import Access
    from headrace.access.audit_log import Actor
    from headrace.access.token import TokenRequest
    from headrace.api.server import HttpServer
    from headrace.define.settings import HttpSettings
    from headrace.run.log_file import log_to_file
    from headrace.run.offline import Offline

    opened = load_project(project)
    log_to_file(Layout.of(opened), opened.settings.name, opened.settings.log)
    service: Any = Offline(opened)
    access, actor = Access(project / "access.db", "intake"), Actor("bench")
    access.add_user("bench", "admin", actor)
    server = HttpServer(service, HttpSettings(port=0), access)
    server.start()
    print(server.url, access.create_token(TokenRequest("bench"), actor).secret, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        _serve(Path(sys.argv[2]))
    else:
        with tempfile.TemporaryDirectory(prefix="headrace-intake-") as name:
            length = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
            print(json.dumps(measure(Path(name), length, Console()), indent=2))
