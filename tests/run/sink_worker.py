"""A sink in a process that tests kill: epochs are committed by hand, so no Spark is needed.

`python -m tests.run.sink_worker FOLDER GUARANTEE INTO` goes on where the folder's store ends, one
epoch a click, and one step of the sink after each.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import msgspec

from headrace.core.event import EventStatus
from headrace.core.position import Interval
from headrace.define.settings import LogSettings, Settings
from headrace.destination.protocol import DestinationContext
from headrace.ingest.intake import Intake
from headrace.log.embedded.reader import EmbeddedReader
from headrace.log.embedded.writer import EmbeddedWriter
from headrace.run.queue_delivery import DeliveryRoute, QueueDelivery
from headrace.run.sinks import Sink
from tests.killed import run_module
from tests.serving.bench import CLICKS, DEFINITIONS, Bench, plan_of, project_of

TOLD = (
    "CREATE STREAM told (page STRING, n BIGINT, pane_sequence BIGINT)"
    " WITH (id = 'event_id', partitions = '1');"
)
INTO = {"file": "FILE 'panes.jsonl'", "stream": "STREAM told"}
# All in one partition, so that a position says which of them have been committed.
SENT = tuple(replace(click, partition=0) for click in CLICKS * 2)


def definitions(guarantee: str, into: str) -> str:
    sink = f"CREATE SINK out FROM hits INTO {INTO[into]} EMIT CHANGES RETRACTING"
    return f"{DEFINITIONS}{TOLD}{sink} WITH (guarantee = '{guarantee}');"


def work(folder: Path, guarantee: str, into: str) -> None:
    sql = definitions(guarantee, into)
    bench = Bench(folder / "serving.db", plan_of(sql))
    if not bench.store.stream("clicks").generation:
        bench.build()
    done = sum(bench.store.stream("clicks").position.offsets)
    bench.clicks = list(SENT[:done])
    topic = EmbeddedWriter.open(folder / "log", 1, segment_bytes_max=1 << 20)
    settings = Settings("sinks", log=LogSettings(free_bytes_min=0))
    project = project_of(folder, sql)
    intake = Intake(project.streams["told"], topic, settings=settings)
    plan, there = (
        bench.plan.sinks[0],
        DestinationContext(project, lambda _, sent: intake.submit(sent)),
    )
    sink, writer = Sink(plan, "", bench.reader), plan.destination.connect(there)
    delivery = QueueDelivery(DeliveryRoute.of_sink(plan), writer, bench.store.db, settings.notify)
    sink.poll()
    delivery.drain()
    for click in SENT[done:]:
        bench.send(click)
        sink.poll()
        delivery.drain()
    assert delivery.problem is None
    topic.close()
    bench.close()


def run(folder: Path, guarantee: str, into: str = "file", failpoint: str = "") -> None:
    """Run the worker in a process; it must end as the failpoint says."""
    run_module("tests.run.sink_worker", str(folder), guarantee, into, failpoint=failpoint)


def delivered(folder: Path, into: str = "file") -> list[int]:
    """The numbers of the panes that are there, in their order."""
    if into == "file":
        lines = (folder / "out" / "panes.jsonl").read_bytes().splitlines()
        return [msgspec.json.decode(line)["sequence"] for line in lines]
    reader = EmbeddedReader(folder / "log")
    return [
        msgspec.json.decode(record)["pane_sequence"]
        for block in reader.blocks(0, Interval(0, reader.end().offsets[0]))
        for record, status in zip(block.records(), block.statuses, strict=True)
        if status == EventStatus.EVENT
    ]


if __name__ == "__main__":
    work(Path(sys.argv[1]), *sys.argv[2:])
