"""Metrics of rules, notifications and watches. tests/run/test_rule_metrics.py reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from headrace.api.rule_service import RuleStatus
from headrace.serving.alert_metrics import AlertMetrics, DeliveryMetrics

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
