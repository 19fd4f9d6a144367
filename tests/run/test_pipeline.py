"""What a pipeline decides without Spark: how much of the log stays, and when batch must help."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from master.bench import Clock, InProcess
from serving.bench import plan_of, project_of

from headrace.compile.flow import flows_of
from headrace.core.position import Position
from headrace.core.time import DAY
from headrace.define.layout import Layout
from headrace.log.opening import open_writer
from headrace.run import pipeline as module
from headrace.run.pipelines import pipelines_of
from headrace.serving.opening import open_store
from headrace.serving.watermark import FlowProgress

COLUMNS = (
    "(page STRING, user STRING, ms BIGINT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 SECOND)"
)
JOINED = f"""
CREATE STREAM clicks {COLUMNS} WITH (partitions = '1');
CREATE STREAM views {COLUMNS} WITH (partitions = '1');
CREATE VIEW both AS SELECT c.page, count(*) AS n FROM clicks c JOIN views v
  ON c.page = v.page AND v.ts BETWEEN c.ts AND c.ts + INTERVAL 1 MINUTE GROUP BY c.page;
"""


class Sessions(InProcess):
    """Stands for Spark where nothing is computed."""

    def newSession(self) -> Sessions:  # noqa: N802
        return self


class Bench:
    """Two streams and their join, with ten archived events each, in a segment each."""

    def __init__(self, folder: Path) -> None:
        project, plan = project_of(folder, JOINED), plan_of(JOINED)
        layout = Layout.of(project)
        layout.make_state()
        self.store = open_store(layout.store)
        self.store.take_over()
        self.store.deploy(plan)
        self.clock, names = Clock(), ("clicks", "views")
        self.topics = {
            name: open_writer(layout.log(name), 1, segment_bytes_max=1, clock=self.clock)
            for name in names
        }
        for topic in self.topics.values():
            for _ in range(10):
                topic.append(0, [b"{}"], bytes(1)).result()
        self.pipelines = pipelines_of(Sessions(), project, plan, self.store)
        (self.joined,) = [flow.name for flow in flows_of(plan) if flow.joined]
        self.pipelines[self.joined].archive_all()
        self.clock.now_us += 1_000 * DAY

    def promote(self, flow: str, *offsets: int) -> None:
        """Let batch reach a place in a flow, and speed go on from there."""
        state, nothing = self.store.stream(flow), (None,) * len(offsets)
        marks = (None,) * len(state.plan.streams)
        reached = FlowProgress(Position(offsets), nothing, marks)
        self.store.promote(flow, state.generation, reached, 0, [], ())

    def starts(self) -> dict[str, int]:
        return {name: topic.start().offsets[0] for name, topic in self.topics.items()}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    for topic in made.topics.values():
        topic.close()
    made.store.close()


def test_the_log_keeps_what_any_flow_that_reads_it_may_go_back_to(bench: Bench) -> None:
    bench.promote("clicks", 9)
    bench.promote("views", 3)
    bench.promote(bench.joined, 5, 7)
    for pipeline in bench.pipelines.values():
        pipeline.tidy(bench.topics)
    assert bench.starts() == {"clicks": 5, "views": 3}


def test_the_cleanup_of_a_stream_is_watched(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline, suspects = bench.pipelines["clicks"], list[str]()
    monkeypatch.setattr(module, "compact", lambda *_: suspects.extend(pipeline.watchdog.suspects))
    pipeline.tidy(bench.topics)
    assert suspects == ["the cleanup of stream 'clicks'"]


def test_batch_helps_where_the_log_begins_after_what_speed_would_read(bench: Bench) -> None:
    bench.promote("clicks", 9)
    pipeline = bench.pipelines["clicks"]
    assert not pipeline.needs_catch_up()
    bench.topics["clicks"].retain(Position((10,)), 0)
    assert bench.starts()["clicks"] == 9
    assert not pipeline.needs_catch_up()
    bench.topics["clicks"].append(0, [b"{}"], bytes(1)).result()
    bench.clock.now_us += DAY
    bench.topics["clicks"].retain(Position((11,)), 0)
    assert bench.starts()["clicks"] == 10
    assert pipeline.needs_catch_up()
