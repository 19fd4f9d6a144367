"""Hundreds of kills under ingest: nothing is lost, nothing counts twice, and no answer on the way
is wrong.

A project with every kind of view, a rule with a webhook and a sink runs while one producer sends
numbered events. It is killed at a drawn time or at a drawn failpoint, again and again; a view
changes between two runs, rules are added while it runs. The oracle knows only the numbers: they are
sent in order, so every answer must be that of a first part of them, and never of a smaller part
than an answer before it. `HEADRACE_KILLS` says how many kills there are.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest
from chance import drawn

from tests.run import asking
from tests.run.process import ALL_KINDS, Producer, Running, make_project, wait_fresh
from tests.run.receiver import Receiver

pytestmark = [pytest.mark.process, pytest.mark.prove]

KILLS = int(os.environ.get("HEADRACE_KILLS", "200"))
RUN_S_MAX = 25.0
FAILPOINTS = [
    "log.written", "log.synced", "log.marked",
    "epoch.started", "epoch.computed", "epoch.committing", "epoch.committed",
    "archive.written", "archive.committing", "archive.committed", "archive.compacted",
    "generation.staged", "generation.promoting", "generation.promoted",
    "sink.saving", "sink.saved", "sink.delivered",
    "alerts.saving", "alerts.saved", "alert.delivered",
]  # fmt: skip
SETTINGS = """
name = "kills"
[speed]
trigger = "200 ms"
group = "500 ms"
[archive]
interval = "1 s"
compact_files = 4
[batch]
interval = "2 s"
[notify]
hosts = ["localhost"]
private = true
secret = "s3cret"
"""
DEFINITIONS = (
    ALL_KINDS
    + """
CREATE RULE hundreds AS SELECT n, page FROM clicks WHERE n % 100 = 0 SEVERITY 'high' NOTIFY '{url}';
CREATE SINK sums FROM total INTO FILE 'sums.ndjson' WITH (guarantee = 'exactly_once');
"""
)
# Another definition of a view, which is built beside the old one at the next start.
CHANGED = ("sum(n) AS total, count(DISTINCT", "sum(n) AS total, max(n) AS newest, count(DISTINCT")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.stop()


class Oracle:
    """Answers read while the project runs: each is that of the numbers below some k."""

    def __init__(self, producer: Producer) -> None:
        self.producer, self.read, self.newest = producer, 0, 0
        self.wrong: list[str] = []

    def watch(self, url: str, stop: threading.Event) -> None:
        """Read views until `stop` is set or the server is gone."""
        with httpx.Client(base_url=url, headers=asking.known(url), timeout=10) as client:
            while not stop.wait(0.2):
                for view in ("pages", "places", "tens"):
                    try:
                        answer = client.get(f"/v1/views/{view}")
                    except httpx.HTTPError:
                        return
                    if answer.status_code == 200:
                        self.check(view, answer.json())

    def check(self, view: str, answer: dict[str, Any]) -> None:
        [as_of] = answer["as_of"].values()
        if as_of.get("provisional"):
            return
        hits, totals = Counter[str](), Counter[str]()
        for row in answer["rows"]:
            hits[row["page"]] += row["hits"]
            totals[row["page"]] += row["total"]
        k = sum(hits.values())
        if (hits, totals) != expected(k):
            self.wrong.append(f"{view} has {k} events, but not the first {k}: {answer['rows']}")
        if k < self.newest:
            self.wrong.append(f"{view} has {k} events after an answer with {self.newest}")
        self.newest, self.read = max(self.newest, k), self.read + 1


def expected(k: int) -> tuple[Counter[str], Counter[str]]:
    """How many of the numbers below k each page has, and their sums."""
    hits, totals = Counter[str](), Counter[str]()
    for rest in range(min(k, 7)):
        count = (k - rest + 6) // 7
        hits[f"/{rest}"] = count
        totals[f"/{rest}"] = 7 * count * (count - 1) // 2 + rest * count
    return hits, totals


def killed_run(project: Path, oracle: Oracle, rng: Random, number: int) -> str:
    """One life of the project, ended by SIGKILL; how it was killed."""
    point = rng.choice(FAILPOINTS) if rng.random() < 0.5 else None
    running = Running(project, failpoint=f"{point}:{rng.randint(1, 4)}" if point else None)
    try:
        url = running.wait_for("serving")["url"]
        stop = threading.Event()
        threads = [
            threading.Thread(target=work, args=(url, stop))
            for work in (oracle.producer.send, oracle.watch)
        ]
        for thread in threads:
            thread.start()
        ends_at = time.monotonic() + rng.uniform(1, RUN_S_MAX)
        added = number % 10 != 3
        while running.process.poll() is None and (point or time.monotonic() < ends_at):
            if not added and any(report["kind"] == "ready" for report in running.reports):
                added = True
                threads.append(threading.Thread(target=add_rule, args=(url, number)))
                threads[-1].start()
            if time.monotonic() > ends_at + 60:
                break  # the point is not passed in this life
            time.sleep(0.05)
        running.process.kill()
        running.process.wait()
        stop.set()
        for thread in threads:
            thread.join()
    finally:
        running.kill()
    return point or "time"


def add_rule(url: str, number: int) -> None:
    text = f"CREATE RULE added_{number} AS SELECT n, page FROM clicks WHERE n % 1000 = {number}"
    try:
        asking.post(f"{url}/v1/rules", json={"sql": text}, timeout=120)
    except httpx.HTTPError:
        return  # it was killed meanwhile: the rule is there as a whole or not at all


@pytest.mark.timeout(6 * 3_600)
def test_hundreds_of_kills_lose_nothing_and_no_answer_is_wrong(
    tmp_path: Path, receiver: Receiver, record_property: Callable[[str, object], None]
) -> None:
    definitions = DEFINITIONS.replace("{url}", receiver.url)
    project = make_project(tmp_path / "kills", SETTINGS, definitions)
    producer, rng = Producer(rate=400), drawn("many kills")
    oracle, kills = Oracle(producer), Counter[str]()
    for number in range(KILLS):
        if number % 8 == 5:
            definitions = definitions.replace(*(CHANGED if number % 16 == 5 else CHANGED[::-1]))
            make_project(project, SETTINGS, definitions)
        kills[killed_run(project, oracle, rng, number)] += 1
        assert oracle.wrong == [], f"after {sum(kills.values())} kills"
    running = Running(project)
    try:
        url = running.wait_for("ready", 300)["url"]
        producer.send_until(url, len(producer.acknowledged) + 100)
        status = wait_fresh(url, len(producer.acknowledged), 300)
        at_end(project, url, status, producer, oracle, receiver)
        running.stop()
    finally:
        running.kill()
    print(f"{kills}; {oracle.read:,} answers; {len(producer.acknowledged):,} events")
    record_property("kills", sum(kills.values()))
    record_property("answers", oracle.read)


def at_end(
    project: Path,
    url: str,
    status: dict[str, Any],
    producer: Producer,
    oracle: Oracle,
    receiver: Receiver,
) -> None:
    """Everything acknowledged is counted once, in every view, alert and file."""
    count = len(producer.acknowledged)
    assert {event["n"] for event in producer.acknowledged.values()} == set(range(count))
    for view in ("pages", "places", "tens"):
        oracle.check(view, asking.get(f"{url}/v1/views/{view}", timeout=60).json())
    assert (oracle.wrong, oracle.newest) == ([], count)
    balances = [stream["balance"] for stream in status["streams"]]
    assert {(balance["off"], balance["dead_letters"]) for balance in balances} == {(0, 0)}
    audits = asking.post(f"{url}/v1/audit", json={}, timeout=300).json()["audits"]
    assert {audit["differences"] for audit in audits} == {0}
    hundreds = (count + 99) // 100
    found = asking.get(f"{url}/v1/alerts?rule=hundreds&limit=10000", timeout=60).json()["alerts"]
    assert sorted(alert["body"]["n"] for alert in found) == [100 * n for n in range(hundreds)]
    deadline = time.monotonic() + 120
    while set(receiver.alerts()) != {alert["id"] for alert in found}:
        assert time.monotonic() < deadline, "an alert was not delivered"
        time.sleep(0.5)
    lines = (project / "out" / "sums.ndjson").read_text().splitlines()
    sequences = [json.loads(line)["sequence"] for line in lines]
    assert sequences == sorted(set(sequences)), "a pane was written twice"
