"""Metrics of a server for Prometheus: the state of its jobs, read on scrape, and its counters. The
metrics of a job are at the job's own /metrics.
tests/server/test_metrics.py checks each; docs/metrics.md lists them.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from headrace.core.meters import family
from headrace.core.version import __version__
from headrace.server.job_supervisor import STATES
from headrace.server.meters import REGISTRY
from headrace.server.records import CANCELLED


@dataclass(frozen=True, slots=True)
class JobMetrics:
    """The last snapshot of a job by its supervisor."""

    name: str
    state: str
    heartbeat_age_s: float | None = None  # None while there is no process
    problems: int = 0  # in its own status


def exposition(jobs: Sequence[JobMetrics]) -> bytes:
    """The state of the jobs and all counters of a server, as Prometheus text."""
    registry = CollectorRegistry()
    registry.register(_Jobs(jobs))
    ProcessCollector(registry=registry)
    return bytes(generate_latest(registry) + generate_latest(REGISTRY))


class _Jobs(Collector):
    def __init__(self, jobs: Sequence[JobMetrics]) -> None:
        self._jobs = jobs

    def collect(self) -> Iterator[Metric]:
        many = Counter(job.state for job in self._jobs)
        yield _gauge(
            "headrace_jobs", "jobs, by state", "state", {state: many[state] for state in STATES}
        )
        yield _gauge(
            "headrace_job_running",
            "1 while a job that is not cancelled answers and takes events, else 0",
            "job_name",
            {
                job.name: job.state in ("running", "degraded")
                for job in self._jobs
                if job.state != CANCELLED
            },
        )
        responding = [job for job in self._jobs if job.heartbeat_age_s is not None]
        yield _gauge(
            "headrace_job_problems",
            "problems in a job's own status, while there is a process",
            "job_name",
            {job.name: job.problems for job in responding},
        )
        yield _gauge(
            "headrace_job_heartbeat_age_seconds",
            "time since a job's process answered last, while there is one",
            "job_name",
            {job.name: job.heartbeat_age_s for job in responding},
        )
        build = {"version": __version__, "python": platform.python_version()}
        yield InfoMetricFamily("headrace_build", "the version that runs", value=build)


def _gauge(name: str, meaning: str, label: str, values: dict[str, float | None]) -> Metric:
    samples = (([of], value) for of, value in values.items())
    return family(GaugeMetricFamily, name, meaning, [label], samples)
