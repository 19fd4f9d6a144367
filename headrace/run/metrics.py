"""Metrics for Prometheus: those of the status, which are read from the store on scrape, and the
counters and histograms of this process (headrace/core/meters.py).

tests/run/test_metrics.py checks every name, unit and label, tests/run/test_rule_metrics.py those of
rules, notifications and watches; docs/metrics.md lists them.
"""

from __future__ import annotations

import platform
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from headrace.api.resources.status import ProjectStatus, StreamStatus, ViewStatus
from headrace.api.rule_service import RuleStatus
from headrace.core.meters import REGISTRY, family
from headrace.core.version import __version__
from headrace.serving.alert_metrics import AlertMetrics, DeliveryMetrics

Numbers = dict[str, tuple[str, Callable[[StreamStatus], float | None]]]

# A value of None is not exported.
_STREAM_GAUGES: Numbers = {
    "headrace_stream_lag_events": (
        "events in the log that speed has not committed",
        lambda s: s.lag_events,
    ),
    "headrace_stream_lag_seconds": (
        "time since the newest epoch while events wait; 0 while none do",
        lambda s: _seconds(s.age_ms) if s.lag_events else 0.0,
    ),
    "headrace_stream_generation": ("number of the newest generation", lambda s: s.generation),
    "headrace_stream_balance_off_events": ("must be zero", lambda s: s.balance.off),
    "headrace_stream_watermark_gap_seconds": (
        "now less the watermark",
        lambda s: _seconds(s.watermark_gap_ms),
    ),
    "headrace_stream_idle_partitions": (
        "partitions that do not hold the watermark back",
        lambda s: len(s.idle),
    ),
    "headrace_stream_trigger_seconds": (
        "time between the starts of two epochs",
        lambda s: _seconds(s.trigger_ms),
    ),
}
_STREAM_COUNTERS: Numbers = {
    "headrace_stream_accepted_events": ("events acknowledged", lambda s: s.balance.accepted),
    "headrace_stream_duplicate_events": ("duplicates archived", lambda s: s.balance.duplicates),
    "headrace_stream_dead_letter_events": (
        "dead letters archived",
        lambda s: s.balance.dead_letters,
    ),
    "headrace_stream_late_events": ("events marked late by speed", lambda s: s.late),
    "headrace_stream_shed_events": ("events that speed has skipped", lambda s: s.shed),
}
_VIEW_GAUGES: dict[str, tuple[str, Callable[[ViewStatus], float | None]]] = {
    "headrace_view_rows": (
        "keys of a view",
        lambda v: v.rows if v.kept else None,  # only materialized views have rows
    ),
    "headrace_view_differences": (
        "differences that the newest promotion found; must be zero",
        lambda v: v.differences,
    ),
}


def exposition(
    status: ProjectStatus, tally: AlertMetrics, state: Path | None = None, subscriptions: int = 0
) -> bytes:
    """The metrics of a project as Prometheus text; `state` is the state folder."""
    registry = CollectorRegistry()
    registry.register(_StatusCollector(status, state, subscriptions))
    registry.register(RuleCollector(status.rules, tally))
    ProcessCollector(registry=registry)
    return bytes(generate_latest(registry) + generate_latest(REGISTRY))


class _StatusCollector(Collector):
    def __init__(self, status: ProjectStatus, state: Path | None, subscriptions: int) -> None:
        self.status, self.state, self.subscriptions = status, state, subscriptions

    def collect(self) -> Iterator[Metric]:
        yield _one("headrace_running", "1 while all parts run", self.status.state == "running")
        yield self._problems()
        yield _one("headrace_subscriptions_open", "subscriptions open now", self.subscriptions)
        yield from self._streams()
        yield from self._views()
        if self.state is not None:
            yield from _disk(self.state)
        build = {"version": __version__, "python": platform.python_version()}
        yield InfoMetricFamily("headrace_build", "the running version", value=build)

    def _problems(self) -> Metric:
        found = Counter(problem.level for problem in self.status.problems)
        meaning = "problems of the status: bad is failing, warn is slow or behind"
        samples = [([level], found[level]) for level in ("bad", "warn")]
        return family(GaugeMetricFamily, "headrace_problems", meaning, ["level"], samples)

    def _streams(self) -> Iterator[Metric]:
        streams = self.status.streams
        for table, kind in (
            (_STREAM_GAUGES, GaugeMetricFamily),
            (_STREAM_COUNTERS, CounterMetricFamily),
        ):
            for name, (meaning, value) in table.items():
                samples = [([stream.name], value(stream)) for stream in streams]
                yield family(kind, name, meaning, ["stream"], samples)
        yield family(
            GaugeMetricFamily,
            "headrace_log_durable_offset",
            "offset up to which a partition's log is durable",
            ["stream", "partition"],
            [
                ([s.name, str(partition)], end)
                for s in streams
                for partition, end in enumerate(s.end)
            ],
        )

    def _views(self) -> Iterator[Metric]:
        for name, (meaning, value) in _VIEW_GAUGES.items():
            samples = [([view.name], value(view)) for view in self.status.views]
            yield family(GaugeMetricFamily, name, meaning, ["view"], samples)


def _disk(state: Path) -> Iterator[Metric]:
    files = [path for path in state.glob("serving.db*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    yield _one("headrace_store_bytes", "size of the serving store", size)
    if state.exists():
        free = shutil.disk_usage(state).free
        yield _one("headrace_disk_free_bytes", "free space on the disk of the state folder", free)


def _one(name: str, meaning: str, value: float) -> Metric:
    return family(GaugeMetricFamily, name, meaning, (), [((), value)])


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000


_ACTION_GAUGES: dict[str, tuple[str, Callable[[DeliveryMetrics], float]]] = {
    "headrace_notifications_waiting": (
        "notifications that are still to be delivered",
        lambda s: s.waiting,
    ),
    "headrace_notifications_failed": (
        "notifications that were given up and can be retried",
        lambda s: s.failed,
    ),
    "headrace_notifications_oldest_waiting_seconds": (
        "how long the oldest waiting notification has waited",
        lambda s: s.oldest_s,
    ),
}


class RuleCollector(Collector):
    """Counts alerts, notifications and matches of watches."""

    def __init__(self, rules: Sequence[RuleStatus], tally: AlertMetrics) -> None:
        self.tally = tally
        # A rule without alerts is exported as zero, so that its first alert is an increase.
        self.raised = {(rule.name, rule.severity): 0 for rule in rules} | tally.raised

    def collect(self) -> Iterator[Metric]:
        labels, raised = ["rule", "severity"], self.raised.items()
        yield family(CounterMetricFamily, "headrace_alerts_raised", "alerts raised", labels, raised)
        yield from self.notifications()
        live, matches = [((), self.tally.watches)], [((), self.tally.matches)]
        meaning = "watches that have not ended"
        yield family(GaugeMetricFamily, "headrace_watches_live", meaning, (), live)
        meaning = "matches of all watches"
        yield family(CounterMetricFamily, "headrace_watches_matches", meaning, (), matches)

    def notifications(self) -> Iterator[Metric]:
        name, meaning = "headrace_notifications_delivered", "notifications delivered"
        delivered = [([kind], sent.delivered) for kind, sent in self.tally.sent.items()]
        yield family(CounterMetricFamily, name, meaning, ["action"], delivered)
        for name, (meaning, value) in _ACTION_GAUGES.items():
            samples = [([kind], value(sent)) for kind, sent in self.tally.sent.items()]
            yield family(GaugeMetricFamily, name, meaning, ["action"], samples)
