"""A project that runs in a process of its own, and a producer that keeps a journal of what was
acknowledged.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx

from tests.run.asking import get, known, meet

SETTINGS = """
name = "kills"
[speed]
trigger = "200 ms"
group = "500 ms"
[archive]
interval = "2 s"
compact_files = 4
[batch]
interval = "3 s"
"""
DEFINITIONS = """
CREATE STREAM clicks (n BIGINT NOT NULL, page STRING NOT NULL, ts TIMESTAMP NOT NULL,
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE) WITH (key = 'page', id = 'event_id');
CREATE VIEW pages AS SELECT page, count(*) AS hits, sum(n) AS total, count(DISTINCT n) AS numbers
  FROM clicks GROUP BY page;
CREATE VIEW total AS SELECT count(*) AS hits, min(n) AS first, max(n) AS last FROM clicks;
"""

JOINED = """
CREATE STREAM orders (n BIGINT NOT NULL, page STRING NOT NULL, ts TIMESTAMP NOT NULL,
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE) WITH (key = 'page', id = 'event_id');
CREATE STREAM payments (n BIGINT NOT NULL, ts TIMESTAMP NOT NULL,
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE) WITH (id = 'event_id');
CREATE STREAM paid AS SELECT o.n, o.page FROM orders o JOIN payments p
  ON o.n = p.n AND p.ts BETWEEN o.ts - INTERVAL 1 HOUR AND o.ts + INTERVAL 1 HOUR;
CREATE VIEW pages AS SELECT page, count(*) AS hits, sum(n) AS total FROM paid GROUP BY page;
CREATE VIEW total AS SELECT count(*) AS hits FROM paid;
"""

# Views that are merged, by key and by each kind of time window, and views that are carried from
# event to event.
ALL_KINDS = f"""{DEFINITIONS}
CREATE VIEW minutes AS SELECT page, window(ts, '1 minute') AS minute, count(*) AS hits,
  sum(n) AS total FROM clicks GROUP BY page, window(ts, '1 minute');
CREATE VIEW slides AS SELECT page, window(ts, '1 minute', '30 seconds') AS slide,
  count(*) / 2 AS hits, sum(n) / 2 AS total FROM clicks
  GROUP BY page, window(ts, '1 minute', '30 seconds');
CREATE VIEW sittings AS SELECT page, session_window(ts, '5 seconds') AS sitting, count(*) AS hits,
  sum(n) AS total FROM clicks GROUP BY page, session_window(ts, '5 seconds');
CREATE STREAM numbered AS SELECT page,
  row_number() OVER (PARTITION BY page ORDER BY ts) AS place,
  sum(n) OVER (PARTITION BY page ORDER BY ts) AS so_far FROM clicks;
CREATE VIEW places AS SELECT page, max(place) AS hits, max_by(so_far, place) AS total
  FROM numbered GROUP BY page;
CREATE VIEW tens AS SELECT page, count_window(10) AS first, count(*) AS hits, sum(n) AS total
  FROM clicks GROUP BY page, count_window(10);
CREATE STREAM pairs AS SELECT * FROM clicks MATCH_RECOGNIZE (PARTITION BY page ORDER BY ts
  MEASURES count(*) AS n, MATCH_NUMBER() AS number PATTERN (one other));
CREATE VIEW matches AS SELECT page, count(*) AS found, max(number) AS newest, sum(n) AS events
  FROM pairs GROUP BY page;
CREATE VIEW visits AS SELECT sum(hits) AS hits FROM pages;
"""

SILENT = """
CREATE STREAM clicks (n BIGINT NOT NULL, page STRING NOT NULL, ts TIMESTAMP NOT NULL,
  WATERMARK ts DELAY OF INTERVAL 1 SECOND)
  WITH (key = 'page', partitions = 2, watermark.idle = '15 seconds');
CREATE STREAM pairs AS SELECT * FROM clicks MATCH_RECOGNIZE (PARTITION BY page ORDER BY ts
  MEASURES first(one.n) AS first, other.n AS last PATTERN (one other));
CREATE VIEW matches AS SELECT page, first, last, count(*) AS found FROM pairs
  GROUP BY page, first, last;
CREATE VIEW total AS SELECT count(*) AS hits FROM clicks;
"""


def make_project(folder: Path, settings: str = SETTINGS, definitions: str = DEFINITIONS) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "headrace.toml").write_text(settings)
    (folder / "project.sql").write_text(definitions)
    return folder


class Running:
    """`headrace run` as a child; `reports` are its JSON lines."""

    def __init__(self, folder: Path, *arguments: str, failpoint: str | None = None) -> None:
        environment = {k: v for k, v in os.environ.items() if k != "HEADRACE_FAILPOINT"}
        if failpoint:
            environment["HEADRACE_FAILPOINT"] = failpoint
        self.folder, self.reports = folder, list[dict[str, Any]]()
        self.other_lines: list[str] = []
        self.log = (folder / "stderr.log").open("ab")
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "headrace",
                "run",
                str(folder),
                "--json",
                "--port",
                "0",
                *arguments,
            ],
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=environment,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _close(self) -> None:
        self._reader.join()
        self.log.close()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                self.reports.append(json.loads(line))
            else:
                self.other_lines.append(line)

    def wait_for(self, kind: str, seconds: float = 120) -> dict[str, Any]:
        """The first report of this kind; fails when the process ends before."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = next((report for report in self.reports if report["kind"] == kind), None)
            if found:
                if "url" in found:
                    meet(found["url"], self.folder)
                return found
            if self.process.poll() is not None:
                self._reader.join()
                raise AssertionError(
                    f"ended with {self.process.returncode} before '{kind}': {self.reports}"
                )
            time.sleep(0.05)
        raise AssertionError(f"no '{kind}' in {seconds} s: {self.reports}")

    def finish(self, seconds: float = 180) -> dict[str, Any]:
        """Wait for the end of a run that ends by itself; its summary."""
        code = self.process.wait(seconds)
        self._close()
        summary = next(report for report in self.reports if report["kind"] == "summary")
        assert code == 0, summary
        return summary

    def wait_killed(self, seconds: float = 200) -> None:
        try:
            assert self.process.wait(seconds) == -9
        finally:
            self.kill()

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(120) == 0, self.reports
        self._close()
        assert self.other_lines == [], "a run with --json prints JSON only"

    def kill(self) -> None:
        if self.process.poll() is None:
            print(*self.reports[-30:], sep="\n")  # what a test that failed wants to know
            self.process.kill()
            self.process.wait()
        self._close()


class Producer:
    """Sends numbered events; what was acknowledged is in the journal, what was not is sent
    again.
    """

    def __init__(self, *streams: str, rate: int = 500) -> None:
        self.streams, self.rate = streams or ("clicks",), rate
        self.acknowledged: dict[str, dict[str, Any]] = {}
        self.pending: list[dict[str, Any]] = []
        self.next = 0

    def send(self, url: str, stop: threading.Event, size: int = 20) -> None:
        """Until `stop` is set or the server is gone."""
        with httpx.Client(base_url=url, headers=known(url), timeout=10) as client:
            while not stop.is_set():
                batch = self.pending or self._make(size)
                self.pending = batch
                body = "\n".join(json.dumps(event) for event in batch)
                try:
                    paths = [f"/v1/streams/{stream}/events" for stream in self.streams]
                    answers = [client.post(path, content=body) for path in paths]
                except httpx.HTTPError:
                    return
                if all(answer.status_code == 200 for answer in answers):
                    self.acknowledged |= {event["event_id"]: event for event in batch}
                    self.pending = []
                stop.wait(size / self.rate)

    def _make(self, size: int) -> list[dict[str, Any]]:
        numbers = range(self.next, self.next + size)
        self.next += size
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        return [{"event_id": f"e{n}", "n": n, "page": f"/{n % 7}", "ts": now} for n in numbers]

    def flush(self, url: str) -> None:
        """Send what is pending until it is acknowledged."""
        self.send_until(url, len(self.acknowledged))

    def send_until(self, url: str, events: int) -> None:
        """Send until so many are acknowledged, and nothing is pending."""
        stop = threading.Event()
        sender = threading.Thread(target=self.send, args=(url, stop))
        sender.start()
        deadline = time.monotonic() + 30
        while (self.pending or len(self.acknowledged) < events) and time.monotonic() < deadline:
            time.sleep(0.05)
        stop.set()
        sender.join()
        assert not self.pending
        assert len(self.acknowledged) >= events

    def pairs(self, watermark: str) -> dict[str, int]:
        """How many pairs of events each page has that the watermark has passed."""
        passed = [e["page"] for e in self.acknowledged.values() if e["ts"] < watermark]
        return {page: count // 2 for page, count in Counter(passed).items() if count > 1}

    def expected(self) -> dict[str, dict[str, int]]:
        """What view `pages` must answer for the journal."""
        pages: dict[str, dict[str, int]] = {}
        for event in self.acknowledged.values():
            row = pages.setdefault(event["page"], {"hits": 0, "total": 0})
            row["hits"] += 1
            row["total"] += event["n"]
        return pages


def wait_fresh(url: str, events: int, seconds: float = 120) -> dict[str, Any]:
    """The status once speed has taken all; every acknowledged event must be visible then."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        rows = get(f"{url}/v1/views/total", timeout=30).json().get("rows")
        if rows and rows[0]["hits"] >= events:
            return dict(get(f"{url}/v1/status", timeout=30).json())
        time.sleep(0.1)
    raise AssertionError(f"not fresh in {seconds} s: {get(f'{url}/v1/status').text}")
