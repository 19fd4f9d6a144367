"""Rules in a process that tests kill: epochs are committed by hand, so no Spark is needed.

`python -m tests.run.alert_worker FOLDER PORT` goes on where the folder's store ends, one epoch a
click, one look after each, a generation now and then; each action tries what is due after a look.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from headrace.core.event import EventStatus
from headrace.core.position import Interval
from headrace.define.settings import LogSettings, Settings
from headrace.ingest.intake import Intake, Receipt
from headrace.log.embedded.reader import EmbeddedReader
from headrace.log.embedded.writer import EmbeddedWriter
from headrace.run.delivery_worker import DeliveryWorker
from headrace.run.evaluators import RuleEvaluator
from tests.killed import run_module
from tests.serving.bench import Click
from tests.serving.rule_bench import SLOW, TOLD, RuleBench, rule_project

CLICKS = tuple(
    Click(f"/{number % 3}", f"u{number % 4}", number, 99 if number % 2 else 7)
    for number in range(40)
)
MATCHES = sum(click.ms == 99 for click in CLICKS)
PATIENT = {
    "hosts": ("localhost",),
    "private": True,
    "secret": "s",
    "pause_us": 1_000,
    "attempts_max": 999,
}


def rules(port: int) -> str:
    where = f"NOTIFY 'http://localhost:{port}/', STREAM told, FILE 'alerts.ndjson'"
    return f"{TOLD}{SLOW} {where};"


def work(folder: Path, port: int) -> None:
    bench = RuleBench(folder / "serving.db", rules=rules(port), notify=PATIENT)
    if not bench.store.stream("clicks").generation:
        bench.build()
    done = sum(bench.store.stream("clicks").position.offsets)
    bench.clicks = list(CLICKS[:done])
    project = rule_project(folder, rules(port), **PATIENT)
    topic = EmbeddedWriter.open(folder / "log", 2, segment_bytes_max=1 << 20)
    settings = Settings("alerts", log=LogSettings(free_bytes_min=0))
    intake = Intake(project.streams["told"], topic, settings=settings)

    def submit(stream: str, events: Any) -> Future[Receipt]:
        return intake.submit(events)

    alerts = RuleEvaluator(bench.plan, bench.store.db, lambda *_: None)
    deliveries = DeliveryWorker(bench.plan, project, bench.store.db, submit, lambda *_: None)

    def drain() -> None:
        alerts.evaluate()
        deliveries.drain()

    drain()
    for number, click in enumerate(CLICKS[done:], start=done):
        bench.send(click)
        if number % 7 == 6:
            bench.build(full=False)
        drain()
    topic.close()
    bench.close()


def run(folder: Path, port: int, failpoint: str = "") -> None:
    """Run the worker in a process; it must end as the failpoint says."""
    run_module("tests.run.alert_worker", str(folder), str(port), failpoint=failpoint)


def in_file(folder: Path) -> list[str]:
    lines = (folder / "out" / "alerts.ndjson").read_bytes().splitlines()
    return [alert["id"] for line in lines for alert in json.loads(line)["alerts"]]


def in_stream(folder: Path) -> list[str]:
    reader = EmbeddedReader(folder / "log")
    return [
        json.loads(record)["alert_id"]
        for partition, end in enumerate(reader.end().offsets)
        for block in reader.blocks(partition, Interval(0, end))
        for record, status in zip(block.records(), block.statuses, strict=True)
        if status == EventStatus.EVENT
    ]


if __name__ == "__main__":
    work(Path(sys.argv[1]), int(sys.argv[2]))
