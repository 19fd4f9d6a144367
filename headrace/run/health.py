"""How a project is, decided in one place: its state, and a sentence for each thing that is wrong.

`status`, `top`, the terminal of `run`, the metrics and the console all read what is decided here. A
problem of a place (a source, a log, speed, a view …) is what the graph says of that place; what
the parts of the run have noted (headrace/core/problems.py) and no place shows comes after. A
project is `running` only while nothing is bad. tests/run/test_health.py breaks each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from msgspec.structs import replace

from headrace.api.service import ProjectStatus
from headrace.compile.plan import Plan
from headrace.core.problems import Problem
from headrace.define.project import Project
from headrace.ingest.disk import FreeBytes, free_bytes
from headrace.run.observatory.graph import places_of
from headrace.run.observatory.numbers import Judging
from headrace.run.observatory.subject import Subject

RUNNING, DEGRADED = "running", "degraded"
FLOWING = frozenset({"source", "log", "master", "speed"})
JUDGED = FLOWING | {"table", "view", "rule", "sink"}


def with_health(subject: Subject, plan: Plan | None, found: ProjectStatus) -> ProjectStatus:
    """The status with its problems, and with the state that follows from them."""
    problems = problems_of(subject, plan, found)
    bad = [one.message for one in problems if one.level == "bad"]
    state = DEGRADED if found.state == RUNNING and bad else found.state
    return replace(found, state=state, reason=found.reason or "; ".join(bad), problems=problems)


def problems_of(
    subject: Subject, plan: Plan | None, found: ProjectStatus, kinds: Collection[str] = JUDGED
) -> list[Problem]:
    """Those of places of these kinds first, then what no place shows. Nothing waits for a project
    that is not running, so of its flow only what is bad is listed.
    """
    signs = subject.signs()
    placed = list(_of_places(subject, plan, found, kinds)) if plan else []
    shown = {one.message for one in placed}
    others = [one for one in signs.problems if one.message not in shown]
    told = (*placed, *others)
    return [p for p in told if signs.running or p.level == "bad" or p.kind not in FLOWING]


def disk_problems(state: Path, project: Project, free: FreeBytes = free_bytes) -> list[Problem]:
    """Whether so little room is left that ingest refuses events."""
    least = project.settings.log.free_bytes_min
    if free(state) >= least:
        return []
    said = f"the disk has less than {least:,} bytes left, so events are refused"
    return [Problem("part", "disk", "full", said)]


def _of_places(
    subject: Subject, plan: Plan, found: ProjectStatus, kinds: Collection[str]
) -> Iterator[Problem]:
    judging = Judging(subject, plan, found, [])
    for place in places_of(subject.project, plan):
        numbers = judging.numbers(place) if place.kind in kinds else None
        if numbers is not None and numbers.health in ("warn", "bad"):
            told = numbers.what, numbers.reason, numbers.health, numbers.since
            yield Problem(place.kind, place.name, *told)
