"""Rules and watches as Prometheus reads them."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from headrace.api.resources.status import ProjectStatus
from headrace.api.rule_service import RuleStatus
from headrace.run.metrics import exposition
from headrace.serving.alert_metrics import AlertMetrics, DeliveryMetrics

RULES = [
    RuleStatus(name, 1, "enabled", "high", False, "2026-01-01T00:00:00Z", "ann", "")
    for name in ("slow", "silent")
]
TALLY = AlertMetrics(
    {("slow", "high"): 7, ("slow", "low"): 2, ("gone", "low"): 1},
    {"file": DeliveryMetrics(5, 1, 0, 0.0), "webhook": DeliveryMetrics(0, 0, 3, 12.5)},
    9_998,
    1_204,
)


def test_rules_notifications_and_watches_are_told() -> None:
    status = ProjectStatus("shop", "running", "", None, None, [], [], rules=RULES)
    text = exposition(status, TALLY).decode()
    families = [
        family
        for family in text_string_to_metric_families(text)
        if family.name.startswith(("headrace_alerts", "headrace_notif", "headrace_watches"))
    ]
    told = {
        (sample.name.removeprefix("headrace_"), *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }
    assert told == {
        ("alerts_raised_total", "slow", "high"): 7.0,
        ("alerts_raised_total", "slow", "low"): 2.0,
        ("alerts_raised_total", "silent", "high"): 0.0,
        ("alerts_raised_total", "gone", "low"): 1.0,
        ("notifications_delivered_total", "file"): 5.0,
        ("notifications_delivered_total", "webhook"): 0.0,
        ("notifications_failed", "file"): 1.0,
        ("notifications_failed", "webhook"): 0.0,
        ("notifications_waiting", "file"): 0.0,
        ("notifications_waiting", "webhook"): 3.0,
        ("notifications_oldest_waiting_seconds", "file"): 0.0,
        ("notifications_oldest_waiting_seconds", "webhook"): 12.5,
        ("watches_live",): 9_998.0,
        ("watches_matches_total",): 1_204.0,
    }
    kinds = {family.name: family.type for family in families}
    assert kinds["headrace_alerts_raised"] == "counter"
    assert kinds["headrace_notifications_failed"] == "gauge"
