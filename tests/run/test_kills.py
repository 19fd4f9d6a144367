"""Law 3: an acknowledged event survives `kill -9` at any time and is counted once, and no answer on
the way is wrong.

A project with every kind of view, rules with actions, a watch and a sink runs while one producer
sends numbered events. It is killed at a random time, at a failpoint, or by the death of Spark's
process, again and again; a view changes between two runs, rules are added while it runs. Its store
is a file in half of the campaigns, and in PostgreSQL in the others. The oracle knows only the
numbers: those of a page are sent in order, so every answer must be that of the first k of them, and
k never decreases. `make test` kills twice; `make prove` runs campaigns of many kills, together at
all of these failpoints (`HEADRACE_KILLS` says how many kills), and also kills where streams are
joined or idle. tests/laws/test_kills.py kills single steps at every failpoint.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest
from chance import PROVE, drawn
from postgres_server import PostgresServer

from headrace.serving.progress import read_stream
from headrace.serving.sqlite_files import read_file
from headrace.serving.store import StreamState
from tests.run import asking
from tests.run.process import (
    ALL_KINDS,
    JOINED,
    SILENT,
    Producer,
    Running,
    make_project,
    wait_fresh,
)
from tests.run.receiver import Receiver

pytestmark = pytest.mark.process

CAMPAIGNS = 8 if PROVE else 1
KILLS = int(os.environ.get("HEADRACE_KILLS", "200")) // CAMPAIGNS if PROVE else 2
RUN_S_MAX, POINT_S_MAX = (25.0, 60.0) if PROVE else (5.0, 20.0)
FAILPOINTS = [
    "log.written", "log.synced", "log.marked",
    "epoch.started", "epoch.computed", "epoch.committing", "epoch.committed",
    "archive.written", "archive.committing", "archive.committed", "archive.compacted",
    "generation.staged", "generation.promoting", "generation.promoted",
    "sink.saving", "sink.saved", "alerts.saving", "alerts.saved", "watches.saving", "watches.saved",
    "outbox.delivered", "outbox.marked", "ids.written", "ids.saved",
]  # fmt: skip
AT_A_TIME, BY_SPARK = "at a random time", "by the death of Spark's process"
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
[dedup]
ids_max = 1_000
[notify]
hosts = ["localhost"]
private = true
secret = "s3cret"
"""
DEFINITIONS = (
    ALL_KINDS
    + """
CREATE RULE hundreds AS SELECT n, page FROM clicks WHERE n % 100 = 0 SEVERITY 'high'
  NOTIFY '{url}', FILE 'alerts.ndjson' WITH CORRECTIONS;
CREATE WATCH sevens AS SELECT n, page FROM clicks WHERE n % 1000 = 7 UNTIL '2100-01-01';
CREATE RULE many AS SELECT * FROM total WHERE hits >= 100 NOTIFY FILE 'alerts.ndjson';
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


QUERIES = [
    f"SELECT page, sum(hits) AS hits, sum(total) AS total FROM {view} GROUP BY page"
    for view in ("pages", "minutes", "slides", "sittings", "places", "tens")
]


class Oracle:
    """Answers read while the project runs: each is that of the first k numbers of each page."""

    def __init__(self, producer: Producer) -> None:
        self.producer, self.read, self.hits = producer, 0, Counter[str]()
        self.wrong: list[str] = []

    def watch(self, url: str, stop: threading.Event) -> None:
        """Read views until `stop` is set or the server is gone."""
        with httpx.Client(base_url=url, headers=asking.known(url), timeout=10) as client:
            while not stop.wait(0.2):
                for query in QUERIES:
                    try:
                        answer = client.post("/v1/sql", json={"sql": query})
                    except httpx.HTTPError:
                        return
                    if answer.status_code == 200:
                        self.check(query, answer.json())

    def check(self, query: str, answer: dict[str, Any]) -> None:
        [as_of] = answer["as_of"].values()
        if as_of.get("provisional"):
            return
        for row in answer["rows"]:
            page, k = row["page"], row["hits"]
            # The page /3 has the numbers 3, 10, 17 and so on.
            if row["total"] != 7 * k * (k - 1) // 2 + int(page[1:]) * k:
                self.wrong.append(f"{query}: {row} are not the first {k} of the page")
            if k < self.hits[page]:
                self.wrong.append(f"{query}: {row} after {self.hits[page]}")
            self.hits[page] = max(k, self.hits[page])
        self.read += 1


def deaths(campaign: int, rng: Random) -> list[str]:
    """How the runs of a campaign end: half of them at failpoints, so that all campaigns together
    kill at each, and at least one by Spark's process.
    """
    if KILLS == 2:
        return [rng.choice(FAILPOINTS), BY_SPARK]
    points = FAILPOINTS[campaign::CAMPAIGNS]
    points += rng.choices(FAILPOINTS, k=max(0, KILLS // 2 - len(points)))
    found = [*points, BY_SPARK, *[AT_A_TIME] * KILLS][:KILLS]
    rng.shuffle(found)
    return found


class Life:
    """One run of the project, which ends by a kill."""

    def __init__(self, project: Path, oracle: Oracle, death: str, rng: Random) -> None:
        self.oracle, self.death = oracle, death
        point = f"{death}:{rng.randint(1, 2)}" if death in FAILPOINTS else None
        self.running = Running(project, failpoint=point)
        self.ends_at = time.monotonic() + rng.uniform(1, RUN_S_MAX)

    def live(self, added: str = "") -> None:
        """Send and read until the end; with the rule `added`, if it is not empty."""
        try:
            url = self.running.wait_for("serving")["url"]
            stop, works = threading.Event(), [self.oracle.producer.send, self.oracle.watch]
            threads = [threading.Thread(target=work, args=(url, stop)) for work in works]
            if added:
                threads.append(threading.Thread(target=self._add_rule, args=(url, added)))
            for thread in threads:
                thread.start()
            self._die(url)
            stop.set()
            for thread in threads:
                thread.join()
        finally:
            self.running.kill()

    def _die(self, url: str) -> None:
        if self.death == BY_SPARK:
            self._lose_spark(url)
        while self.running.process.poll() is None:
            # A failpoint may not be passed in this run.
            last = self.ends_at + (POINT_S_MAX if self.death in FAILPOINTS else 0)
            if time.monotonic() > last:
                self.running.process.kill()
                self.running.process.wait()
            time.sleep(0.05)

    def _lose_spark(self, url: str) -> None:
        """As the kernel does where memory is short: the run ends and says why, so that whoever
        supervises it starts another.
        """
        self.running.wait_for("ready", 600)  # a backlog, on a machine that may be busy
        wait_fresh(url, self.oracle.hits.total() + 1)
        os.kill(asking.get(f"{url}/v1/system").json()["spark"]["jvm_pid"], signal.SIGKILL)
        assert self.running.process.wait(60) == 1
        self.running._reader.join()
        said = self.running.reports[-1]
        assert (said["condition"], said["message"]) == (
            "EngineFailed", "the Spark process was killed by signal 9",
        )  # fmt: skip

    def _add_rule(self, url: str, text: str) -> None:
        try:
            self.running.wait_for("ready")
            asking.post(f"{url}/v1/rules", json={"sql": text}, timeout=120)
        except (AssertionError, httpx.HTTPError):
            return  # it was killed meanwhile: the rule is there as a whole or not at all


@pytest.mark.timeout(2 * 3_600)
@pytest.mark.parametrize("campaign", range(CAMPAIGNS))
def test_kills_lose_nothing_and_no_answer_is_wrong(
    campaign: int,
    tmp_path: Path,
    receiver: Receiver,
    postgres: PostgresServer,
    record_property: Callable[[str, object], None],
) -> None:
    definitions, settings = DEFINITIONS.replace("{url}", receiver.url), SETTINGS
    in_postgres = campaign % 2 if PROVE else drawn("store").randrange(2)
    if in_postgres:
        settings += f'[store]\nurl = "{postgres.url}"\nschema = "{tmp_path.name}"\n'
    project = make_project(tmp_path / "kills", settings, definitions)
    producer, rng = Producer(rate=400), drawn("kills", campaign)
    oracle, kills = Oracle(producer), Counter[str]()
    for number, death in enumerate(deaths(campaign, rng)):
        if number % 4 == 1:
            definitions = definitions.replace(*(CHANGED if number % 8 == 1 else CHANGED[::-1]))
            make_project(project, settings, definitions)
        added = f"CREATE RULE added AS SELECT n, page FROM clicks WHERE n % 1000 = {number}"
        Life(project, oracle, death, rng).live(added if number % 10 == 3 else "")
        kills[death] += 1
        assert oracle.wrong == [], f"after {kills}"
    running = Running(project)
    try:
        url = running.wait_for("ready", 300)["url"]
        producer.send_until(url, len(producer.acknowledged) + 200)
        status = wait_fresh(url, len(producer.acknowledged), 300)
        check_views(url, status, oracle)
        check_alerts(project, url, len(producer.acknowledged), receiver)
        check_sink(project)
        running.stop()
    finally:
        running.kill()
    assert (project / ".headrace" / "serving.db").exists() != bool(in_postgres)
    print(f"{kills}; {oracle.read:,} answers; {len(producer.acknowledged):,} events")
    record_property("kills", kills.total())
    record_property("answers", oracle.read)


def check_views(url: str, status: dict[str, Any], oracle: Oracle) -> None:
    """Everything acknowledged is counted once, in every view."""
    producer = oracle.producer
    count = len(producer.acknowledged)
    assert {event["n"] for event in producer.acknowledged.values()} == set(range(count))
    for query in QUERIES:
        answer = asking.post(f"{url}/v1/sql", json={"sql": query}, timeout=60).json()
        oracle.check(query, answer)
        assert sum(row["hits"] for row in answer["rows"]) == count
    assert oracle.wrong == []
    answer = asking.get(f"{url}/v1/views/matches").json()
    pairs = producer.pairs(answer["as_of"]["clicks"]["watermark"])
    found = {row["page"]: (row["found"], row["newest"], row["events"]) for row in answer["rows"]}
    assert found == {page: (count, count, 2 * count) for page, count in pairs.items()}
    # Few kills are over before the watermark, a minute behind, has passed a pair.
    assert sum(pairs.values()) > 50 or not PROVE
    balances = [stream["balance"] for stream in status["streams"]]
    assert {(balance["off"], balance["dead_letters"]) for balance in balances} == {(0, 0)}
    audits = asking.post(f"{url}/v1/audit", json={}, timeout=300).json()["audits"]
    assert {audit["differences"] for audit in audits} == {0}


def check_alerts(project: Path, url: str, count: int, receiver: Receiver) -> None:
    """Each match has one alert, which has reached the webhook and the file."""
    wanted = "limit=10000"
    found = asking.get(f"{url}/v1/alerts?rule=hundreds&{wanted}", timeout=60).json()["alerts"]
    assert sorted(alert["body"]["n"] for alert in found) == list(range(0, count, 100))
    assert [alert for alert in found if alert["missed"] or alert["withdrawn_at"]] == []
    watched = asking.get(f"{url}/v1/alerts?rule=sevens&{wanted}", timeout=60).json()["alerts"]
    assert sorted(alert["body"]["n"] for alert in watched) == list(range(7, count, 1_000))
    ids = {alert["id"] for alert in found}
    file = project / "out" / "alerts.ndjson"
    deadline = time.monotonic() + 120
    while not (set(receiver.alerts()) == ids == in_file(file, "hundreds")):
        assert time.monotonic() < deadline, "an alert was not delivered"
        time.sleep(0.5)
    [many] = asking.get(f"{url}/v1/alerts?rule=many&{wanted}").json()["alerts"]
    assert many["body"]["hits"] >= 100


def in_file(file: Path, rule: str) -> set[str]:
    lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return {alert["id"] for line in lines if line["rule"] == rule for alert in line["alerts"]}


def check_sink(project: Path) -> None:
    lines = (project / "out" / "sums.ndjson").read_text().splitlines()
    sequences = [json.loads(line)["sequence"] for line in lines]
    assert sequences == sorted(set(sequences)), "a pane was written twice"


@pytest.mark.prove
@pytest.mark.timeout(600)
def test_pairs_of_joined_streams_survive_a_kill_and_count_once(tmp_path: Path) -> None:
    project = make_project(tmp_path / "joined", definitions=JOINED)
    producer = Producer("orders", "payments", rate=100)
    # Of three flows: a point is passed by each, so the kill falls on the joined one sometimes.
    for point in ("epoch.committing:8", "generation.promoting:4"):
        running, stop = Running(project, failpoint=point), threading.Event()
        url = running.wait_for("serving")["url"]
        sender = threading.Thread(target=producer.send, args=(url, stop))
        sender.start()
        running.wait_killed()
        stop.set()
        sender.join()
    running = Running(project)
    try:
        url = running.wait_for("ready")["url"]
        producer.send_until(url, len(producer.acknowledged) + 200)
        status = wait_fresh(url, len(producer.acknowledged))
        rows = asking.get(f"{url}/v1/views/pages").json()["rows"]
        answer = {row["page"]: {"hits": row["hits"], "total": row["total"]} for row in rows}
        assert answer == producer.expected()
        assert {stream["balance"]["off"] for stream in status["streams"]} == {0}
        audits = asking.post(f"{url}/v1/audit", json={}, timeout=60).json()["audits"]
        assert {audit["differences"] for audit in audits} == {0}
    finally:
        running.kill()


def _state(project: Path) -> StreamState:
    with read_file(project / ".headrace" / "serving.db") as db:
        return read_stream(db, "clicks")


@pytest.mark.prove
@pytest.mark.timeout(600)
def test_what_an_idle_partition_has_decided_survives_a_kill_and_is_decided_once(
    tmp_path: Path,
) -> None:
    """A partition becomes idle, and what waits for it is found by an epoch without events: one
    that is killed in its transaction, one after it, and a process that finds it done.
    """
    project = make_project(tmp_path / "idle", definitions=SILENT)
    running = Running(project, failpoint="epoch.committing:3")
    url = running.wait_for("ready")["url"]
    _send(url, ("ann", 0))
    wait_fresh(url, 1)
    _send(url, ("bob", 10), ("bob", 11), ("bob", 30))
    running.wait_killed()
    before = _state(project)
    running = Running(project, failpoint="epoch.committed:1")
    running.wait_killed()
    after = _state(project)
    assert before.reached.position == after.reached.position
    assert before.reached.marks != after.reached.marks
    running = Running(project)
    try:
        url = running.wait_for("ready")["url"]
        decided = [{"page": "bob", "first": 10, "last": 11, "found": 1}], "2026-01-01T00:00:29Z"
        assert _matches(url) == decided
        asking.post(f"{url}/v1/views/matches/rebuild", timeout=200).raise_for_status()
        assert _matches(url) == decided, "batch finds the same"
    finally:
        running.kill()


def _send(url: str, *events: tuple[str, int]) -> None:
    body = [{"page": page, "n": n, "ts": f"2026-01-01T00:00:{n:02}Z"} for page, n in events]
    asking.post(f"{url}/v1/streams/clicks/events", json=body).raise_for_status()


def _matches(url: str) -> tuple[list[dict[str, object]], str]:
    answer = asking.get(f"{url}/v1/views/matches", timeout=30).json()
    return answer["rows"], answer["as_of"]["clicks"]["watermark"]
