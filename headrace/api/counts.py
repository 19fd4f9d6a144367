"""How many requests each user made, for Prometheus: what is too many to be logged is counted."""

from __future__ import annotations

from collections import Counter

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

_LABELS = ["user", "operation", "decision"]


class Counts(Collector):
    def __init__(self) -> None:
        self._numbers: Counter[tuple[str, str, str]] = Counter()

    def add(self, user: str, operation: str, decision: str) -> None:
        self._numbers[user, operation, decision] += 1

    def exposition(self) -> bytes:
        registry = CollectorRegistry()
        registry.register(self)
        return bytes(generate_latest(registry))

    def collect(self):  # type: ignore[no-untyped-def]
        name, meaning = "headrace_requests", "requests that were let in or refused, since the start"
        made = CounterMetricFamily(name, meaning, labels=_LABELS)
        for labels, number in self._numbers.items():
            made.add_metric(list(labels), float(number))
        yield made
