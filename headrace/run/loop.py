"""`headrace run` from beginning to end: start, watch, stop, and say what happened.

With `until_idle` nothing streams: all that is in the log (and in the folders that streams import
from) goes through batch, which is also the fastest way to load history.
tests/run/test_runs.py checks both ways and the summary.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from headrace.api.service import Balance
from headrace.core.errors import HeadraceError
from headrace.core.report import Report
from headrace.define.project import Project
from headrace.ingest.connector import connectors
from headrace.ingest.files import FilesConnector
from headrace.run.instance import Instance
from headrace.run.journal import keep_journal
from headrace.run.layout import Layout
from headrace.run.tracing import traced

PROGRESS_S = 1.0
DRAIN_SECONDS_MAX = 60.0


class Summary(msgspec.Struct, frozen=True):
    """What a run did, and whether the second opinion agrees."""

    seconds: float
    events_in: int
    epochs: int
    generations: int
    answers_compared: int
    differences: int
    balance: dict[str, Balance]
    ok: bool
    differing: dict[str, int] = {}  # the differences of each view that has any


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
    """Run a project until it is told to stop, for some seconds, or until its log is worked
    through.
    """
    began = time.monotonic()
    report("starting", {"name": project.settings.name})
    keep_journal(Layout.of(project), project.settings.name, project.settings.log)
    instance = Instance(project, report, turn, server_key)
    with _interrupt() as stop, traced(project.settings):
        try:
            instance.open()
            if until_idle:
                _work_through(instance)
            else:
                url = instance.serve(port)
                instance.start_engine()
                instance.start_flow()
                views = [view.name for view in instance.deployed().shown_views]
                seconds_taken = round(time.monotonic() - began, 1)
                report("ready", {"seconds": seconds_taken, "url": url, "views": views})
                _watch(instance, stop, seconds, report)
                report("stopping", {})
                instance.working().schedule.stop()
            summary = _summary(instance, began, audited=seconds is not None or until_idle)
        finally:
            instance.close()
    return summary


def _work_through(instance: Instance) -> None:
    for name, definition in instance.project.streams.items():
        make = connectors.get(definition.source)
        if make is None or definition.source != "files":
            continue
        connector = make(
            definition,
            instance.inlets.intakes[name],
            instance.project.folder,
            instance.layout.ingest,
        )
        assert isinstance(connector, FilesConnector)
        connector.look(threading.Event())
    instance.start_engine()
    instance.working().build()
    instance.working().drain()


def _watch(
    instance: Instance, stop: threading.Event, seconds: float | None, report: Report
) -> None:
    ends = time.monotonic() + seconds if seconds is not None else float("inf")
    before, at = instance.events_in(), time.monotonic()
    while time.monotonic() < ends and not stop.wait(
        min(PROGRESS_S, max(0.0, ends - time.monotonic()))
    ):
        instance.check_engine()
        now, count = time.monotonic(), instance.events_in()
        rate = (count - before) / max(now - at, 1e-9)
        before, at = count, now
        report(
            "progress", {"events_per_second": round(rate), "events_in": count, **_numbers(instance)}
        )
    instance.stop_sources()
    if seconds is not None and not stop.is_set():
        _drain(instance, stop)


def _drain(instance: Instance, stop: threading.Event) -> None:
    """Wait until speed has taken all that came in."""
    deadline = time.monotonic() + DRAIN_SECONDS_MAX
    while instance.lag_events() and time.monotonic() < deadline and not stop.wait(0.1):
        pass


def _numbers(instance: Instance) -> dict[str, object]:
    return {
        "lag_events": instance.lag_events(),
        "epochs": _epochs(instance),
        "generations": instance.working().schedule.generations,
    }


def _epochs(instance: Instance) -> int:
    with instance.store.db.read() as db:
        row = db.execute(
            "SELECT count(*) FROM _epochs WHERE committed_at >= ?", (instance.started_at,)
        ).fetchone()
        return int(row[0])


def _summary(instance: Instance, began: float, *, audited: bool) -> Summary:
    # The merged answers are audited first, then batch takes over what speed held and is compared
    # with it.
    audits = instance.audit() if audited else []
    if audited:
        instance.working().build()
    schedule = instance.working().schedule
    status = instance.status()
    balance = {stream.name: stream.balance for stream in status.streams}
    found = Counter(schedule.differences)
    found.update({audit.view: audit.differences for audit in audits})
    return Summary(
        round(time.monotonic() - began, 1),
        max(instance.events_in(), schedule.events),
        _epochs(instance),
        schedule.generations,
        sum(audit.compared for audit in audits),
        found.total(),
        balance,
        found.total() == 0 and all(entry.off == 0 for entry in balance.values()),
        {view: many for view, many in found.items() if many},
    )


@contextmanager
def _interrupt() -> Iterator[threading.Event]:
    """The first Ctrl-C or SIGTERM stops gracefully; the next one at once."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def ask(number: int, _frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    for number in before:
        signal.signal(number, ask)
    try:
        yield stop
    except KeyboardInterrupt as error:
        raise HeadraceError(
            "stopped before it was finished", hint="the log and the store are whole."
        ) from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
