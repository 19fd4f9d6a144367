"""Publishes events of lineage to a file, a URL, or both, from a thread of its own.

A URL is requested like a webhook (headrace/destination/webhook.py): one host whose addresses are
checked, no redirects, limited in size and time. Publishing never delays a build: the buffer is
bounded, each event is tried a few times, and dropped events are logged.
tests/run/test_lineage_publisher.py has a receiver.
"""

from __future__ import annotations

import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol
from urllib.parse import urlsplit

import msgspec
import structlog

from headrace.compile.plan import Plan
from headrace.core.errors import BadSetting
from headrace.core.report import Report
from headrace.core.time import Clock, now_us
from headrace.core.worker import Worker
from headrace.define.paths import output_file
from headrace.define.project import Project
from headrace.destination.file import LinesWriter
from headrace.destination.protocol import DestinationWriter, Message, Undeliverable
from headrace.destination.webhook import WebhookWriter, secrets_of
from headrace.run.openlineage import Event, generation_event, plan_events

log = structlog.get_logger()
WAITING_MAX, ATTEMPTS, PAUSE_S = 1_000, 3, 1.0
STOP_S_MAX = 5.0


class OnBuild(Protocol):
    """Called when a build has ended, with its stream, start time, and problem if it failed."""

    def __call__(self, stream: str, began_us: int, problem: str = "") -> None: ...


class LineagePublisher:
    """Publishes deployed plans and builds."""

    def __init__(
        self,
        writers: Sequence[DestinationWriter],
        clock: Clock = now_us,
        sleep: Callable[[float], None] = time.sleep,
        report: Report = lambda kind, fields: None,
    ) -> None:
        self._writers, self._clock, self._sleep = writers, clock, sleep
        self._plan: Plan | None = None
        self._waiting: queue.Queue[Event | None] = queue.Queue(WAITING_MAX)
        self.worker = Worker("lineage", self._turn, threading.Event(), report)
        if writers:
            self.worker.start()

    def publish_plan(self, plan: Plan) -> None:
        """Publish the inputs of each view of a deployed plan."""
        self._plan = plan
        self._enqueue(plan_events(plan, self._clock(), iter(_run_id, "")))

    def publish_build(self, stream: str, began_us: int, problem: str = "") -> None:
        """Publish a build that has ended; a build without new events is not published."""
        if self._plan is None:
            return
        run, end = _run_id(), "FAIL" if problem else "COMPLETE"
        first = generation_event(self._plan, stream, "START", began_us, run)
        last = generation_event(self._plan, stream, end, self._clock(), run, problem)
        self._enqueue([first, last])

    def stop(self) -> None:
        """Deliver the buffered events, for STOP_S_MAX seconds at most."""
        if self.worker.alive:
            self._waiting.put(None)
            self.worker.join(STOP_S_MAX)

    def _enqueue(self, events: Iterable[Event]) -> None:
        for event in events if self._writers else ():
            try:
                self._waiting.put_nowait(event)
            except queue.Full:
                log.warning("lineage.dropped", job=event["job"]["name"])

    def _turn(self) -> float | None:
        if (event := self._waiting.get()) is None:
            return None
        key = f"{event['run']['runId']}.{event['eventType']}"
        message = Message(0, key, msgspec.json.encode(event))
        for writer in self._writers:
            self._deliver(writer, message)
        return 0.0

    def _deliver(self, writer: DestinationWriter, message: Message) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                writer.deliver([message])
                return
            except Undeliverable as error:
                log.warning("lineage.undelivered", reason=str(error))
                return
            except Exception as error:
                if attempt == ATTEMPTS:
                    log.warning("lineage.undelivered", reason=repr(error))
                else:
                    self._sleep(PAUSE_S * attempt)


def _run_id() -> str:
    return str(uuid.uuid4())


def publisher_of(project: Project, report: Report = lambda kind, fields: None) -> LineagePublisher:
    """The publisher for the settings of a project; without them it publishes nothing."""
    settings, writers = project.settings.lineage, list[DestinationWriter]()
    if settings.file:
        writers.append(LinesWriter(output_file(project, settings.file, "lineage.file")))
    if settings.url:
        writers.append(_webhook(project))
    return LineagePublisher(writers, report=report)


def _webhook(project: Project) -> WebhookWriter:
    url, notify = project.settings.lineage.url, project.settings.notify
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadSetting(
            f"lineage.url is not a URL: {url!r}", hint='write url = "https://host/api/v1/lineage"'
        )
    # The host of lineage.url is allowed without notify.hosts.
    allowed = replace(notify, hosts=(parts.hostname,))
    return WebhookWriter(url, allowed, secrets_of(notify))
