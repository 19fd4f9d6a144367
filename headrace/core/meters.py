"""Prometheus counters and histograms of this process; `/metrics` shows them beside the gauges of
the status.

Named as Prometheus names: base units, `_total` for what only grows, and labels whose values are few
and known: streams, views, routes, users, and the constants below. They count from the start of the
process. One observation costs a microsecond or two and is made for a request, a commit or an epoch,
never for an event. tests/run/test_metrics.py checks every name and label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

# No `_created` series: the start of the process has a metric of its own.
disable_created_metrics()  # type: ignore[no-untyped-call]
REGISTRY = CollectorRegistry()

ACCEPTED, REFUSED, FAILED = "accepted", "refused", "failed"  # results of a send
PROMOTED, NOTHING = "promoted", "nothing"  # results of a build, beside FAILED
AGREED, DIFFERED = "agreed", "differed"  # results of an audit
STORE, SPARK = "store", "spark"  # the engine of a query
RUNNING, WAITING = "running", "waiting"  # states of a query on Spark

_QUICK = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
_SLOW = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_LONG = (0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)


def _counter(name: str, meaning: str, *labels: str) -> Counter:
    return Counter(name, meaning, labels, registry=REGISTRY)


def _histogram(
    name: str, meaning: str, *labels: str, buckets: tuple[float, ...] = _SLOW
) -> Histogram:
    return Histogram(name, meaning, labels, registry=REGISTRY, buckets=buckets)


def family(
    kind: Callable[..., CounterMetricFamily | GaugeMetricFamily],
    name: str,
    meaning: str,
    labels: Sequence[str],
    samples: Iterable[tuple[Sequence[str], float | None]],
) -> Metric:
    """A metric that is computed on scrape: the values of its labels, and a number; a number of None
    is not exported.
    """
    metric = kind(name, meaning, labels=labels)
    for values, number in samples:
        if number is not None:
            metric.add_metric(values, float(number))
    return metric


INGEST_REQUESTS = _counter(
    "headrace_ingest_requests_total", "batches of events sent, by result", "stream", "result"
)
INGEST_EVENTS = _counter(
    "headrace_ingest_events_total", "events sent, by result", "stream", "result"
)
INGEST_BYTES = _counter(
    "headrace_ingest_bytes_total", "bytes of events sent, by result", "stream", "result"
)
TCP_REFUSED = _counter(
    "headrace_tcp_refused_connections_total",
    "connections to a TCP source refused at its limit",
    "stream",
)
LOG_APPEND_SECONDS = _histogram(
    "headrace_log_append_seconds",
    "time to write and sync a group of sends",
    "stream",
    buckets=_QUICK,
)
EPOCH_SECONDS = _histogram(
    "headrace_epoch_seconds", "time of an epoch, from its start to its commit", "stream"
)
EPOCH_EVENTS = _counter("headrace_epoch_events_total", "events taken by epochs", "stream")
DEAD_LETTERS = _counter(
    "headrace_dead_letters_total", "dead letters archived, by kind of reason", "stream", "reason"
)
BUILDS = _counter("headrace_builds_total", "builds of batch, by result", "stream", "result")
GENERATION_SECONDS = _histogram(
    "headrace_generation_seconds", "time to build and promote a generation", "stream", buckets=_LONG
)
DIFFERENCES = _counter(
    "headrace_generation_differences_total",
    "differences between speed and batch found before promotions",
    "view",
)
AUDITS = _counter("headrace_audits_total", "audits by the second engine, by result", "result")
QUERY_SECONDS = _histogram("headrace_query_seconds", "time of a query, by what answers", "engine")
QUERIES = Gauge(
    "headrace_queries",
    "ad-hoc queries on Spark that are running or queued",
    ("state",),
    registry=REGISTRY,
)
REQUESTS = _counter(
    "headrace_requests_total",
    "requests that were authorized or refused, by user",
    "user",
    "operation",
    "decision",
)
HTTP_REQUESTS = _counter(
    "headrace_http_requests_total", "HTTP requests answered", "method", "route", "status"
)
HTTP_SECONDS = _histogram(
    "headrace_http_request_seconds", "time of an HTTP request", "route", buckets=_SLOW
)
