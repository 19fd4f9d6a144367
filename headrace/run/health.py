"""The health of a project: its state, and a sentence for each problem.

`status`, `top`, the terminal of `run`, the metrics and the console all use this health. Problems of
nodes of the graph (a source, a log, speed, a view …) come first, then problems that were reported
(headrace/core/problems.py) and that no node shows. A project is `running` only while no problem is
bad. tests/run/test_health.py causes each.

The monitor checks this health once a second. Workers and parts report their problems when they
occur; problems that only polling can detect (events that wait, steps that hang, a query that
failed) are reported by it, once each, if they are bad. tests/run/test_health_monitor.py checks it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from headrace.api.resources.status import ProjectStatus
from headrace.compile.plan import Plan
from headrace.core.problems import Problem, ProblemKey, Problems
from headrace.core.report import Report
from headrace.core.worker import Worker
from headrace.define.project import Project
from headrace.ingest.guards import FreeBytes, free_bytes
from headrace.run.observatory.graph import nodes_of
from headrace.run.observatory.node_metrics import NodeMetricsReader
from headrace.run.observatory.observed_project import ObservedProject

RUNNING, DEGRADED = "running", "degraded"
FLOWING = frozenset({"source", "log", "master", "speed"})
JUDGED = FLOWING | {"table", "view", "rule", "sink"}
CHECK_S, SHARE = 1.0, 10


def with_health(service: ObservedProject, plan: Plan | None, found: ProjectStatus) -> ProjectStatus:
    """The status with its problems."""
    return with_problems(found, problems_of(service, plan, found))


def with_problems(found: ProjectStatus, problems: list[Problem]) -> ProjectStatus:
    """The status with these problems; the state is `degraded` if one of them is bad."""
    bad = [one.message for one in problems if one.level == "bad"]
    state = DEGRADED if found.state == RUNNING and bad else found.state
    return replace(found, state=state, reason=found.reason or "; ".join(bad), problems=problems)


def problems_of(
    service: ObservedProject,
    plan: Plan | None,
    found: ProjectStatus,
    kinds: Collection[str] = JUDGED,
) -> list[Problem]:
    """The problems of nodes of these kinds, then those that no node shows. Events of a stopped
    project do not wait for anything, so only bad problems of its flow are listed.
    """
    runtime = service.runtime_info()
    of_nodes = list(_node_problems(service, plan, found, kinds)) if plan else []
    shown = {reported for _, reported in of_nodes}
    others = [one for one in runtime.problems if one.key not in shown]
    return [
        p
        for p in (*(one for one, _ in of_nodes), *others)
        if runtime.running or p.level == "bad" or p.kind not in FLOWING
    ]


def disk_problems(state: Path, project: Project, free: FreeBytes = free_bytes) -> list[Problem]:
    """A problem if the disk has so little space left that ingest rejects events."""
    least = project.settings.log.free_bytes_min
    if free(state) >= least:
        return []
    message = f"the disk has less than {least:,} bytes left, so events are refused"
    return [Problem("part", "disk", "full", message)]


def _node_problems(
    service: ObservedProject, plan: Plan, found: ProjectStatus, kinds: Collection[str]
) -> Iterator[tuple[Problem, ProblemKey | None]]:
    """The problem of each node, and the key of the reported problem that it is, if it is one."""
    reader = NodeMetricsReader(service, plan, found, [])
    for node in nodes_of(service.project, plan):
        metrics = reader.metrics(node) if node.kind in kinds else None
        if metrics is not None and metrics.health in ("warn", "bad"):
            details = metrics.what, metrics.reason, metrics.health, metrics.since
            yield Problem(node.kind, node.name, *details), metrics.reported


class HealthMonitor:
    """`check` returns all problems, and `reported` those that components have reported."""

    def __init__(
        self,
        check: Callable[[], Sequence[Problem]],
        reported: Callable[[], Iterable[Problem]],
        stop: threading.Event,
        report: Report,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._check, self._reported, self._clock = check, reported, clock
        self._problems = Problems("health", report)
        self.known: Sequence[Problem] = ()  # by the last check
        self.worker = Worker("health", self.turn, stop, report)

    def turn(self) -> float:
        """Check once; returns the seconds until the next check."""
        began, reported = self._clock(), {problem.message for problem in self._reported()}
        self.known = self._check()
        bad = (problem for problem in self.known if problem.level == "bad")
        new = {problem.key: problem.message for problem in bad if problem.message not in reported}
        for problem in self._problems:
            if problem.key not in new:
                self._problems.over(problem.key)
        for key, message in new.items():
            self._problems.note(key, message)
        # Checking many streams takes long; at most a tenth of the time is spent on it.
        return max(CHECK_S, SHARE * (self._clock() - began))
