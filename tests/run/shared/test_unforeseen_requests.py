"""Every route of a project that runs, asked with thousands of requests that nobody would think of:
no answer is an unexpected 5xx, and each is as the OpenAPI document says.

100 requests, and 20,000 in `make prove`. It is the last of this folder, because nobody knows what
the project is left with.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from chance import SEED, examples

from tests.run.asking import get, post
from tests.run.process import wait_fresh
from tests.run.shared.fuzzing import Fuzz
from tests.run.waiting import wait

pytestmark = pytest.mark.process

CASES = examples(100, 20_000)
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
    "on": ["*", "view:pages", "stream:clicks", "job:shared", ["view:pages"], ":"],
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
    shared_url: str, record_property: Callable[[str, object], None]
) -> None:
    url = shared_url
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
    record_property("requests", fuzz.statuses.total())
    print(f"{fuzz.statuses.total():,} requests in {seconds:.0f} s")
    print(fuzz.table())
    assert not fuzz.findings, f"{len(fuzz.findings)} findings:\n" + "\n\n".join(fuzz.findings[:40])
