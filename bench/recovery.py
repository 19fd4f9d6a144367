"""How soon a project is fresh again after a kill.

A project with merged views, carried views and a pattern gets events at an even pace. Its process is
killed again and again, and started again at once; the producer repeats what was not acknowledged.
The first fresh answer counts every event that was acknowledged before the project was ready, so
also those that came in while it started. At the end each acknowledged event must be counted exactly
once, or nothing is reported.

    python -m bench.recovery 20
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import httpx
from rich.console import Console

from bench.process import tree_cpu_s

RATE, POST_EVENTS, PAGES = 400, 20, 7
POLL_S, WAIT_S_MAX = 0.02, 300.0
LIFE_S = 2.0, 8.0  # from the first fresh answer to the kill
COMMAND = [sys.executable, "-m", "headrace"]
SETTINGS = """
name = "recovery"
[http]
port = 0
"""
DEFINITIONS = """
CREATE STREAM clicks (n BIGINT NOT NULL, page STRING NOT NULL, ts TIMESTAMP NOT NULL,
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE) WITH (key = 'page', id = 'event_id');
CREATE TABLE sections (page STRING, section STRING) USING csv LOCATION 'sections.csv';
CREATE VIEW total AS SELECT count(*) AS hits FROM clicks;
CREATE VIEW pages AS SELECT page, count(*) AS hits, sum(n) AS total, count(DISTINCT n) AS numbers
  FROM clicks GROUP BY page;
CREATE VIEW minutes AS SELECT s.section, window(ts, '1 minute') AS minute, count(*) AS hits
  FROM clicks c LEFT JOIN sections s ON c.page = s.page
  GROUP BY s.section, window(ts, '1 minute');
CREATE VIEW tens AS SELECT page, count_window(10) AS first, count(*) AS hits FROM clicks
  GROUP BY page, count_window(10);
CREATE STREAM numbered AS SELECT page, row_number() OVER (PARTITION BY page ORDER BY ts) AS place
  FROM clicks;
CREATE VIEW places AS SELECT page, max(place) AS hits FROM numbered GROUP BY page;
CREATE STREAM pairs AS SELECT * FROM clicks MATCH_RECOGNIZE (PARTITION BY page ORDER BY ts
  MEASURES count(*) AS n PATTERN (one other));
CREATE VIEW matches AS SELECT page, count(*) AS found FROM pairs GROUP BY page;
"""
COUNTED = ("total", "pages", "minutes", "tens", "places")  # the sum of their hits is all events


@dataclass(frozen=True, slots=True)
class Recovery:
    """The seconds between the steps of one recovery, and what it cost."""

    kill_to_serving: float
    kill_to_ready: float
    ready_to_commit: float  # the first epoch that counts new events
    ready_to_fresh: float
    kill_to_fresh: float
    backlog: float  # events that were not counted when it was ready
    cpu_to_ready: float  # processor time of the process, its JVM and their workers
    cpu_to_fresh: float


@dataclass
class Load:
    """A producer; `run` ends when `done` is set and nothing is left to acknowledge."""

    client: httpx.Client | None = None  # of the process that runs
    acknowledged: list[tuple[float, int]] = field(default_factory=lambda: [(0.0, 0)])
    done: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        sent, due = 0, time.monotonic()
        while not self.done.is_set():
            body = _events(sent)
            while not self._accepted(body):
                time.sleep(POLL_S)
                due = time.monotonic()
            sent += POST_EVENTS
            self.acknowledged.append((time.monotonic(), sent))
            due += POST_EVENTS / RATE
            time.sleep(max(0.0, due - time.monotonic()))

    def _accepted(self, body: str) -> bool:
        if self.client is None:
            return False
        try:
            answer = self.client.post("/v1/streams/clicks/events", content=body)
        except httpx.HTTPError:
            return False
        return answer.status_code == 200

    @property
    def events(self) -> int:
        return self.acknowledged[-1][1]

    def before(self, at: float) -> int:
        """The events that were acknowledged before a time."""
        return next(sent for when, sent in reversed(self.acknowledged) if when <= at)


class Process:
    """`headrace run` as a child; `reported` is when each kind of report first came."""

    def __init__(self, project: Path) -> None:
        self.project, self.url = project, ""
        self.client = httpx.Client()
        self.reported: dict[str, float] = {}
        with (project / "stderr.log").open("ab") as errors:
            self.child = subprocess.Popen(
                [*COMMAND, "run", str(project), "--json"],
                stdout=subprocess.PIPE, stderr=errors, text=True,
            )  # fmt: skip
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            report = json.loads(line)
            self.url = report.get("url", self.url)
            self.reported.setdefault(report["kind"], time.monotonic())

    def wait_for(self, kind: str) -> float:
        """When this was reported."""
        deadline = time.monotonic() + WAIT_S_MAX
        while kind not in self.reported:
            if self.child.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(
                    f"no '{kind}': {(self.project / 'stderr.log').read_text()[-2000:]}"
                )
            time.sleep(POLL_S / 4)
        return self.reported[kind]

    def connect(self) -> float:
        """Make its client; returns when it could be made."""
        serving = self.wait_for("serving")
        token = (self.project / ".headrace" / "run.token").read_text("utf-8")
        headers = {"Authorization": f"Bearer {token}"}
        self.client = httpx.Client(base_url=self.url, headers=headers, timeout=60)
        return serving

    def hits(self, view: str = "total") -> int:
        rows = self.client.get(f"/v1/views/{view}?limit=10000").json().get("rows", ())
        return sum(row["hits"] for row in rows)

    def kill(self) -> None:
        self.child.kill()
        self.child.wait()


def measure(folder: Path, kills: int, console: Console, seed: int = 7) -> dict[str, Any]:
    """The medians and the 99th percentiles of so many recoveries, in seconds."""
    project = _project(folder / "recovery")
    load, process, rng = Load(), Process(project), Random(seed)
    threading.Thread(target=load.run, daemon=True).start()
    try:
        _recovered(load, process, time.monotonic())
        found = []
        for _ in range(kills):
            time.sleep(rng.uniform(*LIFE_S))
            load.client, killed = None, time.monotonic()
            process.kill()
            process = Process(project)
            found.append(_recovered(load, process, killed))
            console.print(_line(found[-1]))
        load.done.set()
        _check(load, process)
    finally:
        process.kill()
    result = {"kills": kills, "events": load.events, **_quantiles(found)}
    console.print(
        f"after a kill, at {RATE} events/s: ready in {result['kill_to_ready_p50']:.1f} s; first "
        f"commit {result['ready_to_commit_p50']:.1f} s and first fresh answer "
        f"{result['ready_to_fresh_p50']:.1f} s after that; from kill to fresh p50 "
        f"{result['kill_to_fresh_p50']:.1f} s, p99 {result['kill_to_fresh_p99']:.1f} s"
    )
    return result


def _recovered(load: Load, process: Process, killed: float) -> Recovery:
    """Wait until a process that was started gives a fresh answer."""
    serving, pid = process.connect(), process.child.pid
    load.client, before = process.client, process.hits()
    ready = process.wait_for("ready")
    cpu_ready, at_ready = tree_cpu_s(pid), load.before(ready)
    committed = fresh = 0.0
    while not fresh:
        hits, now = process.hits(), time.monotonic()
        if not committed and hits > before:
            committed = now
        if committed and hits >= at_ready:
            fresh = now
        if now - ready > WAIT_S_MAX:
            raise SystemExit("no answer was fresh")
        time.sleep(POLL_S)
    return Recovery(
        serving - killed, ready - killed, committed - ready, fresh - ready, fresh - killed,
        at_ready - before, cpu_ready, tree_cpu_s(pid),
    )  # fmt: skip


def _check(load: Load, process: Process) -> None:
    """Every view counts each acknowledged event, and none twice."""
    deadline = time.monotonic() + WAIT_S_MAX
    while (found := {view: process.hits(view) for view in COUNTED}) and (
        set(found.values()) != {load.events}
    ):
        if time.monotonic() > deadline:
            raise SystemExit(f"{load.events} events were acknowledged, and counted: {found}")
        time.sleep(0.2)


def _project(project: Path) -> Path:
    project.mkdir(parents=True)
    (project / "headrace.toml").write_text(SETTINGS)
    (project / "recovery.sql").write_text(DEFINITIONS)
    rows = "".join(f"/{page},{'even' if page % 2 == 0 else 'odd'}\n" for page in range(PAGES))
    (project / "sections.csv").write_text("page,section\n" + rows)
    return project


def _events(first: int) -> str:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return "\n".join(
        f'{{"event_id":"e{n}","n":{n},"page":"/{n % PAGES}","ts":"{now}"}}'
        for n in range(first, first + POST_EVENTS)
    )


def _quantiles(found: Sequence[Recovery]) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for name in Recovery.__slots__:
        values = sorted(getattr(each, name) for each in found)
        numbers[f"{name}_p50"] = median(values)
        numbers[f"{name}_p99"] = values[int(len(values) * 0.99)]
    return numbers


def _line(found: Recovery) -> str:
    return "  ".join(f"{name} {getattr(found, name):.1f}" for name in Recovery.__slots__)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="headrace-recovery-") as name:
        count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
        print(json.dumps(measure(Path(name), count, Console()), indent=2))
