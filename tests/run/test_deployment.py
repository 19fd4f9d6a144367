"""Another plan takes over what does not change, without Spark: pipelines go on as they are, and
epochs wait only while the store gets the plan.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from serving.bench import DEFINITIONS, plan_of

from headrace.compile.plan import Plan
from headrace.core.errors import Conflict, DiskFull, NotReady
from headrace.core.position import Position
from headrace.core.problems import Problem
from headrace.core.watchdog import Watchdog
from headrace.define.layout import Layout
from headrace.define.project import Project
from headrace.run.archive_drafts import ArchiveDrafts
from headrace.run.delivery_worker import DeliveryWorker
from headrace.run.deployment import Deployment, RunContext
from headrace.run.schedule import Schedule
from headrace.run.tables import Tables
from headrace.serving.database_store import DatabaseStore
from headrace.serving.hub import Hub
from headrace.serving.opening import open_store
from headrace.spark.jobs import BatchJobs

from .stopped import make_stopped

CHANGED = DEFINITIONS + "CREATE VIEW slow AS SELECT page, max(ms) AS slowest FROM clicks GROUP BY 1"


RUNS_ON = threading.Event()  # never set


class Speed:
    def __init__(self) -> None:
        self.between_epochs = threading.Lock()


@dataclass
class Kept:
    """A pipeline that runs on under any plan."""

    store: DatabaseStore
    speed: Speed = field(default_factory=Speed)
    archives: tuple[Any, ...] = ()
    done: list[str] = field(default_factory=list)
    fails: Exception | None = None
    built: Any = None
    starts: int = 0
    during_build: Callable[[], object] = lambda: None

    def serves(self, plan: Plan, flow: Any) -> bool:
        return "stop" not in self.done

    def adopt(self, plan: Plan) -> None:
        self.done.append(f"adopt {len(plan.views)}")

    def has_new_views(self) -> bool:
        return any(version.state == "building" for version in self.store.versions("clicks"))

    def catch_up(self) -> None:
        self.done.append(f"build, epochs held: {self.speed.between_epochs.locked()}")
        self.during_build()
        if self.fails is not None:
            raise self.fails

    def start(self) -> None:
        self.starts += 1

    def archive(self) -> int:
        return 0

    def end(self) -> Position:
        return Position((0,))

    def has_committed(self, end: Position) -> bool:
        return True

    def stop(self) -> None:
        self.done.append("stop")


class Quiet:
    """A publisher of no lineage."""

    def publish_plan(self, plan: Plan) -> None:
        """Publishes nothing."""

    def publish_build(self, stream: str, began_us: int, problem: str = "") -> None:
        """Publishes nothing."""


@dataclass
class Bench:
    project: Project
    store: DatabaseStore
    ground: RunContext
    pipeline: Kept
    before: Deployment
    held: list[bool] = field(default_factory=list)

    def change(self, plan: Plan, shapes: set[str]) -> Callable[[], None]:
        self.held.append(self.pipeline.speed.between_epochs.locked())
        self.store.deploy(plan)
        return lambda: self.pipeline.done.append("rules are noted")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    for method in ("join", "cancel"):  # Spark is not started here
        monkeypatch.setattr(BatchJobs, method, lambda jobs: None)
    project = make_stopped(tmp_path / "project")
    store = open_store(Layout.of(project).store)
    store.take_over()
    plan, pipeline = plan_of(), Kept(store)
    store.deploy(plan)
    hub: Any = Hub(store.db, project.settings.subscribe, None)  # type: ignore[arg-type]
    nothing: Any = lambda *_: None  # noqa: E731
    lineage: Any = Quiet()
    drafts = ArchiveDrafts(project)
    ground = RunContext(
        None, store, {}, hub, lineage, nothing, nothing, nothing, Watchdog(), drafts
    )
    pipelines: Any = {"clicks": pipeline}
    tables = Tables((), project.folder, pipelines, store, lambda table: None)
    schedule = Schedule(pipelines, {}, project.settings, nothing, tables=tables)
    deliveries = DeliveryWorker(plan, project, store.db, nothing, nothing)
    parts: list[Any] = [Idle(), Idle(), Idle(), deliveries]
    before = Deployment(project, plan, store, pipelines, schedule, *parts, tables)
    schedule.start()
    yield Bench(project, store, ground, pipeline, before)
    schedule.stop()
    store.close()


class Idle:
    """Has nothing to look for."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def stop(self) -> None:
        """Nothing runs."""


def replaced(bench: Bench, plan: Plan, stop: threading.Event = RUNS_ON) -> Deployment:
    return bench.before.redeploy(
        bench.ground, bench.project, plan, lambda shapes: bench.change(plan, shapes), stop
    )


def test_a_flow_keeps_its_running_query_when_a_view_is_added(bench: Bench) -> None:
    after = replaced(bench, plan_of(CHANGED))
    assert bench.held == [True], "epochs are held while the store gets the plan"
    assert bench.pipeline.done == ["adopt 6", "build, epochs held: False", "rules are noted"]
    assert after.pipelines == {"clicks": bench.pipeline}
    assert (after.schedule, after.sinks) == (bench.before.schedule, bench.before.sinks)
    assert after.rule_evaluator is not bench.before.rule_evaluator
    assert after.schedule._worker.alive


def test_nothing_is_built_where_no_view_is_new(bench: Bench) -> None:
    replaced(bench, plan_of())
    assert bench.pipeline.done == ["adopt 5", "rules are noted"]


def test_what_fails_is_taken_back_and_the_query_runs_on(bench: Bench) -> None:
    bench.pipeline.fails = DiskFull("the disk is full")
    with pytest.raises(DiskFull):
        replaced(bench, plan_of(CHANGED))
    assert "rules are noted" not in bench.pipeline.done
    bench.pipeline.fails = None
    after = replaced(bench, bench.before.plan)
    assert "stop" not in bench.pipeline.done
    assert after.pipelines == {"clicks": bench.pipeline}
    assert [view.name for view in bench.store.deployed().views] == [  # type: ignore[union-attr]
        view.name for view in bench.before.plan.views
    ]


def test_a_change_whose_build_is_stopped_is_refused_and_can_be_rolled_back(bench: Bench) -> None:
    stop = threading.Event()
    bench.pipeline.during_build, bench.pipeline.fails = stop.set, ValueError("cancelled")
    with pytest.raises(NotReady) as refused:
        replaced(bench, plan_of(CHANGED), stop)
    assert refused.value.message == "the change was rolled back: the project is shutting down"
    assert "rules are noted" not in bench.pipeline.done
    assert replaced(bench, bench.before.plan, stop).plan == bench.before.plan
    assert sum("build" in what for what in bench.pipeline.done) == 1, "nothing is built for that"


def test_a_step_that_has_begun_is_waited_for(bench: Bench) -> None:
    """A build that is promoted while the store gets another plan would be of the old one."""
    done = threading.Event()
    with bench.before.schedule.paused():
        changing = threading.Thread(target=lambda: (replaced(bench, plan_of()), done.set()))
        changing.start()
        assert not done.wait(0.2)
        assert bench.held == []
    changing.join(10)
    assert done.is_set()


def test_a_watch_whose_shape_is_not_deployed_is_refused_and_not_added(bench: Bench) -> None:
    added = list[str]()
    with pytest.raises(Conflict) as refused:
        bench.before.reload_constants({"abc"}, lambda: added.append("w"))
    assert refused.value.message == ("watches of shape abc cannot start: the shape is not deployed")
    assert added == []


def test_speed_is_started_after_the_build(bench: Bench) -> None:
    starts = list[int]()
    bench.pipeline.during_build = lambda: starts.append(bench.pipeline.starts)
    replaced(bench, plan_of(CHANGED))
    assert (starts, bench.pipeline.starts) == ([0], 1)


def test_a_run_that_is_to_stop_builds_no_further_stream(bench: Bench) -> None:
    assert bench.before.build(ended=lambda: True) is False
    assert bench.pipeline.done == []
    assert bench.before.build() is True
    assert bench.pipeline.done == ["build, epochs held: False"]
