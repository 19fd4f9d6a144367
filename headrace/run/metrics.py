"""Numbers for Prometheus, read from where they are kept when they are asked for.

tests/run/test_metrics.py reads a whole page of rules and watches; tests/docs/test_complete.py
compares names and meanings with docs/operations.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from headrace.api.rulebook import RuleStatus
from headrace.api.service import Status, StreamStatus
from headrace.serving.tally import Sent, Tally

Numbers = dict[str, tuple[str, Callable[[StreamStatus], float]]]

_STREAM_GAUGES: Numbers = {
    "headrace_stream_lag_events": (
        "events in the log that speed has not taken",
        lambda s: s.lag_events,
    ),
    "headrace_stream_generation": ("number of the newest generation", lambda s: s.generation),
    "headrace_stream_balance_off_events": ("must be zero", lambda s: s.balance.off),
    "headrace_stream_epoch_seconds": (
        "time of the newest epoch",
        lambda s: (s.last_epoch_ms or 0) / 1000,
    ),
    "headrace_stream_watermark_age_seconds": (
        "now less the watermark",
        lambda s: (s.watermark_gap_ms or 0) / 1000,
    ),
    "headrace_stream_idle_partitions": (
        "partitions that do not hold the watermark back",
        lambda s: len(s.idle),
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
    "headrace_stream_shed_events": ("events that speed has passed over", lambda s: s.shed),
}


_ACTION_GAUGES: dict[str, tuple[str, Callable[[Sent], float]]] = {
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


def exposition(status: Status, tally: Tally) -> bytes:
    """The status, and what rules and watches have done, as Prometheus text."""
    registry = CollectorRegistry()
    registry.register(_StatusCollector(status))
    registry.register(_TallyCollector(status.rules, tally))
    return bytes(generate_latest(registry))


class _StatusCollector(Collector):
    def __init__(self, status: Status) -> None:
        self.status = status

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("headrace_running", "1 while all parts run")
        up.add_metric([], float(self.status.state == "running"))
        yield up
        for table, family in (
            (_STREAM_GAUGES, GaugeMetricFamily),
            (_STREAM_COUNTERS, CounterMetricFamily),
        ):
            for name, (meaning, value) in table.items():
                metric = family(name, meaning, labels=["stream"])
                for stream in self.status.streams:
                    metric.add_metric([stream.name], float(value(stream)))
                yield metric
        rows = GaugeMetricFamily("headrace_view_rows", "keys of a view", labels=["view"])
        for view in self.status.views:
            rows.add_metric([view.name], float(view.rows))
        yield rows


class _TallyCollector(Collector):
    def __init__(self, rules: Sequence[RuleStatus], tally: Tally) -> None:
        self.tally = tally
        # A rule that has raised nothing yet is told too, so that its first alert is a change.
        self.raised = {(rule.name, rule.severity): 0 for rule in rules} | tally.raised

    def collect(self) -> Iterator[Metric]:
        labels = ["rule", "severity"]
        raised = CounterMetricFamily("headrace_alerts_raised", "alerts raised", labels=labels)
        for pair, count in self.raised.items():
            raised.add_metric(pair, float(count))
        yield raised
        yield from self.notifications()
        live = GaugeMetricFamily("headrace_watches_live", "watches that have not ended")
        live.add_metric([], float(self.tally.watches))
        yield live
        matches = CounterMetricFamily("headrace_watches_matches", "matches of all watches")
        matches.add_metric([], float(self.tally.matches))
        yield matches

    def notifications(self) -> Iterator[Metric]:
        delivered = CounterMetricFamily(
            "headrace_notifications_delivered", "notifications delivered", labels=["action"]
        )
        for kind, sent in self.tally.sent.items():
            delivered.add_metric([kind], float(sent.delivered))
        yield delivered
        for name, (meaning, value) in _ACTION_GAUGES.items():
            gauge = GaugeMetricFamily(name, meaning, labels=["action"])
            for kind, sent in self.tally.sent.items():
                gauge.add_metric([kind], float(value(sent)))
            yield gauge
