"""The live topics of a running project, for subscribers: status, topology, alerts and views.

A view is read again only after its streams have advanced, alerts only after the ledger has changed,
and status and topology, which have rates and ages, at fixed intervals.
tests/run/test_live.py subscribes to each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from headrace.api.resources.topology import Topology
from headrace.compile.view_subscription import streams_of
from headrace.core.errors import NotFound
from headrace.core.report import Report
from headrace.core.time import SECOND
from headrace.run.observatory.counters import read_counters
from headrace.run.observatory.disk import DiskGrowth
from headrace.run.observatory.observed_project import ObservatoryCache, ObservedProject
from headrace.run.observatory.samples import Sampler
from headrace.run.observatory.topology import topology_of
from headrace.serving import alerts
from headrace.serving.alerts import AlertFilter, Alerts
from headrace.serving.catalog import read_plan
from headrace.serving.live_topics import LiveTopic, LiveTopics
from headrace.serving.progress import read_stream
from headrace.serving.subscriber import Subscriber

STATUS_US = SECOND  # longer, because it reads the version of the master
TOPOLOGY_US = SECOND // 2
VIEW = "view:"


class LiveObservatory:
    """Samples a project that runs in this process, and publishes changes."""

    def __init__(
        self, service: ObservedProject, report: Report = lambda kind, fields: None
    ) -> None:
        self.service, growth = service, DiskGrowth()
        self.sampler = Sampler(
            partial(read_counters, service),
            lambda now: growth.add(now, service.layout),
            service.store.clock,
            report,
        )
        self.cache = ObservatoryCache(self.sampler.samples, growth)
        live = service.project.settings.live
        changes = service.store.db.changes
        self.live_topics = LiveTopics(live, self.topic, changes, service.store.clock, report)

    def start(self) -> None:
        self.sampler.start()

    def stop(self) -> None:
        self.live_topics.broadcast.stop()
        self.sampler.stop()

    def live(self, topics: Sequence[str], news: Callable[[], None] = lambda: None) -> Subscriber:
        return self.live_topics.subscribe(topics, news)

    def topic(self, name: str) -> LiveTopic:
        """The topic of this name; NotFound if there is none."""
        interval = self.service.project.settings.live.interval_us
        if name == "status":
            return LiveTopic(name, self.service.status, interval_us=max(STATUS_US, interval))
        if name == "topology":
            return LiveTopic(name, self.topology, interval_us=max(TOPOLOGY_US, interval))
        if name == "alerts":
            return LiveTopic(name, self._alerts, self._alerts_mark, interval)
        if name.startswith(VIEW):
            return self._view_topic(name, interval)
        raise NotFound(
            f"there is no live topic '{name[:80]}'",
            hint="available topics: status, topology, alerts, and view:NAME for each view.",
        )

    def _view_topic(self, name: str, interval: int) -> LiveTopic:
        view = name.removeprefix(VIEW)
        plan = self.service.deployed()
        if (found := plan.view(view)) is None or found not in plan.shown_views:
            known = ", ".join(view.name for view in plan.shown_views) or "none"
            raise NotFound(f"there is no view '{view[:80]}'", hint=f"available views: {known}.")
        return LiveTopic(name, partial(self._view, view), partial(self._view_mark, view), interval)

    def topology(self) -> Topology:
        return topology_of(self.service, self.cache.samples, self.cache.reads)

    def _alerts(self) -> Alerts:
        with self.service.store.read() as db:
            return alerts.read_alerts(db, AlertFilter())

    def _alerts_mark(self) -> str:
        with self.service.store.read() as db:
            return alerts.alerts_version(db)

    def _view(self, name: str) -> Any:
        limit = self.service.project.settings.live.rows_max
        return self.service.with_behind(self.service.query_service.reader.view(name, limit=limit))

    def _view_mark(self, name: str) -> Any:
        """The positions of the streams of a view, and its fingerprint."""
        with self.service.store.read() as db:
            plan = read_plan(db)
            view = plan.view(name) if plan else None
            if plan is None or view is None:
                raise NotFound(f"view '{name}' no longer exists")
            states = [read_stream(db, flow) for flow in streams_of(plan, view)]
            # Includes the watermark, which may advance without events when a partition is idle.
            positions = [(s.reached, s.built, s.generation) for s in states]
            version = alerts.alerts_version(db) if not states else ""
            return view.fingerprint, positions, version
