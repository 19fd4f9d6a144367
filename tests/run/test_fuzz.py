"""Every route of a project that runs, asked with thousands of requests that nobody would think of:
no answer is an unexpected 5xx, and each is as the OpenAPI document says.

200 requests, and 20,000 in `make prove`.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chance import SEED, examples

from tests.run.asking import get, post
from tests.run.fuzzing import Fuzz
from tests.run.process import Running, make_project, wait_fresh
from tests.run.waiting import wait

pytestmark = pytest.mark.process

CASES = examples(100, 20_000)
SETTINGS = """
name = "fuzzed"
[speed]
trigger = "500 ms"
[archive]
interval = "2 s"
[batch]
interval = "10 minutes"
[query]
seconds_max = 10
"""
DEFINITIONS = """
CREATE STREAM clicks (page STRING NOT NULL, user STRING, ms BIGINT, price DOUBLE,
  ts TIMESTAMP NOT NULL, WATERMARK ts DELAY OF INTERVAL 1 MINUTE)
  WITH (key = 'user', id = 'event_id');
CREATE STREAM notes (line STRING, day DATE, ok BOOLEAN);
CREATE TABLE sections (page STRING, section STRING) USING csv LOCATION 'sections.csv';
CREATE STREAM visits AS SELECT c.page, c.user, c.ms, c.ts, s.section
  FROM clicks c LEFT JOIN sections s ON c.page = s.page;
CREATE VIEW total AS SELECT count(*) AS hits, max(ts) AS newest, sum(price) AS paid FROM clicks;
CREATE VIEW pages AS SELECT page, window(ts, '1 minute') AS minute, count(*) AS hits,
  count(DISTINCT user) AS users, avg(ms) AS ms FROM clicks GROUP BY page, window(ts, '1 minute');
CREATE VIEW visited AS SELECT section, user, count(*) AS hits FROM visits GROUP BY section, user;
CREATE VIEW sittings AS SELECT user, session_window(ts, '5 minutes') AS sitting, count(*) AS hits
  FROM clicks GROUP BY user, session_window(ts, '5 minutes');
CREATE VIEW days AS SELECT day, ok, count(*) AS n FROM notes GROUP BY day, ok;
CREATE VIEW speeds AS SELECT ms, price, count(*) AS n FROM clicks GROUP BY ms, price;
CREATE VIEW busiest AS SELECT page, sum(hits) AS hits FROM pages GROUP BY page
  ORDER BY hits DESC LIMIT 3;
CREATE RULE slow AS SELECT user, page, ms FROM clicks WHERE ms > 900;
CREATE WATCH dear AS SELECT * FROM clicks WHERE price > 99.5 UNTIL '2100-01-01';
"""
NOW = "2026-01-01T00:00:30Z"
QUERIES = (
    "SELECT * FROM pages", "SELECT page, hits FROM busiest WHERE hits > 1", "SELECT 1", "",
    "SELECT * FROM total WHERE hits = 'x'", "SELECT count(*) FROM clicks",
    "SELECT nothing FROM pages",
    "SELECT * FROM pages p JOIN visited v ON p.page = v.section", "SELECT * FROM alerts",
    "SELECT sum(hits) / 0 FROM pages", "SELECT * FROM total TIMESTAMP AS OF '2026-01-01'",
    "SELECT * FROM pages WHERE minute.start > '2026-01-01'", "SELECT * FROM pages LIMIT -1",
    "DROP TABLE pages", "SELECT * FROM total VERSION AS OF 99999999999999999999", "SELECT '\x00'",
    "SUBSCRIBE TO pages", "SUBSCRIBE TO clicks", "SUBSCRIBE TO pages EMIT ON TIME",
    "SUBSCRIBE TO clicks WHERE ms > 900", "SUBSCRIBE TO total EMIT EVERY '1 second'",
    "CREATE RULE r AS SELECT nothing FROM clicks", "CREATE WATCH w AS SELECT * FROM clicks",
    "CREATE RULE slow AS SELECT user FROM clicks", "CREATE VIEW v AS SELECT 1",
)  # fmt: skip
TIMES = (NOW, "2026-01-01", "1", "9999-12-31T23:59:59.999999Z", "0001-01-01", "-1", "", "now", "é")
WORDS: dict[str, Any] = {
    "view": ["total", "pages", "speeds", "visited", "sittings", "days", "busiest", "Pages"],
    "stream": ["clicks", "notes", "visits", "alerts", "pages"],
    "rule": ["slow", "dear", "SLOW"],
    "watch": ["dear", "slow"],
    "user": ["ada", "bob", "nobody"],
    "name": ["ada", "bob"],
    "may": ["viewer", "read", ["read"], "all"],
    "role": ["viewer", "operator", "root"],
    "on": ["*", "view:pages", "stream:clicks", "job:fuzzed", ["view:pages"], ":"],
    "sql": QUERIES,
    "topics": ["status", "topology,alerts", "view:pages", "view:busiest,status", "view:", ",", "x"],
    "from": TIMES, "to": TIMES, "window": TIMES,
    "limit": [1, 10, 10_000, "1", "１"],
    "partition": [0, 1, 2, -1], "offset": [0, 1, 50, 2**53, 2**64],
    "before": ["10,10", "0,0", "1", "99999999999999999999,1", "a,b", "-1,-1"],
    "id": ["e1", "q"], "key": ["u1"], "field": [["page:/1"], ["ms:1"], ["x:y"], ["page"], [":"],
                                     ["ms:" + "9" * 400], ["ts:0001-01-01"], ["price:inf"]],
    "status": ["event", "duplicate", "dead_letter"], "state": ["active", "ended", "open"],
    "for": ["1 hour", "30d", "-1 s", "1", "99999999999999 days"], "length": ["1 hour"],
    "missed": [True, "true"], "withdrawn": [False],
}  # fmt: skip
KEYS = ({}, {}, {}, {"page": "/1"}, {"user": "u1", "section": ""}, {"hits": "1"}, {"day": "x"},
        {"ok": "true"}, {"minute": NOW}, {"page": "\x00"}, {"": ""}, {"ms": "9" * 25},
        {"ms": "3", "price": "nan"}, {"price": "1e999"}, {"page": "x" * 5000})  # fmt: skip
# A build, or a comparison by a second engine, takes seconds; a query on Spark too.
COSTLY = {"rebuild": 3, "audit": 3, "why": 12, "replay": 12, "query": 20, "event": 20}


def _events() -> list[dict[str, Any]]:
    return [
        {"event_id": f"e{n % 390}", "page": f"/{n % 5}", "user": f"u{n % 7}", "ms": n * 3,
         "price": n / 4, "ts": f"2026-01-01T00:{n % 50:02}:{n % 60:02}Z"}
        for n in range(400)
    ]  # fmt: skip


def _fill(url: str) -> None:
    lines = "\n".join(map(json.dumps, _events()))
    assert post(f"{url}/v1/streams/clicks/events", content=lines).status_code == 200
    notes = [{"line": "a", "day": "2026-01-01", "ok": True}, {"day": "x"}, {"line": None}]
    assert post(f"{url}/v1/streams/notes/events", json=notes).status_code == 200
    wait_fresh(url, 390)
    for view in ("pages", "days"):  # so that there is something of both layers
        assert post(f"{url}/v1/views/{view}/rebuild", timeout=120).status_code == 200


def _wait_running(url: str) -> None:
    """Nothing that was asked has harmed the project for longer than a moment."""
    wait(lambda: get(f"{url}/v1/status", timeout=30).json()["state"] == "running")


def _token(url: str, user: str, role: str) -> tuple[str, str]:
    post(f"{url}/v1/users", json={"name": user, "role": role}).raise_for_status()
    made = post(f"{url}/v1/tokens", json={"user": user}).raise_for_status().json()
    return made["token"]["id"], made["secret"]


@pytest.mark.timeout(300 + CASES / 4)
def test_no_request_is_answered_with_what_the_document_does_not_foresee(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    make_project(tmp_path, SETTINGS, DEFINITIONS)
    (tmp_path / "sections.csv").write_text("page,section\n/1,front\n/2,back\n")
    running = Running(tmp_path)
    try:
        url = running.wait_for("ready") and running.wait_for("serving")["url"]
        _fill(url)
        admin, viewer = _token(url, "root", "admin"), _token(url, "guest", "viewer")
        # Most as who may do all, because a refusal is the shortest answer.
        tokens = [admin[1]] * 6 + [viewer[1], None]
        kept = frozenset({"root", "guest", "admin", admin[0], viewer[0]})
        alerts = [alert["id"] for alert in get(f"{url}/v1/alerts?limit=3").json()["alerts"]]
        files = re.findall(r"assets/([\w.-]+)", get(f"{url}/").text) or ["none.js"]
        words = {**WORDS, "alert": [*alerts, alerts[0][:4]], "file": files}
        fuzz = Fuzz(url, tokens, words, KEYS, kept, COSTLY)
        began = time.monotonic()
        fuzz.run(CASES, SEED)
        seconds = time.monotonic() - began
        _wait_running(url)
        running.stop()
    finally:
        running.kill()
    record_property("requests", fuzz.statuses.total())
    print(f"{fuzz.statuses.total():,} requests in {seconds:.0f} s")
    print(fuzz.table())
    assert not fuzz.findings, f"{len(fuzz.findings)} findings:\n" + "\n\n".join(fuzz.findings[:40])
