"""From acknowledgement to answer: how long until an acknowledged event counts in what a reader
gets.

A producer posts 5,000 events/s; a reader asks for the total again and again. The n-th
acknowledged event is visible when an answer counts n or more.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console

from bench.process import wait_ready

RATE, POST_EVENTS = 5_000, 100
DEFINITIONS = """
CREATE STREAM probes (n BIGINT NOT NULL, page STRING NOT NULL, ts TIMESTAMP NOT NULL,
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE);
CREATE VIEW total AS SELECT count(*) AS n FROM probes;
CREATE VIEW pages AS SELECT page, window(ts, '1 minute') AS minute, count(*) AS hits FROM probes
  GROUP BY page, window(ts, '1 minute');
"""


def measure(folder: Path, seconds: float, console: Console) -> dict[str, float]:
    """p50 and p99 of the time to an answer, in milliseconds."""
    project = folder / "latency"
    project.mkdir(parents=True)
    (project / "headrace.toml").write_text('name = "latency"\n[http]\nport = 0\n')
    (project / "latency.sql").write_text(DEFINITIONS)
    command = [sys.executable, "-m", "headrace", "run", str(project), "--json"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        url = wait_ready(process)
        token = (project / ".headrace" / "run.token").read_text("utf-8")
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}) as client:
            delays = _probe(client, seconds)
    finally:
        process.terminate()
        process.wait(60)
    delays.sort()
    result = {
        "events_per_second": RATE,
        "samples": len(delays),
        "p50_ms": 1000 * delays[len(delays) // 2],
        "p99_ms": 1000 * delays[int(len(delays) * 0.99)],
    }
    console.print(
        f"at {RATE:,} events/s, from acknowledgement to answer: "
        f"p50 {result['p50_ms']:.0f} ms, p99 {result['p99_ms']:.0f} ms ({len(delays):,} posts)"
    )
    return result


def _probe(client: httpx.Client, seconds: float) -> list[float]:
    acknowledged: list[tuple[int, float]] = []
    done = threading.Event()
    producer = threading.Thread(
        target=_produce, args=(client, seconds, acknowledged, done), daemon=True
    )
    producer.start()
    delays: list[float] = []
    at = 0
    warm = time.monotonic() + seconds / 4
    while not (done.is_set() and at == len(acknowledged)):
        rows: list[dict[str, Any]] = client.get("/v1/views/total").json()["rows"]
        now = time.monotonic()
        while at < len(acknowledged) and acknowledged[at][0] <= rows[0]["n"]:
            if acknowledged[at][1] > warm:
                delays.append(now - acknowledged[at][1])
            at += 1
        time.sleep(0.01)
    return delays


def _produce(
    client: httpx.Client,
    seconds: float,
    acknowledged: list[tuple[int, float]],
    done: threading.Event,
) -> None:
    sent, began = 0, time.monotonic()
    while time.monotonic() - began < seconds:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        lines = [f'{{"n":{sent + i},"page":"/{i % 20}","ts":"{now}"}}' for i in range(POST_EVENTS)]
        client.post("/v1/streams/probes/events", content="\n".join(lines)).raise_for_status()
        sent += POST_EVENTS
        acknowledged.append((sent, time.monotonic()))
        time.sleep(max(0.0, began + sent / RATE - time.monotonic()))
    done.set()
