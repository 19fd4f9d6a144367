"""All at once for a minute: 200 readers of a live view, 50,000 events/s sent in batches, and one
who asks for a row of the view again and again.

What is measured is the time of such an answer, what the readers heard, and the memory of the
process with its JVM. Then every answer must count each acknowledged event once. The load is made
on the same machine, so it is made cheaply: bodies are prepared, sockets are plain, and the one who
asks has a process of its own, so that its clock does not wait for the others.

    python -m bench.live 60
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import httpx
from rich.console import Console

from bench.process import memory_mb, tree_cpu_s, tree_memory_mb, wait_ready

READERS, RATE, PAGES = 200, 50_000, 100
BODY_EVENTS, BODIES, PRODUCERS = 2_500, 20, 2
ASK_EVERY_S, MEMORY_EVERY_S, WARM_S = 0.02, 1.0, 15.0
SETTINGS = """
name = "live"
[http]
port = 0
"""
DEFINITIONS = """
CREATE STREAM clicks (page STRING NOT NULL, n BIGINT NOT NULL, ts TIMESTAMP NOT NULL,
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE);
CREATE VIEW pages AS SELECT page, count(*) AS hits, sum(n) AS total FROM clicks GROUP BY page;
"""


Memory = tuple[float, float]  # of the process alone, and with its JVM and workers


@dataclass
class Load:
    """What was sent, and what came of it."""

    host: str
    port: int
    token: str
    until: float = 0.0
    sent: int = 0
    posts: Counter[int] = field(default_factory=Counter)  # of each prepared body
    acknowledged_s: list[float] = field(default_factory=list)
    behind_s: float = 0.0
    heard: int = 0
    heard_bytes: int = 0
    open: int = 0
    cores: tuple[float, float] = 0.0, 0.0  # that the project used, and that the load itself used
    errors: list[str] = field(default_factory=list)

    def head(self, method: str, path: str, length: int = 0) -> bytes:
        lines = [
            f"{method} {path} HTTP/1.1", f"Host: {self.host}:{self.port}",
            f"Authorization: Bearer {self.token}",
        ]  # fmt: skip
        if length:
            lines += ["Content-Type: application/x-ndjson", f"Content-Length: {length}"]
        return "\r\n".join([*lines, "", ""]).encode()


def measure(folder: Path, seconds: float, console: Console) -> dict[str, Any]:
    """Run the load against a new project; the numbers, and whether all was counted once."""
    project = folder / "live"
    project.mkdir(parents=True)
    (project / "headrace.toml").write_text(SETTINGS)
    (project / "live.sql").write_text(DEFINITIONS)
    with (project / "stderr.log").open("wb") as errors:
        command = [sys.executable, "-m", "headrace", "run", str(project), "--json"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            url = wait_ready(process)
            found = _loaded(url, project, process.pid, seconds)
        finally:
            process.terminate()
            process.wait(60)
    _tell(found, console)
    return found


def _loaded(url: str, project: Path, pid: int, seconds: float) -> dict[str, Any]:
    token = (project / ".headrace" / "run.token").read_text("utf-8")
    host, port = url.removeprefix("http://").split(":")
    load = Load(host, int(port), token)
    bodies = [_body(number) for number in range(BODIES)]
    answers: multiprocessing.Queue[list[float]] = multiprocessing.Queue()
    asking = multiprocessing.Process(
        target=_ask, args=(host, int(port), token, WARM_S, seconds, answers)
    )
    asking.start()
    memory = asyncio.run(_run(load, bodies, pid, seconds))
    waited = answers.get(timeout=120)
    asking.join()
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}) as client:
        right = _counted(client, load, bodies)
    return _numbers(load, sorted(waited), memory, seconds, right)


async def _run(load: Load, bodies: list[bytes], pid: int, seconds: float) -> list[Memory]:
    """The readers and the producers; the memory while they were measured."""
    readers = [asyncio.create_task(_hear(load)) for _ in range(READERS)]
    load.until = time.monotonic() + WARM_S + seconds
    producers = [asyncio.create_task(_produce(load, bodies, n)) for n in range(PRODUCERS)]
    await asyncio.sleep(WARM_S)
    load.heard = load.heard_bytes = 0
    spent, made = tree_cpu_s(pid), time.process_time()
    memory: list[Memory] = []
    while time.monotonic() < load.until:
        memory.append((memory_mb(pid), await asyncio.to_thread(tree_memory_mb, pid)))
        if load.open < READERS:
            load.errors.append(f"{READERS - load.open} readers are not connected")
        await asyncio.sleep(MEMORY_EVERY_S)
    load.cores = (tree_cpu_s(pid) - spent) / seconds, (time.process_time() - made) / seconds
    await asyncio.gather(*producers)
    for reader in readers:
        reader.cancel()
    await asyncio.gather(*readers, return_exceptions=True)
    return memory


async def _hear(load: Load) -> None:
    """One reader of the live view: counts what it hears, and that it is not sent away."""
    reading, writing = await asyncio.open_connection(load.host, load.port)
    try:
        writing.write(load.head("GET", "/v1/live?topics=view:pages"))
        if b" 200 " not in (status := await reading.readline()):
            load.errors.append(f"a reader was answered {status!r}")
        load.open += 1
        while chunk := await reading.read(1 << 16):
            load.heard += chunk.count(b"event: view:pages\n")
            load.heard_bytes += len(chunk)
            if b'{"error"' in chunk or b"event: slow" in chunk or b"event: failed" in chunk:
                load.errors.append(f"a reader heard {chunk[:200]!r}")
        load.errors.append("a reader's connection was ended")
    finally:
        load.open -= 1
        writing.close()


async def _produce(load: Load, bodies: list[bytes], number: int) -> None:
    """Posts at an even pace; what is late is sent at once, so that the rate holds."""
    reading, writing = await asyncio.open_connection(load.host, load.port)
    path, pause = "/v1/streams/clicks/events", PRODUCERS * BODY_EVENTS / RATE
    requests = [load.head("POST", path, len(body)) + body for body in bodies]
    due = time.monotonic() + number * pause / PRODUCERS
    turn = number
    while (now := time.monotonic()) < load.until:
        if now < due:
            await asyncio.sleep(due - now)
        load.behind_s = max(load.behind_s, time.monotonic() - due)
        began = time.monotonic()
        writing.write(requests[turn % BODIES])
        status, answer = await _answer(reading)
        load.acknowledged_s.append(time.monotonic() - began)
        if status != 200 or json.loads(answer)["accepted"] != BODY_EVENTS:
            load.errors.append(f"a post was answered {status} {answer[:200]!r}")
        else:
            load.sent += BODY_EVENTS
            load.posts[turn % BODIES] += 1
        turn += PRODUCERS
        due += pause
    writing.close()


async def _answer(reading: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reading.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
    return int(head.split(b" ", 2)[1]), await reading.readexactly(length)


def _ask(
    host: str, port: int, token: str, warm_s: float, seconds: float,
    answers: multiprocessing.Queue[list[float]],
) -> None:  # fmt: skip
    """Ask for one row of the view, steadily; a time below nothing is an answer that was wrong."""
    waited: list[float] = []
    rng = random.Random(7)
    begin = time.monotonic() + warm_s
    until = begin + seconds
    with httpx.Client(
        base_url=f"http://{host}:{port}", headers={"Authorization": f"Bearer {token}"}, timeout=30
    ) as client:
        while (now := time.monotonic()) < until:
            answer = client.get(f"/v1/views/pages?page=/{rng.randrange(PAGES)}")
            took = time.monotonic() - now
            if now >= begin:
                waited.append(took if answer.status_code == 200 else -1.0)
            time.sleep(max(0.0, ASK_EVERY_S - took))
    answers.put(waited)


def _body(number: int) -> bytes:
    """Lines of events; `_expected` knows what is in them."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return b"".join(
        b'{"page":"/%d","n":%d,"ts":"%s"}\n' % ((number + i) % PAGES, i, now.encode())
        for i in range(BODY_EVENTS)
    )


def _expected(posts: Counter[int]) -> dict[str, tuple[int, int]]:
    hits, totals = Counter[int](), Counter[int]()
    for number, times in posts.items():
        for i in range(BODY_EVENTS):
            hits[(number + i) % PAGES] += times
            totals[(number + i) % PAGES] += times * i
    return {f"/{page}": (hits[page], totals[page]) for page in hits}


def _counted(client: httpx.Client, load: Load, bodies: list[bytes]) -> bool:
    """Whether the view comes to count each acknowledged event, and none twice."""
    expected, deadline = _expected(load.posts), time.monotonic() + 120
    while True:
        rows = client.get("/v1/views/pages?limit=1000", timeout=30).json()["rows"]
        found = {row["page"]: (row["hits"], row["total"]) for row in rows}
        if found == expected or time.monotonic() > deadline:
            return found == expected
        time.sleep(0.2)


def _numbers(
    load: Load, waited: list[float], memory: list[Memory], seconds: float, right: bool
) -> dict[str, Any]:
    load.errors += ["an answer was none"] * sum(took < 0 for took in waited)
    own, tree = zip(*memory, strict=True)
    acknowledged = sorted(load.acknowledged_s)
    return {
        "seconds": seconds, "readers": READERS, "cores": os.cpu_count(), "load": os.getloadavg()[0],
        "events_per_second": load.sent / (seconds + WARM_S), "behind_s_max": load.behind_s,
        "acknowledged_ms_p50": 1000 * _quantile(acknowledged, 0.5),
        "acknowledged_ms_p99": 1000 * _quantile(acknowledged, 0.99),
        "answers": len(waited), "read_ms_p50": 1000 * _quantile(waited, 0.5),
        "read_ms_p99": 1000 * _quantile(waited, 0.99), "read_ms_max": 1000 * waited[-1],
        "heard_per_reader_per_second": load.heard / READERS / seconds,
        "memory_mb": _quarters(own), "memory_mb_max": max(own),
        "tree_memory_mb": _quarters(tree), "tree_memory_mb_max": max(tree),
        "cores_used": load.cores[0], "cores_of_the_load": load.cores[1],
        "errors": len(load.errors), "first_errors": load.errors[:5],
        "events": load.sent, "all_counted_once": right,
    }  # fmt: skip


def _quarters(samples: Sequence[float]) -> list[float]:
    """The medians of the four quarters of the time: whether something grows, whatever peaks."""
    size = max(1, len(samples) // 4)
    return [median(samples[n * size :][:size]) for n in range(min(4, len(samples)))]


def _quantile(values: list[float], share: float) -> float:
    return values[int(len(values) * share)] if values else 0.0


def _listed(numbers: list[float]) -> str:
    return ", ".join(f"{number:,.0f}" for number in numbers)


def _tell(found: dict[str, Any], console: Console) -> None:
    console.print(
        f"live: {found['readers']} readers and {found['events_per_second']:,.0f} events/s for "
        f"{found['seconds']:.0f} s: a view read p50 {found['read_ms_p50']:.0f} ms, "
        f"p99 {found['read_ms_p99']:.0f} ms; a post p99 {found['acknowledged_ms_p99']:.0f} ms; "
        f"{found['heard_per_reader_per_second']:.1f} live events a reader and second; "
        f"memory by quarters of the time {_listed(found['memory_mb'])} MB, at most "
        f"{found['memory_mb_max']:,.0f}; with the JVM {_listed(found['tree_memory_mb'])} MB, "
        f"at most {found['tree_memory_mb_max']:,.0f}; "
        f"{found['cores_used']:.2f} cores; {found['errors']} errors; "
        f"of {found['events']:,} events all counted once: "
        f"{'yes' if found['all_counted_once'] else 'NO'} (load {found['load']:.1f})"
    )
    for error in found["first_errors"]:
        console.print(f"  {error}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="headrace-live-") as name:
        length = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
        print(json.dumps(measure(Path(name), length, Console()), indent=2))
