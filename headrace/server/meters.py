"""What a server counts while things happen: starts and deaths of jobs, and commands; beside them
the requests, which it counts as a project does.

Names are as in headrace/core/meters.py, and labels are jobs, verbs and the words that stand here. A
job's label is `job_name`: Prometheus means something else by `job`.
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
    "ends of a job's process that nobody asked for",
    ["job_name"],
    registry=REGISTRY,
)
COMMANDS = Counter(
    "headrace_commands_total", "commands answered, by result", ["verb", "result"], registry=REGISTRY
)
for meter in (REQUESTS, HTTP_REQUESTS, HTTP_SECONDS):
    REGISTRY.register(meter)

__all__ = ["COMMANDS", "DEATHS", "DONE", "REFUSED", "REGISTRY", "STARTS"]
