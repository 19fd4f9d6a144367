"""`headrace run` from start to end: start, report progress, stop, and summarize.

With `until_idle` speed is not started: all events in the log, and in the folders that streams
import from, are processed by batch, which is also the fastest way to load history.
tests/run/test_runs.py checks both modes and the summary.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import msgspec

from headrace.api.resources.balance import Balance
from headrace.core.errors import HeadraceError, Unavailable
from headrace.core.report import Report, unfailing
from headrace.define.layout import Layout
from headrace.define.project import Project
from headrace.ingest.files import FileConnector
from headrace.run.instance import Instance
from headrace.run.log_file import log_to_file
from headrace.run.tracing import export_traces
from headrace.serving.history import count_epochs

PROGRESS_S = 1.0
DRAIN_SECONDS_MAX = 60.0


class Summary(msgspec.Struct, frozen=True):
    """What a run did, and whether the audit agrees with it."""

    start_seconds: float  # until it was ready
    run_seconds: float  # until its sources were stopped; `--for` sets this one
    stop_seconds: float  # to drain, to audit and to build the last generation
    accepted: int  # by all streams in this run, duplicates and dead letters included
    epochs: int
    generations: int
    events_built: int  # in these generations
    rows_compared: int | None  # by the audit; None without an audit
    differences: int
    balance: dict[str, Balance]
    ok: bool
    differing: dict[str, int] = {}  # the differences of each view that has any
    behind: int = 0  # events that speed had not committed when the run ended


def run(
    project: Project,
    *,
    port: int | None = None,
    seconds: float | None = None,
    until_idle: bool = False,
    report: Report = lambda kind, fields: None,
    turn: int = 0,
    server_key: bytes | None = None,
) -> Summary:
    """Run a project until it is interrupted, for some seconds, or until its log is processed."""
    report = unfailing(report)
    timing = Timing(time.monotonic())
    # Signals are handled before the first report, so that its reader can stop the run.
    with _interrupt() as stop, export_traces(project.settings):
        report("starting", {"name": project.settings.name})
        log_to_file(Layout.of(project), project.settings.name, project.settings.log)
        instance = Instance(project, report, turn, server_key)
        try:
            with instance.engine_checked():
                summary = _run(instance, timing, stop, port, seconds, until_idle)
        finally:
            instance.close()
    return summary


def _run(
    instance: Instance,
    timing: Timing,
    stop: threading.Event,
    port: int | None,
    seconds: float | None,
    until_idle: bool,
) -> Summary:
    instance.open()
    if until_idle:
        behind = _run_batch(instance, timing, stop)
        return _summary(instance, timing, behind, audited=True)
    ready = _start(instance, timing, stop, port, seconds)
    if ready:
        _report_progress(instance, stop, seconds, instance.report)
        timing.ended()
    behind = _drain(instance, stop)
    instance.report("stopping", {})
    # The views are built once more below, and only one build of a flow may run at a time.
    instance.begin_stop()
    audited, interrupted = ready and seconds is not None, stop.is_set()
    return _summary(instance, timing, behind, audited=audited, interrupted=interrupted)


def _start(
    instance: Instance,
    timing: Timing,
    stop: threading.Event,
    port: int | None,
    seconds: float | None,
) -> bool:
    """Start the instance; False if `stop` was set before it was ready."""
    url = instance.serve(port)
    instance.start_sources()
    ready = instance.start_engine(stop) and instance.start_flow(stop)
    start_seconds = timing.ready()
    timing.ended()
    if ready:
        views = [view.name for view in instance.deployed().shown_views]
        fields = {"seconds": start_seconds, "url": url, "views": views, "for": seconds}
        instance.report("ready", fields)
    return ready


class Timing:
    """When a run began, was ready, and ended; what follows the end is stopping."""

    def __init__(self, now: float) -> None:
        self._began = self._ready = self._ended = now

    def ready(self) -> float:
        """The seconds that the start took."""
        self._ready = time.monotonic()
        return round(self._ready - self._began, 1)

    def ended(self) -> None:
        self._ended = time.monotonic()

    def parts(self) -> tuple[float, float, float]:
        """The seconds of the start, of the run and, so far, of the stop."""
        marks = self._began, self._ready, self._ended, time.monotonic()
        start, run, stop = (round(later - earlier, 1) for earlier, later in pairwise(marks))
        return start, run, stop


def _run_batch(instance: Instance, timing: Timing, stop: threading.Event) -> int:
    """Process the whole log with batch; returns the number of events that are left."""
    for name in instance.project.streams:
        connector = instance.connector(name)
        if isinstance(connector, FileConnector):
            connector.scan(stop)
    if stop.is_set() or not instance.start_engine(stop):
        raise _interrupted()
    timing.ready()
    if not instance.build(stop):
        raise _interrupted()
    instance.current_deployment().drain(stop.is_set)
    timing.ended()
    return instance.lag_events()


def _report_progress(
    instance: Instance, stop: threading.Event, seconds: float | None, report: Report
) -> None:
    ends = time.monotonic() + seconds if seconds is not None else float("inf")
    before, at, numbers = instance.events_in(), time.monotonic(), dict[str, int]()
    while time.monotonic() < ends and not stop.wait(
        min(PROGRESS_S, max(0.0, ends - time.monotonic()))
    ):
        instance.check_engine()
        now, count = time.monotonic(), instance.events_in()
        rate = (count - before) / max(now - at, 1e-9)
        before, at, numbers = count, now, _numbers(instance, numbers)
        report("progress", {"events_per_second": round(rate), "events_in": count, **numbers})
    instance.stop_sources()


def _drain(instance: Instance, stop: threading.Event) -> int:
    """Wait until speed has committed all events that are in the logs now; returns the number of
    events that it has not committed in time, or before `stop` was set.
    """
    deployment, deadline = instance.current_deployment(), time.monotonic() + DRAIN_SECONDS_MAX
    ends = deployment.ends()
    while (behind := deployment.behind(ends)) and time.monotonic() < deadline:
        if stop.wait(0.1):
            break
    return behind


def _numbers(instance: Instance, before: dict[str, int]) -> dict[str, int]:
    """The numbers now; those before while the store cannot be read, with that as a problem."""
    levels = Counter(problem.level for problem in instance.health_monitor.known)
    try:
        return {
            "lag_events": instance.lag_events(),
            "epochs": _epochs(instance),
            "generations": instance.current_deployment().schedule.generations,
            "problems": levels["bad"],
            "warnings": levels["warn"],
        }
    except Unavailable:
        return before | {"problems": max(1, levels["bad"]), "warnings": levels["warn"]}


def _epochs(instance: Instance) -> int:
    with instance.store.read() as db:
        return count_epochs(db, instance.started_at)


def _summary(
    instance: Instance, timing: Timing, behind: int, *, audited: bool, interrupted: bool = False
) -> Summary:
    # The merged answers are audited first; then the last generation replaces speed's rows and is
    # compared with them.
    audits = instance.audit() if audited else []
    if audited:
        instance.current_deployment().build()
    schedule = instance.current_deployment().schedule
    status = instance.status()
    balance = {stream.name: stream.balance for stream in status.streams}
    found = Counter(schedule.differences)
    found.update({audit.view: audit.differences for audit in audits})
    # An interrupted run does not wait for speed; the next run continues where this one has stopped.
    missed = 0 if interrupted else behind
    return Summary(
        *timing.parts(),
        instance.events_in(),
        _epochs(instance),
        schedule.generations,
        schedule.events,
        sum(audit.compared for audit in audits) if audited else None,
        found.total(),
        balance,
        found.total() + missed == 0 and all(entry.off == 0 for entry in balance.values()),
        {view: many for view, many in found.items() if many},
        behind,
    )


@contextmanager
def _interrupt() -> Iterator[threading.Event]:
    """The first Ctrl-C or SIGTERM stops gracefully; the next one immediately."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def handle(number: int, _frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    for number in before:
        signal.signal(number, handle)
    try:
        yield stop
    except KeyboardInterrupt as error:
        raise _interrupted() from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupted() -> HeadraceError:
    return HeadraceError(
        "the run was interrupted before it finished", hint="the log and the store are intact."
    )
