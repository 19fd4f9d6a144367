"""A run without Spark: it handles signals from its first report on, and waits at its end for what
was not computed, and reports what is missing then.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.core.errors import AlreadyRunning, HeadraceError, NotReady
from headrace.core.position import Position
from headrace.define.project import load_project
from headrace.run import loop
from headrace.run.deployment import Deployment
from headrace.run.instance import Instance

from .stopped import make_stopped
from .test_instance import Idle, made_of


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[Instance]:
    """Ten events in the log, of which speed has taken fewer; more may come in."""
    made = Instance(make_stopped(tmp_path / "project"), lambda kind, fields: None)
    made.open()
    schedule: Any = Idle()
    schedule.differences, schedule.events, schedule.generations = Counter[str](), 0, 0
    made.deployment = made_of(made, {"clicks": Pipeline(made)}, schedule)
    yield made
    made.close()


class Pipeline:
    """The end of a stream's log."""

    def __init__(self, instance: Instance) -> None:
        self._topic = instance.stream_intakes.topics["clicks"]
        self.speed = SimpleNamespace(problem=None)

    def end(self) -> Position:
        return self._topic.end()

    def stop(self) -> None:
        """Nothing runs."""


def taken(instance: Instance) -> int:
    return sum(instance.store.stream("clicks").position.offsets)


def test_what_speed_has_not_taken_in_time_is_counted(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "DRAIN_SECONDS_MAX", 0.2)
    left = 10 - taken(instance)
    assert left > 0
    assert loop._drain(instance, threading.Event()) == left


def test_what_comes_in_after_the_end_is_not_waited_for(instance: Instance) -> None:
    deployment: Deployment = instance.current_deployment()
    ends = {"clicks": instance.store.stream("clicks").position}
    assert deployment.behind(ends) == 0
    assert deployment.behind(deployment.ends()) == 10 - taken(instance)


def test_who_interrupts_a_run_does_not_wait_for_speed(instance: Instance) -> None:
    stop = threading.Event()
    stop.set()
    assert loop._drain(instance, stop) == 10 - taken(instance) > 0


class Started:
    """What a run asks of an instance until its summary, without Spark."""

    def __init__(
        self, instance: Instance, monkeypatch: pytest.MonkeyPatch, built: bool = True
    ) -> None:
        self.instance, self.reports, self.audited = instance, list[str](), list[bool]()
        self.refusals, self.left = list[str](), list[tuple[int, bool]]()
        instance.report = lambda kind, fields: self.reports.append(kind)
        monkeypatch.setattr(instance, "open", lambda: None)
        monkeypatch.setattr(instance, "serve", lambda port: "http://here")
        monkeypatch.setattr(instance, "start_engine", lambda *_: built)
        monkeypatch.setattr(instance, "start_flow", self._flow)
        monkeypatch.setattr(loop, "_drain", lambda *_: 4)
        monkeypatch.setattr(loop, "_summary", self._summary)

    def run(self, stop: threading.Event, seconds: float | None) -> None:
        loop._run(self.instance, loop.Timing(time.monotonic()), stop, None, seconds, False)

    def _flow(self, stop: threading.Event) -> bool:
        self.instance.state, self.instance.reason = "running", ""
        return not stop.is_set()

    def _summary(self, *given: Any, audited: bool, interrupted: bool) -> Any:
        self.audited.append(audited)
        self.left.append((given[-1], interrupted))
        with pytest.raises(NotReady) as refused:
            self.instance.redeploy({}, "ann")
        self.refusals.append(refused.value.message)


def test_no_rule_is_added_while_a_run_builds_for_the_last_time(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = Started(instance, monkeypatch)
    monkeypatch.setattr(instance, "_compile", lambda project: pytest.fail("it is compiled"))
    started.run(threading.Event(), 0.0)
    assert (started.refusals, started.audited) == (["the project is shutting down"], [True])
    assert started.reports == ["ready", "stopping"]
    assert started.left == [(4, False)]


def test_a_run_that_is_stopped_in_its_first_builds_ends_without_being_ready(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, stop = Started(instance, monkeypatch, built=False), threading.Event()
    stop.set()
    started.run(stop, 60.0)
    assert (started.reports, started.audited) == (["stopping"], [False])
    assert started.left == [(4, True)]
    assert instance.state == "stopping"


def test_a_run_that_is_stopped_while_speed_starts_ends_without_being_ready(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, stop = Started(instance, monkeypatch), threading.Event()
    stop.set()
    started.run(stop, None)
    assert (started.reports, started.audited) == (["stopping"], [False])


def test_who_interrupts_an_import_does_not_wait_for_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "headrace.toml").write_text('name = "imports"\n')
    (tmp_path / "imports.sql").write_text(
        "CREATE STREAM lines (n INT) WITH (source = 'files', path = '*.ndjson');"
    )
    (tmp_path / "lines.ndjson").write_text('{"n": 1}\n' * 100)
    instance, stop = Instance(load_project(tmp_path), lambda kind, fields: None), threading.Event()
    monkeypatch.setattr(instance, "start_engine", lambda *_: pytest.fail("Spark is started"))
    stop.set()
    try:
        instance.open()
        with pytest.raises(HeadraceError, match="the run was interrupted before it finished"):
            loop._run_batch(instance, loop.Timing(time.monotonic()), stop)
        assert instance.events_in() == 0
    finally:
        instance.close()


def test_a_run_that_left_events_uncomputed_is_not_ok(instance: Instance) -> None:
    timing = loop.Timing(time.monotonic())
    assert loop._summary(instance, timing, 0, audited=False).ok
    left = loop._summary(instance, timing, 4, audited=False)
    assert (left.ok, left.behind) == (False, 4)
    left = loop._summary(instance, timing, 4, audited=False, interrupted=True)
    assert (left.ok, left.behind) == (True, 4)


def test_a_signal_after_the_first_report_does_not_kill_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers: list[Any] = []

    def report(kind: str, fields: dict[str, object]) -> None:
        handlers.append((kind, signal.getsignal(signal.SIGTERM)))

    def refused(*_: object) -> None:
        raise AlreadyRunning("this project is already running")

    monkeypatch.setattr(loop, "Instance", refused)
    monkeypatch.setattr(loop, "log_to_file", lambda *_: None)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(AlreadyRunning):
        loop.run(make_stopped(tmp_path / "project"), report=report)
    ((kind, handler),) = handlers
    assert kind == "starting"
    assert handler not in {before, signal.SIG_DFL}
    assert signal.getsignal(signal.SIGTERM) == before
