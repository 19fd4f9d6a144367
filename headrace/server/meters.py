"""Counters of a server: starts and deaths of jobs, commands, and HTTP requests as in a project.

Names are as in headrace/core/meters.py. The label of a job is `job_name`, because Prometheus uses
`job` for something else.
tests/server/test_metrics.py reads all.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter

from headrace.core.meters import HTTP_REQUESTS, HTTP_SECONDS, REFUSED, REQUESTS

DONE = "done"  # result of a command, beside REFUSED
REGISTRY = CollectorRegistry()
STARTS = Counter(
    "headrace_job_starts_total", "processes started for a job", ["job_name"], registry=REGISTRY
)
DEATHS = Counter(
    "headrace_job_deaths_total",
    "unexpected exits of a job's process",
    ["job_name"],
    registry=REGISTRY,
)
COMMANDS = Counter(
    "headrace_commands_total", "commands answered, by result", ["verb", "result"], registry=REGISTRY
)
for meter in (REQUESTS, HTTP_REQUESTS, HTTP_SECONDS):
    REGISTRY.register(meter)

__all__ = ["COMMANDS", "DEATHS", "DONE", "REFUSED", "REGISTRY", "STARTS"]
