"""Metrics of rules, notifications and watches. tests/run/test_rule_metrics.py reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from headrace.api.rule_service import RuleStatus
from headrace.core.meters import family
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
