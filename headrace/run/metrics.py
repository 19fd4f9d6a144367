"""Numbers for Prometheus, read from where they are kept when they are asked for."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from headrace.api.service import Status, StreamStatus

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


def exposition(status: Status) -> bytes:
    """The status as Prometheus text."""
    registry = CollectorRegistry()
    registry.register(_StatusCollector(status))
    return bytes(generate_latest(registry))


class _StatusCollector(Collector):
    def __init__(self, status: Status) -> None:
        self.status = status

    def collect(self):  # type: ignore[no-untyped-def]
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
