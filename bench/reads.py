"""Reading a large view over HTTP while events come in: 4 M events are loaded, 200,000 keys change
at 5,000 events/s, and clients ask for rows.

One client asks each question in turn; then several ask for single rows as fast as they can. Each
client is a process of its own, so that its clock waits for nobody. At the end the view must count
every acknowledged event once.

    python -m bench.reads 30
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import httpx
from rich.console import Console

from bench.process import memory_mb, wait_ready

EVENTS, USERS, RATE, POST_EVENTS, CLIENTS = 4_000_000, 200_000, 5_000, 500, 4
WARM_READS = 20
DEFINITIONS = """
CREATE STREAM clicks (user BIGINT NOT NULL, ms BIGINT NOT NULL, ts TIMESTAMP NOT NULL,
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE);
CREATE VIEW users AS SELECT user, count(*) AS n, sum(ms) AS ms, max(ts) AS last
  FROM clicks GROUP BY user;
CREATE VIEW minutes AS SELECT window(ts, '1 minute') AS minute, count(*) AS n, sum(ms) AS ms
  FROM clicks GROUP BY window(ts, '1 minute');
"""
Request = tuple[str, str, str | None]  # method, path, body


def _sql(text: str) -> Callable[[random.Random], Request]:
    def ask(rng: random.Random) -> Request:
        return "POST", "/v1/sql", json.dumps({"sql": text.format(user=rng.randrange(USERS))})

    return ask


def _get(path: str) -> Callable[[random.Random], Request]:
    return lambda rng: ("GET", path.format(user=rng.randrange(USERS)), None)


QUESTIONS: dict[str, Callable[[random.Random], Request]] = {
    "point": _get("/v1/views/users?user={user}"),
    "point in SQL": _sql("SELECT * FROM users WHERE user = {user}"),
    "limit 100": _sql("SELECT * FROM users LIMIT 100"),
    "order limit 100": _sql("SELECT * FROM users ORDER BY n DESC LIMIT 100"),
    "range of 360": _get(
        "/v1/views/minutes?from=2026-01-01T06:00:00Z&to=2026-01-01T12:00:00Z&limit=1000"
    ),
    "group": _sql("SELECT user % 10 AS d, sum(n) AS n FROM users GROUP BY user % 10"),
}


def measure(folder: Path, seconds: float, console: Console) -> dict[str, Any]:
    """Milliseconds at the median and at 99 %, by question, and single rows a second in all."""
    project = folder / "reads"
    project.mkdir(parents=True)
    (project / "headrace.toml").write_text('name = "reads"\n[http]\nport = 0\n')
    (project / "reads.sql").write_text(DEFINITIONS)
    _write_events(project / "history.json")
    command = [sys.executable, "-m", "headrace", "run", str(project), "--json"]
    with (project / "stderr.log").open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            url = wait_ready(process)
            found = _measured(url, project, process.pid, seconds)
            _tell(found, console)
        finally:
            process.terminate()
            process.wait(120)
    return found


def _write_events(path: Path) -> None:
    """Four million events of one day; every user has some."""
    duckdb.sql(f"""
        COPY (SELECT i % {USERS} AS "user", hash(i) % 1000 AS ms,
                strftime(make_timestamp(1767225600000000 + i * 86400000000 // {EVENTS}),
                  '%Y-%m-%dT%H:%M:%S.%fZ') AS ts
              FROM range({EVENTS}) t(i)) TO '{path}' (FORMAT json)
    """)


def _measured(url: str, project: Path, pid: int, seconds: float) -> dict[str, Any]:
    headrace = [sys.executable, "-m", "headrace"]
    subprocess.run([*headrace, "send", "clicks", "history.json"], cwd=project, check=True)
    headers = {"Authorization": f"Bearer {(project / '.headrace' / 'run.token').read_text()}"}
    with httpx.Client(base_url=url, headers=headers, timeout=60) as client:
        _wait_counted(client, EVENTS)
        client.post("/v1/sql", json={"sql": "SELECT max(n) FROM users"})
        stop, sent = threading.Event(), [EVENTS]
        producer = threading.Thread(target=_produce, args=(url, headers, stop, sent))
        producer.start()
        try:
            with multiprocessing.Pool(CLIENTS) as clients:
                share = seconds / len(QUESTIONS)
                alone = {
                    name: clients.apply(_ask, (url, headers, name, share, 0)) for name in QUESTIONS
                }
                given = [(url, headers, "point", seconds, number) for number in range(CLIENTS)]
                together = clients.starmap(_ask, given)
        finally:
            stop.set()
            producer.join()
        _wait_counted(client, sent[0])
        kept = client.get("/v1/system").json()["process"]["kept_rows_bytes"]
    return {
        "questions": {name: _quantiles(times) for name, times in alone.items()},
        "points_per_second": sum(map(len, together)) / seconds,
        "together": _quantiles([took for times in together for took in times]),
        "events": sent[0],
        "memory_mb": memory_mb(pid),
        "kept_rows_mb": kept / 1e6,
    }


def _wait_counted(client: httpx.Client, events: int) -> None:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        answer = client.post("/v1/sql", json={"sql": "SELECT sum(n) AS n FROM users"}).json()
        if answer["rows"] and answer["rows"][0]["n"] == events:
            return
        time.sleep(0.5)
    raise SystemExit(f"the view does not come to count {events:,} events: {answer['rows']}")


def _produce(url: str, headers: dict[str, str], stop: threading.Event, sent: list[int]) -> None:
    rng, due = random.Random(1), time.monotonic()
    with httpx.Client(base_url=url, headers=headers, timeout=60) as client:
        while not stop.is_set():
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            events = (
                f'{{"user":{rng.randrange(USERS)},"ms":7,"ts":"{now}"}}\n'
                for _ in range(POST_EVENTS)
            )
            answer = client.post(
                "/v1/streams/clicks/events",
                content="".join(events),
                headers={"Content-Type": "application/x-ndjson"},
            )
            sent[0] += answer.raise_for_status().json()["accepted"]
            due += POST_EVENTS / RATE
            stop.wait(max(0.0, due - time.monotonic()))


def _ask(url: str, headers: dict[str, str], name: str, seconds: float, seed: int) -> list[float]:
    """The seconds that each answer took. The client is Python's own, which costs least: it shares
    two cores with the server.
    """
    rng, times, at = random.Random(seed), [], httpx.URL(url)
    client = http.client.HTTPConnection(at.host, at.port, timeout=60)
    until = time.monotonic() + seconds
    while (began := time.monotonic()) < until:
        method, path, body = QUESTIONS[name](rng)
        client.request(method, path, body, headers | {"Content-Type": "application/json"})
        answer = client.getresponse()
        rows = json.loads(answer.read())["rows"]
        times.append(time.monotonic() - began)
        if not rows:
            raise SystemExit(f"'{name}' has no rows")
    client.close()
    return times[WARM_READS:]


def _quantiles(times: list[float]) -> dict[str, float]:
    times = sorted(times)
    at = {"p50_ms": 0.5, "p99_ms": 0.99}
    return {name: 1000 * times[int(len(times) * share)] for name, share in at.items()} | {
        "answers": len(times)
    }


def _tell(found: dict[str, Any], console: Console) -> None:
    for name, took in found["questions"].items():
        console.print(
            f"{name}: p50 {took['p50_ms']:.1f} ms, p99 {took['p99_ms']:.1f} ms "
            f"({took['answers']:,} answers)"
        )
    console.print(
        f"{CLIENTS} clients: {found['points_per_second']:,.0f} single rows a second; "
        f"memory of the process {found['memory_mb']:,.0f} MB, "
        f"{found['kept_rows_mb']:,.0f} of them rows of views"
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="headrace-reads-") as name:
        length = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
        print(json.dumps(measure(Path(name), length, Console()), indent=2))
