"""The order of a start: the lock, the log, HTTP, and only then Spark; and the way back, which
leaves nothing that the next start could miss. tests/run/test_runs.py runs an instance whole.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark import SparkContext
from serving.bench import CLICKS

from headrace.api.resources.status import StatusRequest
from headrace.compile.plan import Plan
from headrace.core import worker
from headrace.core.errors import (
    AlreadyRunning,
    BadDefinition,
    BadProject,
    DiskFull,
    EngineFailed,
    Fenced,
    HeadraceError,
    LimitReached,
    NotFound,
    NotReady,
    Unavailable,
)
from headrace.core.position import Position
from headrace.core.problems import Problem, ProblemKey
from headrace.core.time import DAY
from headrace.define.project import Project, load_project
from headrace.define.settings import WatchdogSettings
from headrace.ingest.files import FileConnector
from headrace.run.connect import connect
from headrace.run.deployment import Deployment
from headrace.run.instance import Instance
from headrace.run.offline import Offline
from headrace.run.pipeline import Pipeline as RealPipeline
from headrace.serving.broadcast import Lane
from headrace.spark.jobs import BatchJobs
from headrace.spark.query_client import QueryRequest
from headrace.speed.runner import EpochRunner
from tests.serving.broadcast_bench import CountingTopic

from . import asking
from .stopped import make_stopped
from .waiting import wait


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_stopped(tmp_path / "project")


@pytest.fixture
def instance(project: Project) -> Iterator[Instance]:
    made = Instance(project, lambda kind, fields: None)
    made.open()
    yield made
    made.close()


def test_events_are_taken_and_old_answers_given_before_spark_runs(instance: Instance) -> None:
    url = asking.meet(instance.serve(0), instance.project.folder)
    posted = asking.post(f"{url}/v1/streams/clicks/events", content=CLICKS[0].record)
    assert posted.status_code == 200
    answer = asking.get(f"{url}/v1/views/total").json()
    assert answer["rows"][0]["n"] == 6
    assert answer["as_of"]["clicks"]["behind"] == 11 - sum(answer["as_of"]["clicks"]["position"])
    asked = asking.post(f"{url}/v1/sql", json={"sql": "SELECT n FROM total"}).json()
    assert asked["as_of"]["clicks"]["behind"] == answer["as_of"]["clicks"]["behind"] > 0
    status = asking.get(f"{url}/v1/status").json()
    assert (status["state"], status["url"]) == ("starting", url)
    assert sum(status["streams"][0]["end"]) == 11
    assert status["streams"][0]["balance"]["off"] == 0
    assert instance.ready() == (False, "the log is being opened")
    assert instance.spark is None


def away() -> None:
    raise Unavailable("PostgreSQL cannot be used now: the connection is refused")


def test_a_store_that_is_away_is_a_problem_of_the_status(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance.state, instance.reason = "running", ""
    known = instance.status()
    monkeypatch.setattr(instance.store, "deployed", away)
    found = instance.status()
    (problem,) = found.problems
    assert problem.message == (
        "the status has its last known numbers: PostgreSQL cannot be used now: "
        "the connection is refused"
    )
    assert (found.state, found.reason) == ("degraded", problem.message)
    assert (found.streams, found.views) == (known.streams, known.views)
    monkeypatch.undo()
    assert problem not in instance.status().problems


def test_the_status_is_there_before_the_store_was_ever_read(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instance.store, "deployed", away)
    found = instance.status()
    assert (found.name, found.state, found.streams) == ("stopped", "starting", [])
    assert [problem.what for problem in found.problems] == ["store"]


def test_sources_take_events_before_spark_runs(tmp_path: Path) -> None:
    folder = tmp_path / "listening"
    folder.mkdir()
    (folder / "headrace.toml").write_text('name = "listening"\n')
    (folder / "project.sql").write_text(
        "CREATE STREAM lines (n INT) WITH (source = 'tcp', port = '0', acks = 'on');"
    )
    instance = Instance(load_project(folder), lambda kind, fields: None)
    try:
        instance.open()
        instance.start_sources()
        (connector,) = instance.sources
        assert connector.listening.wait(10)
        with socket.create_connection(("127.0.0.1", connector.port), 10) as line:
            line.sendall(b'{"n": 1}\n')
            assert line.makefile().readline() == '{"accepted": 1}\n'
        assert (instance.events_in(), instance.spark) == (1, None)
    finally:
        instance.close()


def test_a_port_that_is_taken_is_a_problem_until_it_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "RETRY_MAX_S", 0.1)
    monkeypatch.setattr("headrace.run.instance.CONNECTED_S", 0.1)
    taken = socket.create_server(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    folder = tmp_path / "listening"
    folder.mkdir()
    (folder / "headrace.toml").write_text('name = "listening"\n')
    (folder / "project.sql").write_text(
        f"CREATE STREAM lines (n INT) WITH (source = 'tcp', port = '{port}');"
    )
    instance = Instance(load_project(folder), lambda kind, fields: None)
    try:
        instance.open()
        instance.start_sources()
        wait(lambda: bool(instance.problems()), 10)
        (problem,) = instance.problems()
        assert (problem.kind, problem.name) == ("source", "lines")
        assert "the port is in use by another process" in problem.message
        taken.close()
        (connector,) = instance.sources
        assert connector.listening.wait(10)
        wait(lambda: instance.problems() == [], 10)
        socket.create_connection(("127.0.0.1", port), 10).close()
    finally:
        taken.close()
        instance.close()


def test_a_rebuild_must_wait_for_the_start(instance: Instance) -> None:
    with pytest.raises(NotReady, match="the project is still starting"):
        instance.rebuild("total")
    for view in ("pages", "elsewhere"):
        with pytest.raises(NotFound, match=f"there is no materialized view '{view}'"):
            instance.rebuild(view)


def test_a_rebuild_that_takes_long_continues_and_says_where_it_is_shown(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.run.instance.REBUILD_SECONDS_MAX", 0.01)
    promoted: Future[Any] = Future()
    schedule: Any = Idle()
    schedule.rebuild = lambda stream, view: promoted
    instance.deployment = made_of(instance, {}, schedule)
    with pytest.raises(LimitReached) as caught:
        instance.rebuild("total")
    assert caught.value.message == (
        "the rebuild of view 'total' has not finished within 10ms; it continues"
    )
    assert caught.value.hint == "GET /v1/views/total/about shows its progress, as does the console."
    assert not promoted.cancelled()
    promoted.set_exception(TimeoutError("the store has not answered"))
    with pytest.raises(TimeoutError, match="the store has not answered"):
        instance.rebuild("total")


def test_a_second_instance_is_refused_and_questions_go_to_the_first(
    instance: Instance, project: Project
) -> None:
    url = instance.serve(0)
    with pytest.raises(AlreadyRunning) as caught:
        Instance(project, lambda kind, fields: None)
    assert caught.value.message == f"this project is already running at {url}"
    service: Any = connect(project)
    assert service.ask(StatusRequest()).url == url
    service.close()


def test_after_the_end_the_project_is_stopped_and_whole(project: Project) -> None:
    instance = Instance(project, lambda kind, fields: None)
    instance.open()
    instance.serve(0)
    instance.submit("clicks", [CLICKS[0].record]).result(10)
    instance.close()
    service = connect(project)
    assert isinstance(service, Offline)
    assert sum(service.status().streams[0].end) == 11
    service.close()


def test_whoever_wrote_before_is_fenced_by_the_start(project: Project) -> None:
    paused = Offline(project)
    paused.store.take_over()
    instance = Instance(project, lambda kind, fields: None)
    instance.open()
    with pytest.raises(Fenced):
        paused.store.close_group("clicks")
    instance.close()
    paused.close()


def test_a_definition_that_cannot_be_read_ends_the_start_before_the_log_is_opened(
    project: Project,
) -> None:
    (project.folder / "more.sql").write_text(
        "CREATE STREAM more (x INT) WITH (source = 'tcp', port = 'many');"
    )
    instance = Instance(load_project(project.folder), lambda kind, fields: None)
    with pytest.raises(BadDefinition):
        instance.open()
    assert instance.stream_intakes.topics == {}
    instance.close()
    after = Offline(project)
    assert after.status().state == "stopped"
    after.close()


COMPILE = ProblemKey("part", "compile", "compile")


@dataclass
class Idle:
    """A part of a deployment that does nothing."""

    problems: list[Problem] = field(default_factory=list)
    problems_of_watches: tuple[Problem, ...] = ()

    def stop(self) -> None:
        """Nothing runs."""


def made_of(
    instance: Instance, pipelines: dict[str, Any], schedule: Idle | None = None
) -> Deployment:
    """A deployment whose parts are idle."""
    parts: list[Any] = [schedule or Idle(), *(Idle() for _ in range(4)), None]
    return Deployment(instance.project, cast(Plan, None), instance.store, pipelines, *parts)


@pytest.mark.parametrize("works", [True, False])
@pytest.mark.parametrize("stopped", [True, False])
def test_rules_are_kept_only_after_their_first_build(
    instance: Instance, monkeypatch: pytest.MonkeyPatch, works: bool, stopped: bool
) -> None:
    done, stop = list[str](), threading.Event()
    if stopped:
        stop.set()

    def build(only: Any, ended: Any) -> bool:
        done.append("built")
        if not works:
            raise ConnectionError("Spark is gone")
        return not ended()

    alerts = SimpleNamespace(release=lambda: done.append("released"))
    made: Any = SimpleNamespace(
        build=build, stop=lambda: None, rule_evaluator=alerts, problems=list, schedule=Idle()
    )
    made.build_until = partial(Deployment.build_until, made)
    monkeypatch.setattr(Deployment, "of", lambda *args: made)
    monkeypatch.setattr(instance.store, "deploy_rules", lambda *args: done.append("kept"))
    for method in ("join", "cancel"):  # Spark is not started here
        monkeypatch.setattr(BatchJobs, method, lambda jobs: None)
    # What fails while the run is being stopped was cancelled.
    with nullcontext() if works or stopped else pytest.raises(ConnectionError):
        assert instance._deploy(instance.deployed(), "ann", stop) is not stopped
    assert done == (["built", "kept", "released"] if works and not stopped else ["built"])


def test_a_project_that_is_stopped_while_speed_starts_is_never_running(instance: Instance) -> None:
    parts = {"start": lambda: None, "stop": lambda: None, "starting": 1, "pipelines": {"clicks": 1}}
    starting: Any = SimpleNamespace(**parts, schedule=Idle())
    instance.deployment, stop = starting, threading.Event()
    stop.set()
    assert not instance.start_flow(stop)
    assert instance.state == "starting"
    starting.starting = 0
    assert instance.start_flow(stop)
    assert instance.ready() == (True, "")


def test_a_stop_cancels_the_build_of_a_change_and_rolls_it_back(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped, told = list[str](), list[str]()
    schedule: Any = SimpleNamespace(stop=lambda: stopped.append("schedule"))
    running: Any = SimpleNamespace(schedule=schedule, plan=instance.deployed(), stop=lambda: None)

    def redeploy(context: Any, project: Any, plan: Any, change: Any, stop: threading.Event) -> Any:
        building.set()
        assert stop.wait(10)
        if not told:
            told.append("building")
            raise NotReady("the change was rolled back")
        return running

    building, running.redeploy, instance.deployment = threading.Event(), redeploy, running
    instance.state = "running"
    monkeypatch.setattr(instance, "_compile", lambda project: instance.deployed())

    def change() -> None:
        with pytest.raises(NotReady) as refused:
            instance.redeploy({}, "ann")
        told.append(refused.value.message)

    changing = threading.Thread(target=change)
    changing.start()
    assert building.wait(10)
    stopping = threading.Thread(target=instance.begin_stop)
    stopping.start()
    stopping.join(10)
    assert not stopping.is_alive()
    changing.join(10)
    assert (told, stopped) == (["building", "the change was rolled back"], ["schedule"])
    assert instance.ready() == (False, "the project is shutting down")


def test_a_run_ends_when_a_change_can_be_neither_made_nor_taken_back(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise DiskFull("the disk is full")

    instance.state, instance.reason = "running", ""
    instance.deployment = made_of(instance, {})
    monkeypatch.setattr(instance, "_compile", lambda project: instance.deployed())
    monkeypatch.setattr(instance, "_redeploy", full)
    with pytest.raises(HeadraceError) as refused:
        instance.redeploy({}, "ann")
    said = "the project could not be changed, and the rollback to its previous plan failed"
    assert (refused.value.message, refused.value.detail) == (said, "the disk is full")
    assert instance.ready() == (False, said)
    assert instance.status().reason == said
    with pytest.raises(Unavailable, match=said):
        instance.check_engine()
    with pytest.raises(NotReady, match="the project is shutting down"):
        instance.redeploy({}, "ann")


def test_what_fails_because_spark_has_died_says_so(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = SimpleNamespace(proc=SimpleNamespace(wait=lambda seconds: 3))
    monkeypatch.setattr(SparkContext, "_gateway", dead)
    step = instance.watchdog.step(COMPILE, "the compilation of the project", 1)
    with pytest.raises(EngineFailed) as caught, instance.engine_checked(), step:
        raise Py4JNetworkError("Answer from Java side is empty")
    assert caught.value.message == "Spark ran out of memory, and its process exited"
    assert "in progress: the compilation of the project" in (caught.value.detail or "")
    monkeypatch.undo()
    with pytest.raises(ValueError, match="ours"), instance.engine_checked():
        raise ValueError("ours")


def test_the_start_of_spark_is_watched(instance: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    suspects = list[str]()
    start: Any = lambda *_, **__: suspects.extend(instance.watchdog.suspects)  # noqa: E731
    monkeypatch.setattr("headrace.spark.session.start_session", start)
    monkeypatch.setattr(instance, "_compile", lambda project: instance.deployed())
    monkeypatch.setattr(instance, "_deploy", lambda *_: True)
    assert instance.start_engine(threading.Event())
    assert suspects == ["the start of Spark"]


def test_the_project_is_compiled_while_spark_starts(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled, done = threading.Event(), list[str]()

    def start(*_: object, **__: object) -> None:
        assert compiled.wait(10), "the compilation waits for Spark"
        done.append("Spark has started")

    def compile_(project: Project) -> Plan:
        compiled.set()
        return cast(Plan, instance.deployed())

    monkeypatch.setattr("headrace.spark.session.start_session", start)
    monkeypatch.setattr(instance, "_compile", compile_)
    monkeypatch.setattr(instance, "_deploy", lambda *_: done.append("deployed"))
    instance.start_engine(threading.Event())
    assert done == ["Spark has started", "deployed"]


def test_an_error_of_the_start_of_spark_ends_the_start(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*_: object, **__: object) -> None:
        raise EngineFailed("Spark could not start")

    monkeypatch.setattr("headrace.spark.session.start_session", start)
    monkeypatch.setattr(instance, "_compile", lambda project: instance.deployed())
    monkeypatch.setattr(instance, "_deploy", lambda *_: pytest.fail("it is deployed"))
    with pytest.raises(EngineFailed, match="Spark could not start"):
        instance.start_engine(threading.Event())


def test_a_step_that_hangs_is_a_problem_in_the_status(instance: Instance) -> None:
    with instance.watchdog.step(COMPILE, "the compilation of the project", -1):
        said = [one.message for one in instance.status().problems]
    assert "the compilation of the project has not completed within -1us" in said


def test_problems_of_all_workers_are_reported(project: Project) -> None:
    reports = list[tuple[str, dict[str, object]]]()
    instance = Instance(project, lambda kind, fields: reports.append((kind, fields)))
    told = instance.hub.broadcast, instance.observatory.live_topics.broadcast
    for broadcast, name in zip(told, ("subscriptions", "live"), strict=True):
        CountingTopic(broadcast, Lane(name)).subscribe()

    def fail() -> None:
        raise ValueError("broken")

    shared = instance.observatory.sampler.worker, instance.lineage.worker
    for one in (*told[0].workers, *told[1].workers, *shared):
        one._turn = fail
        one._tried()
    instance.close()
    said = {str(fields["message"]) for kind, fields in reports if kind == "problem"}
    names = "subscriptions", "live", "samples", "lineage"
    assert said == {f"{name} failed: ValueError: broken" for name in names}


def test_a_source_that_fails_in_any_way_is_a_problem_of_it_also_after_a_redeploy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(connector: FileConnector, stop: threading.Event) -> None:
        raise ValueError("not an error of ours")

    monkeypatch.setattr(FileConnector, "run", broken)
    (tmp_path / "headrace.toml").write_text('name = "files"\n')
    (tmp_path / "project.sql").write_text(
        "CREATE STREAM lines (n INT) WITH (source = 'files', path = 'inbox/*');"
    )
    instance = Instance(load_project(tmp_path), lambda kind, fields: None)
    try:
        instance.open()
        instance.start_sources()
        wait(lambda: bool(instance.problems()), 10)
        expected = [("source:lines", "ingest lines failed: ValueError: not an error of ours")]
        assert [(one.about, one.message) for one in instance.problems()] == expected
        instance.state, instance.deployment = "running", made_of(instance, {})
        monkeypatch.setattr(instance, "_compile", lambda project: None)
        monkeypatch.setattr(instance, "_redeploy", lambda *_: made_of(instance, {}))
        before = instance.deployment
        instance.redeploy({}, "ann")
        assert instance.deployment is not before
        assert [(one.about, one.message) for one in instance.problems()] == expected
    finally:
        instance.close()


def test_a_problem_of_the_schedule_makes_a_running_instance_degraded(instance: Instance) -> None:
    said = "the archive step of stream 'clicks' failed: no room"
    troubled = Idle([Problem("flow", "clicks", "archive", said)])
    instance.state, instance.reason = "running", ""
    settings = instance.project.settings
    patient = replace(settings, watchdog=WatchdogSettings(wait_us=1_000_000 * DAY))
    instance.project = replace(instance.project, settings=patient)
    assert instance.status().state == "running"
    instance.deployment = made_of(instance, {}, troubled)
    status = instance.status()
    assert (status.state, status.reason) == ("degraded", said)
    assert status.streams[0].problem == status.reason


@dataclass
class Pipeline:
    """A stream's speed, as far as its lag is concerned."""

    speed_running: bool
    starter: Any = field(default_factory=lambda: SimpleNamespace(problem=None, started=True))

    def lag_events(self) -> int:
        return 5

    def stop(self) -> None:
        """Nothing runs."""


def test_a_producer_is_slowed_by_the_lag_of_speed_once_it_runs(project: Project) -> None:
    path = project.folder / "bench.sql"
    path.write_text(path.read_text().replace("'2')", "'2', lag_events_max = '4')"))
    instance = Instance(load_project(project.folder), lambda kind, fields: None)
    instance.open()
    served = asking.meet(instance.serve(0), instance.project.folder)
    url = f"{served}/v1/streams/clicks/events"
    try:
        # Four events wait already, and the log is the buffer of a start.
        assert asking.post(url, content=CLICKS[0].record).status_code == 200
        instance.deployment = made_of(instance, {"clicks": Pipeline(False)})
        assert (instance.lag_of("clicks"), instance.lag_events()) == (0, 5)
        instance.deployment = made_of(instance, {"clicks": Pipeline(True)})
        assert instance.lag_of("clicks") == 5
        time.sleep(0.11)
        refused = asking.post(url, content=CLICKS[0].record)
        assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
        assert refused.json()["message"] == (
            "the speed layer of stream 'clicks' is 5 events behind, and lag_events_max is 4"
        )
    finally:
        instance.close()


def test_the_end_does_not_wait_for_a_subscription_that_waits_for_its_turn(
    project: Project,
) -> None:
    instance = Instance(project, lambda kind, fields: None)
    pool, refused = instance.query_service.pool, list[str]()
    for user in ("ada", "bob"):
        pool._turns.enter(user, lambda: None)  # and never leaves

    def read() -> None:
        with pytest.raises(Unavailable) as told:
            pool.run(QueryRequest("SELECT 1"), "cid")
        refused.append(told.value.message)

    CountingTopic(instance.hub.broadcast, during=read).subscribe()
    wait(lambda: pool._turns.waiting == 1, 10)
    began = time.monotonic()
    instance.close()
    assert time.monotonic() - began < 10
    assert refused == ["the project is shutting down"]


def test_an_append_is_told_to_those_who_hear_its_stream(instance: Instance) -> None:
    hears = CountingTopic(instance.hub.broadcast, Lane("stream clicks", "clicks"))
    hears.during = lambda: seen.append(instance.log_end("clicks"))
    seen, subscriber = list[Position](), hears.subscribe()
    wait(lambda: len(seen) == 1, 10)
    instance.submit("Clicks", [CLICKS[0].record]).result(10)
    wait(lambda: len(seen) == 2, 10)
    assert sum(seen[1].offsets) == sum(seen[0].offsets) + 1
    subscriber.close()


class Stopped(RealPipeline):
    """A stream's pipeline in a redeploy that does not keep it."""

    def __init__(self, stopping: bool) -> None:
        self.speed = cast(EpochRunner, SimpleNamespace(running=not stopping))

    def lag_events(self) -> int:
        return 5

    def stop(self) -> None:
        """Nothing runs."""


@pytest.mark.parametrize("stopping", [True, False])
def test_a_producer_is_not_slowed_by_speed_that_was_stopped(
    instance: Instance, stopping: bool
) -> None:
    deployment = made_of(instance, {"clicks": Stopped(stopping)})
    assert deployment.lag_of("clicks") == (0 if stopping else 5)


def test_no_error_of_a_running_project_says_where_it_lies(project: Project) -> None:
    instance = Instance(project, lambda kind, fields: None)
    try:
        topic = next(project.state.rglob("topic.json"))
        topic.write_text("{")
        with pytest.raises(BadProject) as refused:
            instance.open()
        assert "…/log/clicks/topic.json cannot be read" in refused.value.message
        assert str(project.folder) not in f"{refused.value} {refused.value.as_dict()}"
    finally:
        instance.close()
