"""The topics that can be heard live, and an observatory that tells them.

A view is asked for again only after its streams have moved, alerts only after the ledger has, and
status and topology, which have rates and ages, at their intervals.
tests/run/test_live.py hears each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from headrace.api.resources.topology import Topology
from headrace.api.shapes import StatusReport
from headrace.compile.view_subscription import streams_of
from headrace.core.errors import NotFound
from headrace.core.report import Report
from headrace.core.time import SECOND
from headrace.run.observatory.counting import count
from headrace.run.observatory.disk import Growth
from headrace.run.observatory.samples import Sampler
from headrace.run.observatory.subject import ObservatoryCache, Subject
from headrace.run.observatory.topology import topology_of
from headrace.serving import ledger
from headrace.serving.board import Board, LiveTopic
from headrace.serving.catalog import read_plan
from headrace.serving.hearer import Hearer
from headrace.serving.ledger import Alerts, Wanted
from headrace.serving.progress import read_stream

STATUS_US = SECOND  # reading the master's version costs more than the store
TOPOLOGY_US = SECOND // 2
VIEW = "view:"


class LiveObservatory:
    """Looks at a project that runs in this process, and tells what changes."""

    def __init__(self, subject: Subject, report: Report = lambda kind, fields: None) -> None:
        self.subject, growth = subject, Growth()
        self.sampler = Sampler(
            partial(count, subject),
            lambda now: growth.add(now, subject.layout),
            subject.store.clock,
            report,
        )
        self.memory = ObservatoryCache(self.sampler.samples, growth)
        live = subject.project.settings.live
        changes = subject.store.db.changes
        self.board = Board(live, self.topic, changes, subject.store.clock, report)

    def start(self) -> None:
        self.sampler.start()

    def stop(self) -> None:
        self.board.broadcast.stop()
        self.sampler.stop()

    def live(self, topics: Sequence[str], news: Callable[[], None] = lambda: None) -> Hearer:
        return self.board.join(topics, news)

    def topic(self, name: str) -> LiveTopic:
        """The topic of this name; NotFound if there is none."""
        interval = self.subject.project.settings.live.interval_us
        if name == "status":
            return LiveTopic(name, self._status, interval_us=max(STATUS_US, interval))
        if name == "topology":
            return LiveTopic(name, self.topology, interval_us=max(TOPOLOGY_US, interval))
        if name == "alerts":
            return LiveTopic(name, self._alerts, self._alerts_mark, interval)
        if name.startswith(VIEW):
            return self._view_topic(name, interval)
        raise NotFound(
            f"there is no live topic '{name[:80]}'",
            hint="there are: status, topology, alerts, and view:NAME for each view.",
        )

    def _view_topic(self, name: str, interval: int) -> LiveTopic:
        view = name.removeprefix(VIEW)
        plan = self.subject.deployed()
        if (found := plan.view(view)) is None or found not in plan.shown_views:
            known = ", ".join(view.name for view in plan.shown_views) or "none"
            raise NotFound(f"there is no view '{view[:80]}'", hint=f"there are: {known}.")
        return LiveTopic(name, partial(self._view, view), partial(self._view_mark, view), interval)

    def topology(self) -> Topology:
        return topology_of(self.subject, self.memory.samples, self.memory.reads)

    def _status(self) -> StatusReport:
        return StatusReport.of(self.subject.status())

    def _alerts(self) -> Alerts:
        with self.subject.store.read() as db:
            return ledger.page(db, Wanted())

    def _alerts_mark(self) -> str:
        with self.subject.store.read() as db:
            return ledger.changes(db)

    def _view(self, name: str) -> Any:
        limit = self.subject.project.settings.live.rows_max
        return self.subject.questions.reader.view(name, limit=limit)

    def _view_mark(self, name: str) -> Any:
        """How far the streams of a view have come, and in which form it is read."""
        with self.subject.store.read() as db:
            plan = read_plan(db)
            view = plan.view(name) if plan else None
            if plan is None or view is None:
                raise NotFound(f"there is no view '{name}' any more")
            states = [read_stream(db, flow) for flow in streams_of(plan, view)]
            # Silence alone may have brought the watermark further, and what waits for it.
            moved = [(s.reached, s.built, s.generation) for s in states]
            ledger_moved = ledger.changes(db) if not states else ""
            return view.fingerprint, moved, ledger_moved
